"""What the command advises to type: as the reader's shell finds the program, and on the same database."""

import os
import sys
from pathlib import Path

import pytest

from mutirao.cli.invocation import calling


def program(folder: Path, name: str = "mutirao") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / name
    made.touch(mode=0o755)
    return made


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """In an empty folder, with nothing on the PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return monkeypatch


def test_program_on_the_path_is_called_by_its_name(shell: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = program(tmp_path / "bin")
    shell.setenv("PATH", f"{os.environ['PATH']}:{script.parent}")
    shell.setattr(sys, "argv", [str(script), "up"])
    assert calling(None)("db shell") == "mutirao db shell"


def test_program_in_a_folder_of_the_project_is_called_by_its_way_from_here(
    shell: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = program(tmp_path / ".venv/bin")
    shell.setattr(sys, "argv", [".venv/bin/mutirao", "up"])
    assert calling(None)("instance list") == ".venv/bin/mutirao instance list"
    shell.chdir(script.parent)
    shell.setattr(sys, "argv", [str(script), "up"])
    assert calling(None)("instance list") == "./mutirao instance list"


def test_another_program_of_that_name_on_the_path_is_not_meant(shell: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours, other = program(tmp_path / "a project/bin"), program(tmp_path / "other")
    shell.chdir(other.parent)
    shell.setenv("PATH", str(other.parent))
    shell.setattr(sys, "argv", [str(ours), "up"])
    assert calling(None)("up") == f"'{ours}' up"


def test_module_is_called_as_a_module(shell: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell.setattr(sys, "argv", ["/somewhere/mutirao/__main__.py", "up"])
    shell.setattr(sys, "executable", str(program(tmp_path / "bin", "python")))
    assert calling(None)("up") == "bin/python -m mutirao up"


def test_other_program_that_uses_ours_says_the_name(shell: pytest.MonkeyPatch) -> None:
    shell.setattr(sys, "argv", ["docs/pictures.py"])
    assert calling(None)("up") == "mutirao up"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("embedded:shop", "embedded:shop"),
        ("postgresql://me@db/shop", "postgresql://me@db/shop"),
        ("postgresql://me:s3cret@db:5432/shop", "postgresql://me@db:5432/shop"),
        ("postgresql://me:s3@cret@db/shop", "postgresql://me@db/shop"),
        ("postgresql://db:5432/shop", "postgresql://db:5432/shop"),
        ("postgresql:///shop?host=/run&password=s3cret", "'postgresql:///shop?host=/run'"),
        ("postgresql:///shop?password=s3cret&host=/run", "'postgresql:///shop?host=/run'"),
    ],
)
def test_database_is_named_as_it_was_given_but_for_a_password(shell: pytest.MonkeyPatch, given: str, said: str) -> None:
    shell.setattr(sys, "argv", ["elsewhere"])
    assert calling(given)("job list") == f"mutirao job list --database {said}"

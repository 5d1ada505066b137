"""`mutirao db` as its users meet it: by the words it prints and the code it exits with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mutirao.database.migrate import schema

MUTIRAO = Path(sys.executable).with_name("mutirao")


def mutirao(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [MUTIRAO, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def test_upgrade_says_what_it_applied_and_status_shows_it(empty_database_url: str) -> None:
    before = json.loads(mutirao("db", "status", "--json", "--database", empty_database_url).stdout)
    assert (before["schema"], before["pending"]) == (None, list(map(str, (*schema().migrations, schema().functions))))
    said = mutirao("db", "upgrade", "--database", empty_database_url)
    assert f"applied {schema().migrations[0]}" in said.stdout
    after = json.loads(mutirao("db", "status", "--json", "--database", empty_database_url).stdout)
    assert (after["schema"], after["pending"]) == (schema().number, [])
    assert f"{schema().number:04d}, this program's" in mutirao("db", "status", "--database", empty_database_url).stdout


def test_shell_passes_arguments_and_exit_code_through(database_url: str) -> None:
    said = mutirao("db", "shell", "--database", database_url, "--", "-At", "-c", "select 6 * 7")
    assert (said.stdout, said.returncode) == ("42\n", 0)
    assert mutirao("db", "shell", "--database", database_url, "--", "-c", "select 1/0").returncode == 1


def test_backup_and_restore_by_command(database_url: str, empty_database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "saved"
    mutirao("db", "shell", "--database", database_url, "--", "-c", "select mutirao.create_flow('kept')")
    assert f"Saved to {file}" in mutirao("db", "backup", file, "--database", database_url).stdout.replace("\n", "")
    assert mutirao("db", "restore", file, "--database", empty_database_url).returncode == 0
    refused = mutirao("db", "restore", file, "--database", empty_database_url)
    assert (refused.returncode, refused.stderr.split()[:2]) == (1, ["error:", "database_not_empty:"])


def test_grant_to_a_role_that_is_not_there_is_refused_in_one_line(database_url: str) -> None:
    said = mutirao("db", "grant", "no_such_role", "work", "--database", database_url)
    assert said.returncode in {1, 3}
    assert said.stderr.startswith("error: ")
    assert said.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("postgresql://nobody@localhost:1/x", "server_unreachable"),
        ("postgresql://[/x", "server_unreachable"),
        ("oracle://x", "database_url"),
        ("embedded:shop?home=/proc/nowhere", "home_unusable"),
    ],
)
def test_what_the_operator_must_mend_is_one_line_and_exit_3(url: str, code: str) -> None:
    said = mutirao("db", "status", "--database", url)
    assert said.returncode == 3, said
    assert said.stdout == ""
    assert said.stderr.startswith(f"error: {code}: ")
    assert said.stderr.count("\n") == 1


def test_password_is_never_shown(tmp_path: Path) -> None:
    said = mutirao("db", "backup", tmp_path / "x", "--database", "postgresql://someone:s3cret@localhost:1/x")
    assert "s3cret" not in said.stderr + said.stdout

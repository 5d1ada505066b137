"""Wrong words after `mutirao`: one line that says what would be right, and exit 2."""

import re

import pytest
from command import assert_refused, mutirao


@pytest.mark.parametrize(
    ("words", "wrong", "right"),
    [
        ("instnce list", 'mutirao has no command "instnce"', 'did you mean "instance"?'),
        ("instance strat", 'mutirao instance has no command "strat"', 'did you mean "start"?'),
        ("job qqq", 'mutirao job has no command "qqq"', "there is list, retry, show, skip"),
        ("--verison", 'mutirao has no option "--verison"', 'did you mean "--version"?'),
        ("instance list --fow order", 'mutirao instance list has no option "--fow"', 'did you mean "--flow"?'),
        ("job list -q", 'mutirao job list has no option "-q"', "see mutirao job list --help"),
        ("instance show", 'missing argument "ID"', "see mutirao instance show --help"),
        ("instance show one", 'invalid value for "ID": a whole number is wanted', "see mutirao instance show --help"),
        (
            "instance list --limit 0",
            'invalid value for "--limit": it is 1 at least',
            "see mutirao instance list --help",
        ),
        ("db grant", 'missing argument "ROLE"', "see mutirao db grant --help"),
        ("db grant me all", '"all" is not one of "read", "work", "define"', "see mutirao db grant --help"),
        ("instance start order --count", 'option "--count" requires an argument', "write --count VALUE"),
        ("flow list --json=yes", 'option "--json" does not take a value', "write --json alone"),
        ("clock twice", "got unexpected extra argument", "see mutirao clock --help"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(words: str, wrong: str, right: str) -> None:
    said = mutirao(*words.split())
    assert_refused(said, "usage", exit_code=2)
    assert wrong in said.stderr
    assert said.stderr.endswith(f"; {right}\n")
    assert said.stdout == ""


@pytest.mark.parametrize("words", [[], ["instance"], ["db"]])
def test_group_alone_shows_its_help(words: list[str]) -> None:
    said = mutirao(*words)
    assert (said.returncode, said.stderr) == (2, "")
    assert f"Usage: {' '.join(['mutirao', *words])} " in said.stdout
    assert said.stdout.rstrip() == mutirao(*words, "--help").stdout.rstrip()


def test_help_ends_well() -> None:
    said = mutirao("instance", "start", "--help")
    assert (said.returncode, said.stderr) == (0, "")
    assert "Example: mutirao instance start" in said.stdout


def test_version_is_told() -> None:
    said = mutirao("--version")
    assert (said.returncode, said.stderr) == (0, "")
    assert re.fullmatch(r"mutirao \d+\.\d+\.\d+\n", said.stdout)

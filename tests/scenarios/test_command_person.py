"""`mutirao person` and `mutirao role`: set up people, from the first role to somebody who leaves."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from command import answer, assert_refused, mutirao

from mutirao.database.engine import Engine
from mutirao.people import authenticate_token, sign_in
from mutirao.testing.database import TestServer


@pytest.fixture(name="url")
async def office(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """A database with the role `clerk` and `clerk_1` in it; on one PostgreSQL, since the functions are tested on all."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.roles.add(None, "clerk")
            await engine.persons.add(None, "clerk_1", roles=["clerk"])
        yield url


def say(words: list[str], typed: str, url: str) -> "subprocess.CompletedProcess[str]":
    """A command that reads its input."""
    command = [sys.executable, "-m", "mutirao", *words, "--database", url]
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False, env=os.environ, timeout=60)


def test_a_person_is_added_changed_shown_and_listed(url: str) -> None:
    words = ["person", "add", 'the "second"', "--full-name", "Second O'Clerk", "--role", "clerk"]
    made = answer(*words, "--database", url)
    assert (made["name"], made["roles"], made["email"]) == ('the "second"', ["clerk"], None)
    said = mutirao("person", "change", 'the "second"', "--email", "second@example.org", "--database", url)
    assert "second@example.org" in said.stdout
    shown = answer("person", "show", 'the "second"', "--database", url)
    assert (shown["person"]["email"], shown["sessions"], shown["tokens"]) == ("second@example.org", [], [])
    said = mutirao("person", "change", 'the "second"', "--name", "clerk_2", "--email", "", "--database", url)
    assert "second@example.org" not in said.stdout
    listed = answer("person", "list", "--role", "clerk", "--database", url)
    assert [each["name"] for each in listed] == ["clerk_1", "clerk_2"]
    assert [each["name"] for each in answer("person", "list", "--search", "o'c", "--database", url)] == ["clerk_2"]
    assert answer("person", "list", "--here", "--database", url) == []
    assert "Second O'Clerk" in mutirao("person", "list", "--after", "clerk_1", "--database", url).stdout


async def test_a_password_comes_by_stdin_and_never_as_an_argument(url: str) -> None:
    said = say(["person", "password", "clerk_1", "--password-stdin"], "a long password\n", url)
    assert (said.returncode, said.stdout) == (0, "clerk_1 has a new password.\n")
    assert_refused(say(["person", "password", "clerk_1", "--password-stdin"], "short\n", url), "weak_password")
    assert_refused(say(["person", "password", "clerk_1"], "a long password\n", url), "wrong_call")
    assert_refused(mutirao("person", "password", "clerk_1", "a long password", "--database", url), "usage", 2)
    async with Engine(url, upgrade=False) as engine:
        await sign_in(engine, "clerk_1", "a long password", agent="a browser")
    assert "a browser" in mutirao("person", "show", "clerk_1", "--database", url).stdout
    said = mutirao("person", "sign-out", "clerk_1", "--database", url)
    assert said.stdout == "clerk_1 is signed out; 1 session ended.\n"


async def test_a_person_is_added_with_a_password_or_not_at_all(url: str) -> None:
    add = ["person", "add", "clerk_2", "--role", "clerk", "--password-stdin"]
    assert_refused(say(add, "short\n", url), "weak_password")
    assert_refused(mutirao("person", "show", "clerk_2", "--database", url), "unknown_person")
    assert say(add, "a long password\n", url).returncode == 0
    async with Engine(url, upgrade=False) as engine:
        await sign_in(engine, "clerk_2", "a long password")


async def test_a_password_is_reset_and_shown_once(url: str) -> None:
    password = answer("person", "reset-password", "clerk_1", "--database", url)["password"]
    other = mutirao("person", "reset-password", "clerk_1", "--database", url).stdout.split()[-1]
    assert password != other
    async with Engine(url, upgrade=False) as engine:
        assert (await sign_in(engine, "clerk_1", other)).identity.name == "clerk_1"


async def test_a_token_is_shown_once_listed_and_revoked(url: str) -> None:
    said = mutirao("person", "token", "add", "clerk_1", "printer", "--expires", "90d", "--database", url)
    async with Engine(url, upgrade=False) as engine:
        assert (await authenticate_token(engine, said.stdout.strip())).name == "clerk_1"
    [listed] = answer("person", "token", "list", "clerk_1", "--database", url)
    assert listed["name"] == "printer"
    assert listed["expires_at"]
    assert "printer" in mutirao("person", "show", "clerk_1", "--database", url).stdout
    assert mutirao("person", "token", "revoke", "clerk_1", "printer", "--database", url).returncode == 0
    assert mutirao("person", "token", "list", "clerk_1", "--database", url).stdout == "No tokens.\n"


def test_somebody_is_away_comes_back_leaves_and_returns(url: str) -> None:
    answer("person", "add", "clerk_2", "--database", url)
    words = ["person", "away", "clerk_1", "--from", "2131-12-20", "--until", "2132-01-05", "--substitute", "clerk_2"]
    away = mutirao(*words, "--database", url).stdout
    assert "away from 2131-12-20" in away
    assert "clerk_2 stands in" in away
    assert answer("person", "back", "clerk_1", "--database", url)["away_from"] is None
    assert mutirao("person", "disable", "clerk_1", "--database", url).stdout == "clerk_1 is disabled.\n"
    assert "disabled since" in mutirao("person", "list", "--disabled", "--database", url).stdout
    assert mutirao("person", "enable", "clerk_1", "--database", url).stdout == "clerk_1 is enabled.\n"


def test_roles_are_added_renamed_filled_emptied_and_removed(url: str) -> None:
    made = answer("role", "add", "manager", "--description", "Decides.", "--database", url)
    assert (made["role"]["description"], made["members"]) == ("Decides.", [])
    assert mutirao("role", "put", "manager", "clerk_1", "--database", url).stdout == "1 person put into manager.\n"
    assert mutirao("role", "rename", "manager", "head", "--database", url).stdout == "manager is called head now.\n"
    mutirao("role", "describe", "head", "Decides all.", "--database", url)
    assert answer("role", "show", "head", "--database", url)["members"] == ["clerk_1"]
    assert "Decides all." in mutirao("role", "list", "--database", url).stdout
    assert mutirao("role", "take", "head", "clerk_1", "--database", url).stdout == "1 person taken out of head.\n"
    assert mutirao("role", "remove", "head", "--database", url).stdout == "head is removed.\n"
    names = [each["name"] for each in answer("role", "list", "--database", url)]
    assert names == ["administrator", "clerk"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["person", "show", "clerk1"], "unknown_person", 'did you mean "clerk_1"?'),
        (["person", "add", "clerk_1"], "name_taken", "already"),
        (["person", "add", "x", "--role", "clark"], "unknown_role", "mutirao role add"),
        (["person", "away", "clerk_1", "--until", "soon"], "wrong_call", "is no time"),
        (["person", "away", "clerk_1", "--substitute", "clerk_1"], "wrong_substitute", "clerk_1 → clerk_1"),
        (["person", "change", "clerk_1", "--full-name", "x", "--revision", "99"], "changed_meanwhile", "revision"),
        (["person", "token", "revoke", "clerk_1", "x"], "unknown_token", '"x"'),
        (["role", "show", "clark"], "unknown_role", 'did you mean "clerk"?'),
        (["role", "remove", "administrator"], "wrong_call", "always there"),
        (["role", "put", "clerk", "nobody"], "unknown_person", '"nobody"'),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(url: str, words: list[str], code: str, says: str) -> None:
    refused = mutirao(*words, "--database", url)
    assert_refused(refused, code)
    assert says in refused.stderr

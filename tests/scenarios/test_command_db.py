"""`mutirao db` where people meet it: refusals in its shell, and what a role may do."""

import secrets
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from command import assert_refused, mutirao
from psycopg import AsyncConnection, sql

from mutirao.testing.database import TestServer


@pytest.fixture
async def role(server: TestServer, database_url: str) -> AsyncIterator[str]:
    """A role that may do nothing yet."""
    name = f"role_{secrets.token_hex(4)}"
    database = urlsplit(database_url).path.strip("/")
    async with await AsyncConnection.connect(server.superuser_url(database), autocommit=True) as admin:
        await admin.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        yield name


def test_refusal_in_the_shell_is_one_line(database_url: str) -> None:
    said = mutirao("db", "shell", "--database", database_url, "--", "-c", "select mutirao.start('nothing')")
    assert said.returncode == 1
    assert said.stderr.startswith("ERROR:  unknown_flow: ")
    assert said.stderr.count("\n") == 1


def test_what_was_granted_is_taken_back(server: TestServer, database_url: str, role: str) -> None:
    as_role = server.url(urlsplit(database_url).path.strip("/"), role)
    assert mutirao("db", "grant", role, "read", "--database", database_url).stdout == f"{role} may now read.\n"
    assert mutirao("flow", "list", "--database", as_role).returncode == 0
    said = mutirao("db", "revoke", role, "--database", database_url)
    assert said.stdout == f"What {role} was granted is taken back.\n"
    assert_refused(mutirao("flow", "list", "--database", as_role), "not_allowed", exit_code=3)


def test_nothing_granted_is_nothing_to_take_back(database_url: str, role: str) -> None:
    assert_refused(mutirao("db", "revoke", role, "--database", database_url), "wrong_call")

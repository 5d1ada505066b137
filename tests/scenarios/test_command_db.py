"""`mutirao db` where people meet it: its shell, what a role may do, which database is meant, and other schemas."""

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from command import FLOWS, answer, assert_refused, mutirao
from psycopg import AsyncConnection, sql

from mutirao.database.embedded import EmbeddedServer
from mutirao.database.migrate import schema
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


def test_backup_names_what_it_leaves_out(database_url: str, tmp_path: Path) -> None:
    def save(name: str) -> list[str]:
        return mutirao("db", "backup", tmp_path / name, "--database", database_url).stdout.splitlines()

    assert len(save("alone")) == 1
    tables = "; ".join(f"create table mine.t{number} (x int)" for number in range(6))
    mutirao("db", "shell", "--database", database_url, "--", "-c", f"create schema mine; {tables}")
    _, line = save("beside others")
    assert line.startswith("Not in it: mine.t0, mine.t1, mine.t2, mine.t3, mine.t4 and 1 more. ")
    assert "mutirao db url --database " in line


# ----------------------------------------------------------------------------------------- which database is meant


@pytest.fixture
def home(place: Path) -> Iterator[Path]:
    """A data folder whose server runs, so that not every command has to start it."""
    with EmbeddedServer(place / "home") as server:
        yield server.home


READING = (
    "flow list",
    "flow show order",
    "instance list",
    "instance show 1",
    "instance trace 1",
    "job list",
    "job show 1",
    "db status",
    "db url",
    "db backup nothing",
)


def test_unknown_embedded_database_is_refused_by_what_reads_and_made_by_what_writes(home: Path) -> None:
    assert mutirao("flow", "list", MUTIRAO_HOME=home).returncode == 0  # the default one is made by whoever comes first
    for words in READING:
        said = mutirao(*words.split(), "--database", "embedded:shop", MUTIRAO_HOME=home)
        assert_refused(said, "unknown_database", exit_code=3)
        assert said.stderr.endswith(
            'has no database "shop"; there is mutirao; to make it: mutirao db upgrade --database embedded:shop\n'
        )
    applied = mutirao("flow", "apply", f"{FLOWS}:Order", "--database", "embedded:shop", MUTIRAO_HOME=home)
    assert applied.returncode == 0, applied
    assert "order" in mutirao("flow", "list", "--database", "embedded:shop", MUTIRAO_HOME=home).stdout


def test_unknown_database_in_another_folder_is_named_with_it(home: Path) -> None:
    said = mutirao("flow", "list", "--database", f"embedded:shop?home={home}")
    assert_refused(said, "unknown_database", exit_code=3)
    assert "there is none yet" in said.stderr
    assert f"--database embedded:shop?home={home}" in said.stderr


async def test_any_client_connects_by_the_url(home: Path) -> None:
    said = mutirao("db", "url", MUTIRAO_HOME=home)
    assert (said.returncode, said.stderr) == (0, "")
    async with await AsyncConnection.connect(said.stdout.strip()) as connection:
        assert connection.info.dbname == "mutirao"
    status = mutirao("db", "status", MUTIRAO_HOME=home).stdout
    assert said.stdout.strip() in status


def test_password_is_in_the_url_for_programs_only(database_url: str) -> None:
    """The server of the tests asks for none, and takes any."""
    given = database_url.replace("@", ":s3cret@", 1)
    for command in (["db", "url"], ["db", "status"], ["instance", "list"]):
        said = mutirao(*command, "--database", given)
        assert said.returncode == 0, said
        assert "s3cret" not in said.stdout + said.stderr
    assert mutirao("db", "url", "--database", given).stdout == f"{database_url}\n"
    assert answer("db", "url", "--database", given)["url"] == given
    assert answer("db", "status", "--database", given)["url"] == given


# ------------------------------------------------------------------------------------------------------- sizes


async def test_rows_are_counted_in_small_tables(database_url: str) -> None:
    mutirao("flow", "apply", f"{FLOWS}:Order", "--database", database_url)
    mutirao("instance", "start", "order", "--count", 3, "--database", database_url)
    tables = {table["name"]: table for table in answer("db", "status", "--database", database_url)["tables"]}
    assert {"instance", "migration", "refusal"} <= tables.keys()
    assert (tables["instance"]["rows"], tables["instance"]["is_exact"]) == (3, True)
    lines = mutirao("db", "status", "--database", database_url).stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if line.split() == ["table", "rows", "size"])
    shown = [line.split()[0] for line in lines[head + 2 :]]
    assert shown == ["instance", "job", "closed", "trace", "search", "flow", "version", "and"]
    assert lines[head + 2].split()[1] == "3"


def test_role_that_may_read_sees_the_status(server: TestServer, database_url: str, role: str) -> None:
    as_role = server.url(urlsplit(database_url).path.strip("/"), role)
    assert mutirao("db", "grant", role, "read", "--database", database_url).returncode == 0
    assert answer("db", "status", "--database", as_role)["schema"] == schema().number


# ----------------------------------------------------------------------------------- schemas that are not this program's


async def test_newer_schema_can_be_looked_at(database_url: str, connection: AsyncConnection[Any]) -> None:
    newer = schema().number + 1
    await connection.execute(
        "insert into mutirao.migration (number, name, checksum) values (%s, 'later', 'x')", [newer]
    )
    status = answer("db", "status", "--database", database_url)
    assert (status["schema"], status["pending"]) == (newer, [])
    assert status["problem"].startswith("schema_too_new: ")
    said = mutirao("db", "status", "--database", database_url).stdout
    assert f"{newer:04d}, newer than this program ({schema().number:04d})" in said
    shell = mutirao("db", "shell", "--database", database_url, "--", "-At", "-c", "select 6 * 7")
    assert (shell.stdout, shell.returncode) == ("42\n", 0)


async def test_older_schema_can_be_looked_at(database_url: str, connection: AsyncConnection[Any]) -> None:
    last = schema().migrations[-1]
    await connection.execute("delete from mutirao.migration where number = %s", [last.number])
    said = mutirao("db", "status", "--database", database_url).stdout
    assert f"{last.number - 1:04d}, older than this program ({last.number:04d})" in said
    assert str(last) in said


async def test_shell_opens_on_an_embedded_database_of_a_newer_program(home: Path) -> None:
    url = mutirao("db", "url", MUTIRAO_HOME=home).stdout.strip()
    assert mutirao("db", "upgrade", MUTIRAO_HOME=home).returncode == 0
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("insert into mutirao.migration (number, name, checksum) values (9999, 'later', 'x')")
    shell = mutirao("db", "shell", "--", "-At", "-c", "select 6 * 7", MUTIRAO_HOME=home)
    assert (shell.stdout, shell.returncode) == ("42\n", 0)
    assert shell.stderr.startswith("warning: schema_too_new: ")
    assert "9999, newer than this program" in mutirao("db", "status", MUTIRAO_HOME=home).stdout

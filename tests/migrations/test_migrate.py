"""The migrator: with company, with changed files, with databases older and newer than the program."""

import secrets
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import snapshot
from psycopg import AsyncConnection, sql

from mutirao.database import migrate
from mutirao.database.connection import check_server
from mutirao.database.migrate import Functions, Migration, Schema, ensure_current, schema, upgrade
from mutirao.errors import OperatorError
from mutirao.testing.database import TestServer

UPGRADE = """
import asyncio, sys
from mutirao.database.connection import connect
from mutirao.database.migrate import ensure_current, upgrade

async def main():
    async with await connect(sys.argv[1]) as connection:
        applied = await upgrade(connection)
        await ensure_current(connection)
        print(*applied)

print("ready", flush=True)
sys.stdin.read()
asyncio.run(main())
"""


@pytest.fixture
async def empty(empty_database_url: str) -> Any:
    async with await AsyncConnection.connect(empty_database_url, autocommit=True) as connection:
        yield connection


async def one(connection: AsyncConnection[Any], query: str) -> object:
    row = await (await connection.execute(query.encode())).fetchone()
    return row and row[0]


def step(number: int, sql: str) -> Migration:
    return Migration(sql, number, f"step_{number}")


def program(*steps: Migration, functions: str = "", version: str = "1.0") -> Schema:
    return Schema(steps, Functions(functions, version))


def test_twenty_processes_upgrade_at_once_and_none_fails(empty_database_url: str) -> None:
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", UPGRADE, empty_database_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(20)
    ]
    for process in crowd:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in crowd:  # the end of their input lets them go, all together
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    said = [process.communicate()[0] for process in crowd]
    assert [process.returncode for process in crowd] == [0] * 20, said
    everything = (*schema().migrations, schema().functions)
    assert [one for one in said if one.strip()] == [" ".join(map(str, everything)) + "\n"]


async def test_upgrade_applies_each_once_and_in_order(empty: AsyncConnection[Any]) -> None:
    first, second = step(1, "create table mutirao.a ()"), step(2, "alter table mutirao.a add b int")
    assert await upgrade(empty, program(first)) == [first, program().functions]
    assert await upgrade(empty, program(first, second)) == [second, program().functions]
    assert await upgrade(empty, program(first, second)) == []
    await ensure_current(empty, program(first, second))


async def test_upgrade_that_fails_leaves_everything_as_it_was(empty: AsyncConnection[Any]) -> None:
    first, second = step(1, "create table mutirao.a ()"), step(2, "create table mutirao.b (); select 1/0")
    await upgrade(empty, program(first))
    with pytest.raises(OperatorError, match=r"0002_step_2.*division by zero") as refusal:
        await upgrade(empty, program(first, second, functions="select 2"))
    assert refusal.value.code == "migration_failed"
    assert await one(empty, "select to_regclass('mutirao.b')") is None
    await ensure_current(empty, program(first))


async def test_changed_migration_is_refused(empty: AsyncConnection[Any]) -> None:
    first = step(1, "create table mutirao.a ()")
    await upgrade(empty, program(first))
    for refused in (upgrade, ensure_current):
        with pytest.raises(OperatorError, match="0001_step_1") as refusal:
            await refused(empty, program(replace(first, sql="create table mutirao.b ()")))
        assert refusal.value.code == "migration_changed"


async def test_database_newer_than_the_program_is_refused(empty: AsyncConnection[Any]) -> None:
    first, second = step(1, "create table mutirao.a ()"), step(2, "select 1")
    await upgrade(empty, program(first, second))
    for refused in (upgrade, ensure_current):
        with pytest.raises(OperatorError, match="0002_step_2") as refusal:
            await refused(empty, program(first))
        assert refusal.value.code == "schema_too_new"


async def test_functions_of_a_newer_program_are_not_replaced(empty: AsyncConnection[Any]) -> None:
    first = step(1, "create table mutirao.a ()")
    await upgrade(empty, program(first, functions="select 10", version="1.10"))
    for refused in (upgrade, ensure_current):
        with pytest.raises(OperatorError, match=r"functions of Mutirão 1\.10.*this program is 1\.9") as refusal:
            await refused(empty, program(first, functions="select 9", version="1.9"))
        assert refusal.value.code == "schema_too_new"


@pytest.mark.parametrize(
    ("older", "newer"), [("1.9", "1.10"), ("1.0rc1", "1.0"), ("1.0.dev3", "1.0"), ("0.9.9", "1.0"), ("1.0", "1.0.1")]
)
async def test_which_of_two_versions_is_newer(empty: AsyncConnection[Any], older: str, newer: str) -> None:
    first = step(1, "create table mutirao.a ()")
    await upgrade(empty, program(first, functions="select 1", version=older))
    await upgrade(empty, program(first, functions="select 2", version=newer))
    with pytest.raises(OperatorError, match="schema_too_new"):
        await upgrade(empty, program(first, functions="select 1", version=older))


async def test_database_older_than_the_program_is_refused_without_upgrading(empty: AsyncConnection[Any]) -> None:
    first, second = step(1, "create table mutirao.a ()"), step(2, "select 1")
    with pytest.raises(OperatorError, match=r"no schema.*mutirao db upgrade") as refusal:
        await ensure_current(empty, program(first, second))
    assert refusal.value.code == "schema_too_old"
    await upgrade(empty, program(first))
    newer = program(first, second, functions="select 2", version="1.1")
    with pytest.raises(OperatorError, match=r"0001.*functions of 1\.1") as refusal:
        await ensure_current(empty, newer)
    assert refusal.value.code == "schema_too_old"
    assert (await migrate.status(empty, newer)).pending == (second, newer.functions)


async def test_functions_are_written_anew_and_those_in_no_file_are_dropped(
    connection: AsyncConnection[Any], server: TestServer
) -> None:
    clerk = f"clerk_{secrets.token_hex(4)}"
    async with await AsyncConnection.connect(server.superuser_url("postgres"), autocommit=True) as superuser:
        await superuser.execute(sql.SQL("create role {}").format(sql.Identifier(clerk)))
    await connection.execute("select mutirao.grant_role(%s::name, 'work')", [clerk])
    await connection.execute("create function mutirao.of_yesterday() returns int language sql return 1")
    await connection.execute("create function mutirao.uses_it() returns int language sql return mutirao.of_yesterday()")
    # One who has become a member of the owner has every right, and needs none of those that were granted.
    await connection.execute("insert into mutirao.granted values (current_user, 'read')")
    await connection.execute("insert into mutirao.callable values ('lock_instance', 'read')")
    await connection.execute(
        sql.SQL("grant execute on function mutirao.lock_instance to {}").format(sql.Identifier(clerk))
    )
    await connection.execute(
        "create or replace function mutirao.note(text) returns jsonb language sql immutable return '{}'::jsonb"
    )
    await connection.execute("update mutirao.program set version = '0.0.1', checksum = 'of another program'")
    assert await upgrade(connection) == [schema().functions]
    assert await one(connection, "select mutirao.note('why') ->> 'reason'") == "why"
    assert await one(connection, "select count(*) from pg_proc where proname = 'of_yesterday'") == 0
    may = "select has_function_privilege('{}', 'mutirao.{}', 'execute')"
    assert await one(connection, may.format(clerk, "cancel(bigint, text, text)")) is True
    assert await one(connection, may.format(clerk, "grant_role(name, text)")) is False
    assert await one(connection, may.format(clerk, "lock_instance(bigint)")) is False


async def test_role_without_rights_is_told_so(server: TestServer, empty_database_url: str) -> None:
    database = empty_database_url.partition("@/")[2].partition("?")[0]
    async with await AsyncConnection.connect(server.superuser_url(database), autocommit=True) as superuser:
        await superuser.execute("drop role if exists visitor")
        await superuser.execute("create role visitor login")
        async with await AsyncConnection.connect(server.url(database, "visitor"), autocommit=True) as visitor:
            with pytest.raises(OperatorError) as refusal:
                await upgrade(visitor, program(step(1, "select 1")))
        await superuser.execute("drop role visitor")
    assert refusal.value.code == "upgrade_not_allowed"


async def test_server_older_than_fifteen_is_refused(
    connection: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psycopg.ConnectionInfo.server_version", 140_011)
    with pytest.raises(OperatorError, match="PostgreSQL 14") as refusal:
        check_server(connection)
    assert refusal.value.code == "server_too_old"


def test_first_line_of_every_migration_says_what_and_whether_workers_survive() -> None:
    for migration in schema().migrations:
        first = migration.sql.partition("\n")[0]
        assert first.startswith("-- "), migration
        assert "unning workers" in first, migration


async def test_snapshot_shows_what_the_migrations_make(servers: dict[str, TestServer]) -> None:
    async with servers["pg18"].empty() as url:
        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            await upgrade(connection)
        made = snapshot.schema_of(url)
    assert made == snapshot.SNAPSHOT.read_text("utf-8"), "run `make snapshot` and look at the difference"

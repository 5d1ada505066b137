"""Backup and restore: between servers of different versions, whole or not at all, without superuser rights."""

import os
from pathlib import Path

import pytest

from mutirao.database.backup import backup, left_out, restore
from mutirao.database.connection import connect, refusals
from mutirao.database.migrate import ensure_current
from mutirao.errors import LeaseLost, OperatorError, RequestError
from mutirao.testing.database import TestServer

SHOP = """
select mutirao.create_flow('shop');
insert into shop.wed_attr (aname, adv) values ('stage', 'ready');
insert into shop.wed_trig (trname, cpred) values ('sell', $$stage = 'ready'$$);
insert into shop.wed_trig (cpred, cfinal) values ($$stage = 'sold'$$, true);
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "saved.mutirao"


async def mark(url: str, text: str) -> None:
    """Leave something of ours in the database that must come back."""
    async with await connect(url) as connection:
        await connection.execute("insert into mutirao.refusal values (%s, 'MU399', 'made by a test')", [text])


async def marks(url: str) -> list[str]:
    async with await connect(url) as connection:
        found = await connection.execute("select code from mutirao.refusal where sqlstate = 'MU399'")
        return [code for (code,) in await found.fetchall()]


async def execute(url: str, statement: str) -> None:
    async with await connect(url) as connection:
        await connection.execute(statement.encode())


@pytest.mark.parametrize(("origin", "target"), [("pg18", "pg18"), ("pg18", "pg15"), ("pg15", "pg18"), ("pg15", "pg15")])
async def test_backup_of_any_server_is_restored_into_any_other(
    servers: dict[str, TestServer], origin: str, target: str, file: Path
) -> None:
    if "pg15" not in servers:
        pytest.skip("PostgreSQL 15 is not installed")
    async with servers[origin].clone() as old, servers[target].empty() as new:
        # Somebody's data may look like the line that is left out for older servers.
        await mark(old, "SET transaction_timeout = 0;")
        assert await backup(old, file) == file.stat().st_size
        await restore(new, file)
        assert await marks(new) == ["SET transaction_timeout = 0;"]
        async with await connect(new) as connection:
            await ensure_current(connection)


async def test_flow_goes_on_where_it_was_restored(servers: dict[str, TestServer], file: Path) -> None:
    origin, target = servers["pg18"], servers.get("pg15", servers["pg18"])
    async with origin.clone() as old, target.empty() as new:
        await execute(
            old,
            """
            select mutirao.create_flow('shop');
            insert into shop.wed_attr (aname, adv) values ('stage', 'ready');
            insert into shop.wed_trig (trname, cpred) values ('tr_pack', $$stage = 'ready'$$);
            insert into shop.wed_trig (cpred, cfinal) values ($$stage = 'packed'$$, true);
            """,
        )
        await execute(old, "insert into shop.wed_flow default values")
        await backup(old, file)
        await restore(new, file)
        async with await connect(new) as connection:
            await connection.execute("insert into shop.wed_flow default values")
            # In transactions of their own, whatever numbers this server gives them: each is a new version.
            await connection.execute("insert into shop.wed_attr (aname) values ('colour')")
            found = await connection.execute("select stage, colour from shop.wed_flow")
            assert await found.fetchall() == [("ready", None)] * 2
            jobs = await (await connection.execute("select from shop.job_pool")).fetchall()
            assert len(jobs) == 2


async def test_restored_functions_are_not_open_to_everybody(server: TestServer, file: Path) -> None:
    async with server.clone() as old, server.empty() as new:
        closed = "select count(*) from pg_proc where has_function_privilege('public', oid, 'execute')"
        closed += " and pronamespace = 'mutirao'::regnamespace and prosecdef"
        await backup(old, file)
        await restore(new, file)
        async with await connect(new) as connection:
            assert await (await connection.execute(closed.encode())).fetchone() == (0,)


async def test_schemas_of_flows_are_saved_and_others_are_not(server: TestServer, file: Path) -> None:
    async with server.clone() as old, server.empty() as new:
        await execute(
            old, "create schema shop; create view shop.wed_flow as select 1 as wid; create schema foreign_one"
        )
        await execute(old, "insert into mutirao.flow (name, live, created_at) values ('shop', true, now())")
        await backup(old, file)
        await restore(new, file)
        async with await connect(new) as connection:
            found = await connection.execute(
                "select to_regclass('shop.wed_flow')::text, to_regnamespace('foreign_one')"
            )
            assert await found.fetchone() == ("shop.wed_flow", None)


async def test_restore_into_a_database_in_use_is_refused_unless_forced(server: TestServer, file: Path) -> None:
    async with server.clone() as old, server.clone() as other:
        await mark(old, "old")
        await backup(old, file)
        await mark(other, "other")
        await execute(other, SHOP)
        with pytest.raises(RequestError) as refusal:
            await restore(other, file)
        assert refusal.value.code == "database_not_empty"
        assert await marks(other) == ["other"]
        await restore(other, file, force=True)
        assert await marks(other) == ["old"]


async def test_damaged_file_changes_nothing(server: TestServer, file: Path) -> None:
    async with server.clone() as old, server.clone() as other:
        await backup(old, file)
        os.truncate(file, file.stat().st_size - 200)
        await mark(other, "other")
        with pytest.raises(OperatorError, match="nothing was changed") as refusal:
            await restore(other, file, force=True)
        assert refusal.value.code == "restore_failed"
        assert await marks(other) == ["other"]


async def test_restore_that_meets_a_schema_of_the_same_name_changes_nothing(server: TestServer, file: Path) -> None:
    async with server.clone() as old, server.empty() as new:
        await execute(
            old, "create schema shop; insert into mutirao.flow (name, live, created_at) values ('shop', true, now())"
        )
        await backup(old, file)
        await execute(new, "create schema shop")
        with pytest.raises(OperatorError, match=r'"shop" already exists'):
            await restore(new, file)
        async with await connect(new) as connection:
            found = await connection.execute("select to_regnamespace('mutirao')")
            assert await found.fetchone() == (None,)


async def test_backup_replaces_no_file_unless_forced(server: TestServer, file: Path) -> None:
    async with server.clone() as url:
        file.write_text("precious")
        with pytest.raises(RequestError) as refusal:
            await backup(url, file)
        assert refusal.value.code == "file_exists"
        assert file.read_text() == "precious"
        await backup(url, file, force=True)
        assert file.read_bytes().startswith(b"PGDMP")


async def test_backup_that_fails_leaves_no_file(server: TestServer, tmp_path: Path) -> None:
    async with server.clone() as url:
        with pytest.raises(OperatorError) as refusal:
            await backup(url, tmp_path / "nowhere" / "saved")
        assert refusal.value.code == "backup_failed"
        assert not list(tmp_path.iterdir())


async def test_backup_of_a_database_without_our_schema_is_refused(server: TestServer, file: Path) -> None:
    async with server.empty() as url:
        with pytest.raises(RequestError) as refusal:
            await backup(url, file)
    assert refusal.value.code == "nothing_to_back_up"


async def test_both_say_what_they_are_doing(server: TestServer, file: Path) -> None:
    said: list[str] = []
    async with server.clone() as old, server.empty() as new:
        await backup(old, file, report=said.append)
        assert any("refusal" in line for line in said)
        said.clear()
        await restore(new, file, report=said.append)
        assert any("refusal" in line for line in said)


async def take(url: str) -> tuple[int, int, int]:
    """Start an instance and take its job: instance, job and attempt."""
    async with await connect(url) as connection:
        await connection.execute("insert into shop.wed_flow default values")
        found = await connection.execute("select wid, job, attempt from shop.take('sell')")
        [(instance, job, attempt)] = await found.fetchall()
        return instance, job, attempt


async def test_who_had_a_job_before_a_restore_cannot_write_after_it(database_url: str, file: Path) -> None:
    """Numbers go on where those of the replaced engine ended: none of them means something else than it did."""
    await execute(database_url, SHOP)
    await backup(database_url, file)
    before = await take(database_url)
    await restore(database_url, file, force=True)
    after = await take(database_url)
    assert all(new > old for new, old in zip(after, before, strict=True))
    async with await connect(database_url) as connection:
        with pytest.raises(LeaseLost), refusals():
            await connection.execute("select mutirao.complete(%s, %s, '{}')", before[1:])


async def test_an_engine_without_flows_gives_way_to_a_restore(database_url: str, file: Path) -> None:
    await mark(database_url, "somebody was here")
    await backup(database_url, file)
    await restore(database_url, file)
    assert await marks(database_url) == ["somebody was here"]


async def test_tables_of_others_are_named_as_left_out(database_url: str) -> None:
    assert await left_out(database_url) == []
    await execute(database_url, 'create schema mine; create table mine.ledger (); create table mine."My Table" ()')
    assert await left_out(database_url) == ['mine."My Table"', "mine.ledger"]

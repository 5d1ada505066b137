"""From a release to this program: the backup of an engine at work is restored, brought up to date, and goes on.

`released_0019.mutirao.gz` was written by the release whose newest migration was 0019. In it: five orders (one being packed, one sent,
one whose payment failed, one interrupted, one being paid), a live flow made by SQL, and a schedule. `released_0026.mutirao.gz` has a
clerk besides, three visits (one not begun, one whose call the clerk has selected, one whose call is done) whose tasks have a class, and
an audit; an ordering lists the tasks of both.
"""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from driver import Engine
from psycopg import AsyncConnection

from mutirao.database.backup import restore
from mutirao.database.migrate import ensure_current, upgrade
from mutirao.testing.database import TestServer

RELEASES = sorted(Path(__file__).parent.glob("released_*.gz"))
FUNCTIONS = """
    select p.oid::regprocedure::text, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.prosecdef, p.proacl::text
    from pg_proc p where p.pronamespace in ('mutirao'::regnamespace, 'mutirao_secret'::regnamespace) order by 1"""
RELATIONS = """
    select c.oid::regclass::text, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, c.relkind
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace in ('mutirao'::regnamespace, 'mutirao_secret'::regnamespace) order by 1, 2"""


def _named(release: Path) -> str:
    return release.name.partition(".")[0]


@pytest.fixture(params=RELEASES, ids=_named)
async def engine(request: pytest.FixtureRequest, server: TestServer, tmp_path: Path) -> AsyncIterator[Engine]:
    file = tmp_path / "release"
    file.write_bytes(gzip.decompress(request.param.read_bytes()))
    async with server.empty() as url:
        await restore(url, file)
        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            assert await upgrade(connection)
            await ensure_current(connection)
        async with Engine(url) as made:
            yield made


async def test_an_upgraded_schema_is_that_of_a_new_one(engine: Engine, server: TestServer) -> None:
    async with server.empty() as url:
        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            await upgrade(connection)
        async with Engine(url) as new:
            for question in (FUNCTIONS, RELATIONS):
                assert await engine.rows(question) == await new.rows(question)


async def test_what_was_at_work_goes_on(engine: Engine) -> None:
    assert [await engine.status(instance) for instance in range(1, 6)] == [
        "open.running",
        "closed.completed",
        "open.exception",
        "open.notrunning.suspended",
        "open.running",
    ]
    [(packing, attempt)] = await engine.rows("select id, attempt from mutirao.job where instance = 1")
    await engine.rows("""select mutirao.complete(%s, %s, '{"packed": true}')""", packing, attempt)
    await engine.do("order", "send", sent=True)
    assert await engine.status(1) == "closed.completed"
    await engine.retry(await engine.job(3, "pay"))
    await engine.do("order", "pay", paid=True, sent=True)
    assert await engine.status(3) == "closed.completed"
    await engine.resume(4)
    await engine.do("order", "pack", sent=True)
    assert await engine.status(4) == "closed.completed"
    assert await engine.one("select count(*) from mutirao.schedule") == 1


async def test_a_live_flow_goes_on(engine: Engine) -> None:
    await engine.do("reservation", "tr_a2", a2="done")
    await engine.do("reservation", "tr_a3", a3="done")
    await engine.do("reservation", "tr_final", a1="over")
    assert await engine.status(6) == "closed.completed"
    await engine.rows("insert into reservation.wed_flow default values")
    await engine.rows("insert into reservation.wed_attr (aname) values ('a4')")
    assert len(await engine.rows("select from reservation.job_pool")) == 2


@pytest.mark.parametrize("engine", RELEASES[1:], indirect=True, ids=_named)
async def test_classes_and_orderings_that_meant_nothing_yet_hold_from_now_on(engine: Engine) -> None:
    assert await engine.rows("select name, conflicts from mutirao.class") == [("Registry", [])]
    held = "select j.instance from mutirao.job j join mutirao.class c on c.id = j.class where j.gate = 'holds'"
    assert await engine.rows(held) == [(8,)]
    await engine.rows("select mutirao.put_class('Registry', '{Registry}')")
    call = await engine.job(7, "call")
    async with engine.refused("class_held", "instance 8"):
        await engine.rows("select mutirao.select_item(1, %s)", call)
    [(selected, attempt)] = await engine.rows("select id, attempt from mutirao.job where instance = 8")
    await engine.rows("""select mutirao.finish_item(1, %s, %s, '{"customer": "Museum"}')""", selected, attempt)
    await engine.rows("select mutirao.select_item(1, %s)", call)
    await engine.do("audit", "read")
    assert await engine.rows("select from mutirao.stamp")

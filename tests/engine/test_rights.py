"""Who may do what, with real roles: read, work, define, and nobody."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import psycopg
import pytest
from driver import Engine, document, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection, errors, sql
from psycopg.types.json import Jsonb

import mutirao
from mutirao import Change, Flow, task
from mutirao.database.sql import query
from mutirao.people import authenticate_session, first_administrator, sign_in
from mutirao.testing import run_until_quiet
from mutirao.testing.database import TestServer

Granted = Callable[[str | None], Awaitable[Engine]]


@pytest.fixture
async def granted(engine: Engine, server: TestServer) -> AsyncIterator[Granted]:
    """Makes a role, lets it read, work or define, and gives an engine that is spoken to by it."""
    database = urlsplit(engine.url).path.strip("/")
    await engine.apply("f", {"a": 0}, {"go": "a = 0"}, final="a = 1")
    await engine.create("g", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")

    async def make(level: str | None) -> Engine:
        role = f"role_{secrets.token_hex(4)}"
        async with await AsyncConnection.connect(server.superuser_url(database), autocommit=True) as admin:
            await admin.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
        if level:
            await engine.rows("select mutirao.grant_role(%s, %s)", role, level)
        return await made.enter_async_context(Engine(server.url(database, role)))

    async with AsyncExitStack() as made:
        yield make


READING = [
    "select * from mutirao.instance",
    "select * from mutirao.trace",
    "select * from f.wed_flow",
    "select * from g.wed_trace",
    "select * from g.job_pool",
    "select mutirao.now()",
    "select * from mutirao.task_ids('f')",
    "select mutirao.flow_document(version) from mutirao.flow",
    "select * from mutirao.instance i, mutirao.why(i.id)",
    "select * from mutirao.persons(null)",
    "select * from mutirao.roles(null)",
    query("load"),  # a clock or a worker with metrics needs no more than this
]
WORKING = [
    "select mutirao.start('f')",
    "insert into g.wed_flow default values",
    "select * from f.take('go')",
    "select * from mutirao.claim('me', array[3])",
    "select * from mutirao.turn('me', '{}', '{}', '{}', '{}', array[3], 1)",
    "select * from mutirao.renew('{}', '{}')",
    "select * from mutirao.release('{}', '{}')",
    "select * from mutirao.turn_clock()",
    "select mutirao.announce('me', '{3}')",
    "select mutirao.leave('me')",
]
DEFINING = [
    "insert into g.wed_attr (aname) values ('b')",
    "update g.wed_trig set priority = 1",
    "delete from g.wed_trig where cfinal",
    "select mutirao.create_flow('h')",
    'select mutirao.apply_flow(\'{"name": "k"}\')',
    "select mutirao.add_person(null, 'clerk_' || random())",
    "select mutirao.add_role(null, 'role_' || random())",
    "select * from mutirao.begin_sign_in('nobody', null)",
]
NEVER = [
    "select * from mutirao_secret.password",
    "select * from mutirao_secret.session",
    "select * from mutirao_secret.token",
    "insert into mutirao.member select r.id, 1 from mutirao.role r",
    "update mutirao.person set disabled_at = null",
    "select mutirao.give_back('{}', null, 'me', 'no reason')",
    "update mutirao.instance set status = 'open.exception'",
    "delete from mutirao.job",
    "insert into mutirao.granted values ('public', 'define')",
    "select mutirao.grant_role('tester', 'define')",
    "select mutirao.finish_jobs('me', '{}', '{}', '{}', '{}', null)",
    "select mutirao.settle('{}', '{}', null)",
    "select mutirao.condition_function('x', 'true', '{}', '{}')",
    "select mutirao_rule.look_1('{}')",
    "select mutirao.ask('true', 'pg_class', null)",
    "create table mutirao.mine ()",
    "create table f.mine ()",
    "update mutirao.test_clock set ahead = '1 year'",
    "delete from f.wed_flow",
]


async def check(engine: Engine, allowed: list[str], denied: list[str]) -> None:
    for statement in allowed:
        await engine.rows(statement)
    for statement in denied:
        with pytest.raises(errors.InsufficientPrivilege):
            await engine.rows(statement)


async def test_a_role_that_was_granted_nothing_may_do_nothing(granted: Granted) -> None:
    await check(await granted(None), [], READING + WORKING + DEFINING + NEVER)


async def test_a_reader_reads_and_writes_nothing(granted: Granted) -> None:
    await check(await granted("read"), READING, WORKING + DEFINING + NEVER)


async def test_a_worker_works_and_defines_nothing(granted: Granted) -> None:
    await check(await granted("work"), READING + WORKING, DEFINING + NEVER)


async def test_a_definer_defines_and_touches_no_table(granted: Granted) -> None:
    await check(await granted("define"), READING + WORKING + DEFINING, NEVER)


async def test_a_server_that_was_granted_define_lets_people_sign_in(granted: Granted) -> None:
    definer = await granted("define")
    async with mutirao.Engine(definer.url, upgrade=False) as server:
        first = await first_administrator(server)
        assert first is not None
        came = await sign_in(server, first.name, first.password, address="192.0.2.1")
        assert (await authenticate_session(server, came.secret)).is_administrator


async def test_a_role_can_be_granted_less_than_it_had(granted: Granted, engine: Engine) -> None:
    role = await granted("define")
    name = await role.one("select session_user")
    await engine.rows("select mutirao.grant_role(%s, 'read')", name)
    await check(role, READING, WORKING + DEFINING + NEVER)


async def test_what_was_granted_can_be_taken_back(granted: Granted, engine: Engine) -> None:
    role = await granted("define")
    name = await role.one("select session_user")
    await engine.rows("select mutirao.revoke_role(%s)", name)
    await check(role, [], READING + WORKING + DEFINING + NEVER)
    async with engine.refused("wrong_call", "was granted nothing"):
        await engine.rows("select mutirao.revoke_role(%s)", name)


async def test_who_writes_in_another_name_leaves_their_own_beside_it(granted: Granted, engine: Engine) -> None:
    clerk = await granted("define")
    role = await clerk.one("select session_user")
    ((instance,),) = await clerk.rows("select * from mutirao.start_many('f', array['{}'::jsonb], writer => 'the boss')")
    await clerk.rows("select mutirao.cancel(%s, writer => 'the boss')", instance)
    assert [step.writer for step in await engine.trace(instance)] == [f"the boss ({role})"] * 2
    await clerk.rows(
        "select mutirao.apply_flow(%s, writer => 'the boss')", Jsonb(document("k", {"a": 0}, {"go": "a = 0"}))
    )
    assert (
        await engine.one("select v.made_by from mutirao.version v order by v.id desc limit 1") == f"the boss ({role})"
    )


async def test_a_flow_made_later_is_open_to_those_who_were_granted_before(granted: Granted, engine: Engine) -> None:
    reader, worker, definer = [await granted(level) for level in ("read", "work", "define")]
    await definer.create("later", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")
    await engine.apply("more", {"a": 0}, {"go": "a = 0"}, final="a = 1")
    await worker.rows("insert into later.wed_flow default values")
    await worker.rows("insert into more.wed_flow default values")
    assert await reader.rows("select a from later.wed_flow") == [("x",)]
    with pytest.raises(errors.InsufficientPrivilege):
        await worker.rows("insert into later.wed_attr (aname) values ('b')")


async def test_a_new_shape_of_a_flow_keeps_its_grants(granted: Granted, engine: Engine) -> None:
    worker = await granted("work")
    await engine.apply("f", {"b": "x"}, {"go": "b = 'x'"}, final="b = 'y'")
    await worker.rows("insert into f.wed_flow default values")


async def test_a_worker_does_a_whole_job_with_no_right_on_any_table(granted: Granted) -> None:
    worker = await granted("work")
    instance = await worker.start("f")
    assert await worker.do("f", "go", a=1) == "ok"
    assert await worker.status(instance) == "closed.completed"
    name = await worker.one("select session_user")
    assert [step.writer for step in await worker.trace(instance)] == [name, name]
    async with await AsyncConnection.connect(worker.url) as session:
        await session.execute("insert into g.wed_flow default values")
        found = await session.execute("select attempt from g.take('go')")
        ((attempt,),) = await found.fetchall()
        await session.execute(f"set local mutirao.attempt = '{attempt}'".encode())
        await session.execute("update g.wed_flow set a = 'done'")
    assert await worker.one("select count(*) from mutirao.closed") == 2


async def test_conditions_run_by_a_worker_see_nothing_the_worker_made(granted: Granted, engine: Engine) -> None:
    """A caller's search_path, temporary objects and operators must not reach into a look."""
    worker = await granted("work")
    async with await AsyncConnection.connect(worker.url, autocommit=True) as session:
        await session.execute("create temporary table instance (id int)")
        await session.execute("set search_path = pg_temp, public")
        found = await session.execute("select mutirao.start('f')")
        ((instance,),) = await found.fetchall()
    assert await engine.jobs(instance) == {"go": "ready"}


async def test_an_unknown_role_or_level_is_refused(granted: Granted, engine: Engine) -> None:
    role = await (await granted(None)).one("select session_user")
    async with engine.refused("wrong_call", "read, work or define"):
        await engine.rows("select mutirao.grant_role(%s, 'everything')", role)
    async with engine.refused("wrong_call", "nobody_at_all"):
        await engine.rows("select mutirao.grant_role('nobody_at_all', 'read')")


async def test_nothing_of_the_engine_is_for_everybody_and_definer_functions_look_nowhere_else(engine: Engine) -> None:
    public = """
        select p.oid::regprocedure::text from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        where p.pronamespace = 'mutirao'::regnamespace and a.grantee = 0"""
    assert await engine.rows(public) == []
    loose = """
        select p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'mutirao'::regnamespace and p.prosecdef
        and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false)"""
    assert await engine.rows(loose) == []
    callable_by_none = """
        select c.function from mutirao.callable c
        where not exists (select from pg_proc p where p.pronamespace = 'mutirao'::regnamespace and p.proname = c.function
          and (p.prosecdef or p.provolatile = 'i' or p.proname = 'now'))"""
    assert await engine.rows(callable_by_none) == []


async def test_a_definer_cannot_smuggle_sql_into_a_definition(granted: Granted, engine: Engine) -> None:
    definer = await granted("define")
    before = await engine.everything()
    for statement in (
        "insert into g.wed_attr (aname, atype, adv) values ('b', 'text); delete from mutirao.granted; select (1', '1')",
        "insert into g.wed_attr (aname) values ('b int); delete from mutirao.granted; --')",
        "insert into g.wed_trig (trname, cpred) values ('x', 'true); delete from mutirao.granted; --')",
        "insert into g.wed_trig (trname, cpred) values ('x() ; delete from mutirao.granted', 'true')",
    ):
        with pytest.raises(psycopg.Error, match=r"^(flow_invalid|attribute_reserved|condition_\w+):"):
            await definer.rows(statement)
    bad = document("k", {"a": 0}, {"go": {"depends": {"task": "go) or true; --", "state": "failed"}}})
    with pytest.raises(psycopg.Error, match=r"^unknown_task"):
        await definer.rows("select mutirao.apply_flow(%s)", Jsonb(bad))
    assert await engine.everything() == before


async def test_a_role_that_may_work_runs_a_worker_for_a_flow_that_is_in_place(engine: Engine, granted: Granted) -> None:
    class Kept(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        async def do(self) -> Change:
            return {"done": True}

    async with mutirao.Engine(engine.url) as owner:
        await owner.apply(Kept)
        number = await owner.start(Kept())
    worker = await granted("work")
    async with mutirao.Engine(worker.url) as mine:
        await run_until_quiet(mine, [Kept])
        assert (await mine.instance(number)).status == "closed.completed"


async def test_granting_to_the_owner_takes_nothing_away(engine: Engine) -> None:
    with pytest.raises(psycopg.Error, match="wrong_call"):
        await engine.rows("select mutirao.grant_role(current_user, 'read')")


async def test_a_worker_drives_a_batch_of_those_who_define_but_neither_stops_nor_resumes_it(
    granted: Granted, engine: Engine
) -> None:
    worker, definer = await granted("work"), await granted("define")
    await engine.start("f", a=1)
    batch = await definer.one('select mutirao.drop_instances(\'{"flow": "f"}\')')
    stop, resume = f"select mutirao.stop_batch({batch})", f"select mutirao.resume_batch({batch})"
    await check(worker, [], [stop])
    await check(definer, [stop], [])
    await check(worker, [f"select mutirao.step_batch({batch})"], [resume])
    assert await engine.one("select count(*) from mutirao.closed") == 1
    await check(definer, [resume, stop, resume], [])
    await worker.rows("select * from mutirao.turn_clock(10, 'batches')")
    assert await engine.one("select count(*) from mutirao.closed") == 0
    mine = await worker.one("select mutirao.make_batch('suspend', '{\"flow\": \"f\"}')")
    await check(worker, [f"select mutirao.stop_batch({mine})", f"select mutirao.resume_batch({mine})"], [])

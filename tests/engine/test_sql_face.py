"""The SQL face: a session that speaks nothing but SQL starts instances, takes jobs and ends them."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection

FLOW = "shop"


@pytest.fixture
async def psql(engine: Engine) -> AsyncIterator[AsyncConnection[Any]]:
    """A session in a flow's schema, as psql would be: autocommit, until it says BEGIN."""
    await engine.create(
        FLOW,
        {"stage": "new", "paid": None, "sent": None},
        {
            "pay": "stage = 'new' and paid is null",
            "send": "stage = 'new' and sent is null",
            "close": "stage = 'new' and paid is not null and sent is not null",
        },
        final="stage = 'done'",
    )
    async with await AsyncConnection.connect(engine.url, autocommit=True) as session:
        await session.execute(f"set search_path = {FLOW}".encode())
        yield session


async def take(psql: AsyncConnection[Any], task: str) -> tuple[int, int]:
    """The attempt and the instance."""
    found = await psql.execute("select attempt, wid from take(%s)", [task])
    row = await found.fetchone()
    assert row is not None
    return row[0], row[1]


async def write(psql: AsyncConnection[Any], attempt: int, statement: str) -> None:
    async with psql.transaction():
        await psql.execute(f"set local mutirao.attempt = '{attempt}'".encode())
        await psql.execute(statement.encode())


async def test_default_values_start_an_instance(engine: Engine, psql: AsyncConnection[Any]) -> None:
    found = await psql.execute("insert into wed_flow default values returning wid, stage, paid")
    row = await found.fetchone()
    assert row is not None
    assert row[1:] == ("new", None)
    assert await engine.jobs(row[0]) == {"pay": "ready", "send": "ready"}


async def test_an_insert_gives_a_state_and_null_is_a_value(engine: Engine, psql: AsyncConnection[Any]) -> None:
    found = await psql.execute("insert into wed_flow (paid) values ('cash') returning wid")
    ((instance,),) = await found.fetchall()
    assert await engine.state(instance) == {"stage": "new", "paid": "cash", "sent": None}
    async with engine.refused("nothing_fires"):
        await psql.execute("insert into wed_flow (stage) values (null)")
    async with engine.refused("wrong_call", "wid"):
        await psql.execute("insert into wed_flow (wid) values (7)")


async def test_a_session_takes_jobs_writes_and_commits(engine: Engine, psql: AsyncConnection[Any]) -> None:
    await psql.execute("insert into wed_flow default values")
    for task, change in (("pay", "paid = 'cash'"), ("send", "sent = 'ship'"), ("close", "stage = 'done'")):
        attempt, wid = await take(psql, task)
        await write(psql, attempt, f"update wed_flow set {change} where wid = {wid}")
    found = await psql.execute("select stage, paid, sent from wed_flow")
    assert await found.fetchall() == [("done", "cash", "ship")]
    assert await engine.rows("select status::text from mutirao.closed") == [("closed.completed",)]


async def test_take_shows_the_job_its_payload_and_how_long_it_is_leased(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    instance = await engine.start(FLOW)
    found = await psql.execute(
        "select job, wid, payload, extract(epoch from lease_until - mutirao.now()) from take('pay', %s)", [instance]
    )
    ((job, wid, payload, lease),) = await found.fetchall()
    assert (job, wid, payload) == (
        await engine.job(instance, "pay"),
        instance,
        {"stage": "new", "paid": None, "sent": None},
    )
    assert 890 < lease <= 900
    assert await (await psql.execute("select * from take('pay')")).fetchall() == []
    pool = await psql.execute("select trname, lckid, status::text from job_pool order by tgid")
    assert await pool.fetchall() == [("pay", "tester", "running"), ("send", None, "ready")]


async def test_take_is_leased_as_long_as_the_tasks_timeout(engine: Engine, psql: AsyncConnection[Any]) -> None:
    await psql.execute("update wed_trig set timeout = '30 s' where trname = 'pay'")
    instance = await engine.start(FLOW)
    await take(psql, "pay")
    await engine.advance(seconds=31)
    await engine.tick()
    assert await engine.jobs(instance) == {"pay": "waiting", "send": "ready"}


async def test_an_update_without_an_attempt_is_refused(engine: Engine, psql: AsyncConnection[Any]) -> None:
    instance = await engine.start(FLOW)
    async with engine.refused("attempt_missing", f"{instance}"):
        await psql.execute("update wed_flow set paid = 'cash'")


async def test_an_update_with_an_attempt_that_is_not_current_is_refused(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    await engine.start(FLOW)
    attempt, wid = await take(psql, "pay")
    await engine.advance(minutes=20)
    await engine.tick()
    async with engine.refused("lease_lost", f"attempt {attempt}"):
        await write(psql, attempt, f"update wed_flow set paid = 'cash' where wid = {wid}")


async def test_an_update_of_rows_that_are_not_its_own_is_refused_whole(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    await engine.start_many(FLOW, [{}, {}])
    attempt, _ = await take(psql, "pay")
    async with engine.refused("lease_lost"):
        await write(psql, attempt, "update wed_flow set paid = 'cash'")


async def test_the_number_of_an_instance_cannot_change_and_no_instance_is_deleted(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    await engine.start(FLOW)
    attempt, wid = await take(psql, "pay")
    async with engine.refused("wrong_call", "wid"):
        await write(psql, attempt, f"update wed_flow set wid = 99 where wid = {wid}")
    async with engine.refused("wrong_call", "mutirao.cancel"):
        await psql.execute("delete from wed_flow")


async def test_an_update_may_compute_from_what_is_there_and_may_change_nothing(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    instance = await engine.start(FLOW)
    attempt, wid = await take(psql, "pay")
    await write(psql, attempt, f"update wed_flow set paid = stage || '!' where wid = {wid}")
    attempt, _ = await take(psql, "send")
    await write(psql, attempt, f"update wed_flow set sent = sent where wid = {wid}")
    assert await engine.state(instance) == {"stage": "new", "paid": "new!", "sent": None}
    assert await engine.kinds(instance) == ["start", "finish", "finish"]


async def test_parallel_branches_write_different_attributes_without_a_conflict(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    instance = await engine.start(FLOW)
    pay, wid = await take(psql, "pay")
    send = await engine.take(FLOW, "send")
    async with psql.transaction():
        await psql.execute(f"set local mutirao.attempt = '{pay}'".encode())
        await engine.complete(send, sent="ship")
        await psql.execute("update wed_flow set paid = 'cash' where wid = %s", [wid])
    assert await engine.state(instance) == {"stage": "new", "paid": "cash", "sent": "ship"}


async def test_a_final_write_with_jobs_pending_is_refused_and_the_transaction_undone(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    await engine.start(FLOW)
    attempt, wid = await take(psql, "pay")
    async with engine.refused("final_blocked"):
        await write(psql, attempt, f"update wed_flow set stage = 'done' where wid = {wid}")
    await write(psql, attempt, f"update wed_flow set paid = 'cash' where wid = {wid}")


async def test_a_session_that_rolls_back_has_written_nothing_and_keeps_its_job(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    instance = await engine.start(FLOW)
    attempt, wid = await take(psql, "pay")
    before = await engine.everything()
    async with psql.transaction(force_rollback=True):
        await psql.execute(f"set local mutirao.attempt = '{attempt}'".encode())
        await psql.execute("update wed_flow set paid = 'cash' where wid = %s", [wid])
    assert await engine.everything() == before
    await write(psql, attempt, f"update wed_flow set paid = 'cash' where wid = {wid}")
    assert (await engine.state(instance))["paid"] == "cash"


async def test_what_runs_in_a_cancelled_instance_may_still_be_written(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    instance = await engine.start(FLOW)
    attempt, wid = await take(psql, "pay")
    await engine.cancel(instance)
    await write(psql, attempt, f"update wed_flow set paid = 'cash' where wid = {wid}")
    assert await engine.status(instance) == "closed.aborted"
    assert (await engine.state(instance))["paid"] == "cash"


async def test_the_views_have_the_columns_of_the_paper(engine: Engine, psql: AsyncConnection[Any]) -> None:
    columns: dict[str, list[str]] = {}
    for table, column in await engine.rows(
        "select table_name, column_name from information_schema.columns where table_schema = %s order by ordinal_position",
        FLOW,
    ):
        columns.setdefault(table, []).append(column)
    assert columns["wed_attr"][:2] == ["aname", "adv"]
    assert columns["wed_trig"][:8] == ["tgid", "tgname", "enabled", "trname", "cname", "cpred", "cfinal", "timeout"]
    assert columns["wed_trace"][:6] == ["wid", "state", "trf", "trw", "status", "tstmp"]
    assert columns["job_pool"][:6] == ["wid", "tgid", "trname", "lckid", "timeout", "payload"]
    assert columns["wed_flow"] == ["wid", "stage", "paid", "sent"]
    assert psql.info.dbname


# --------------------------------------------------------------------------------------- a flow from a program, in SQL


async def test_a_flow_from_a_program_is_visible_and_workable_in_sql(engine: Engine) -> None:
    await engine.apply(
        "trip",
        {"a": 0, "b": True, "note": {"type": "json", "default": {"k": 1}}},
        {"one": "a = 0", "two": after("one")},
        final="a = 2",
    )
    async with await AsyncConnection.connect(engine.url, autocommit=True) as psql:
        await psql.execute("set search_path = trip")
        await psql.execute("insert into wed_flow default values")
        attempt, wid = await take(psql, "one")
        await write(psql, attempt, f"update wed_flow set a = 1 where wid = {wid}")
        attempt, _ = await take(psql, "two")
        await write(psql, attempt, f"update wed_flow set a = a + 1, b = false where wid = {wid}")
        found = await psql.execute("select a, b, note from wed_flow")
        assert await found.fetchall() == [(2, False, {"k": 1})]
        shown = await psql.execute("select trname, cpred, cfinal, fires from wed_trig order by tgid")
        assert await shown.fetchall() == [
            ("_FINAL", "a = 2", True, "each"),
            ("one", "a = 0", False, "each"),
            ("two", '{"task": "one", "state": "succeeded"}', False, "once"),
        ]
    assert await engine.status(wid) == "closed.completed"


@pytest.mark.parametrize(
    "statement",
    [
        "insert into trip.wed_attr (aname) values ('z')",
        "update trip.wed_attr set adv = '5'",
        "insert into trip.wed_trig (trname, cpred) values ('z', 'a = 1')",
        "update trip.wed_trig set cpred = 'a = 7' where trname = 'one'",
        "update trip.wed_trig set enabled = false",
        "delete from trip.wed_trig where trname = 'two'",
    ],
)
async def test_the_definitions_of_a_pinned_flow_are_not_written_in_sql(engine: Engine, statement: str) -> None:
    await engine.apply("trip", {"a": 0}, {"one": "a = 0", "two": after("one")}, final="a = 2")
    async with engine.refused("flow_pinned", '"trip"'):
        await engine.rows(statement)


async def test_a_new_version_of_a_pinned_flow_changes_the_shape_of_its_view(engine: Engine) -> None:
    await engine.apply("trip", {"a": 0, "gone": "x"}, {"one": "a = 0"}, final="a = 2")
    await engine.apply("trip", {"a": "text", "more": 7}, {"one": "a = 'text'"}, final="a = 'done'")
    async with await AsyncConnection.connect(engine.url, autocommit=True) as psql:
        found = await psql.execute("insert into trip.wed_flow default values returning a, more")
        assert await found.fetchall() == [("text", 7)]


async def test_a_worker_and_a_session_compete_for_one_job_and_one_gets_it(
    engine: Engine, psql: AsyncConnection[Any]
) -> None:
    await engine.start(FLOW)
    job = await engine.take(FLOW, "pay")
    assert await (await psql.execute("select * from take('pay')")).fetchall() == []
    await engine.release(job)
    attempt, _ = await take(psql, "pay")
    assert await engine.claim(FLOW, "pay") == []
    with pytest.raises(psycopg.Error, match="lease_lost"):
        await engine.complete(job, paid="cash")
    await write(psql, attempt, "update wed_flow set paid = 'cash'")


async def test_an_attempt_that_is_no_number_is_refused_as_missing(engine: Engine) -> None:
    await engine.create("g", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'y'")
    instance = await engine.start("g")
    async with engine.refused("attempt_missing"), await psycopg.AsyncConnection.connect(engine.url) as session:
        await session.execute("set local mutirao.attempt = 'abc'")
        await session.execute("update g.wed_flow set a = 'y' where wid = %s", [instance])

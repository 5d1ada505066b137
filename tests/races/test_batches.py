"""Batches and migrations beside workers at full load, with drivers that are killed in the middle of a step."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import at_once, run, session
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

ORDERS = 240
ATTRIBUTES = {"stage": "new", "n": 0, "checked": False}
OLD = {"pack": "stage = 'new'", "send": "stage = 'packed'"}
NEW = {"wrap": "stage = 'new'", "check": "stage = 'packed' and not checked", "send": "stage = 'packed' and checked"}
CHANGES = {
    "pack": {"stage": "packed"},
    "wrap": {"stage": "packed"},
    "check": {"checked": True},
    "send": {"stage": "sent"},
}


async def orders(engine: Engine) -> list[int]:
    await engine.apply("order", ATTRIBUTES, OLD, final="stage = 'sent'")
    return await engine.start_many("order", [{"n": n} for n in range(ORDERS)])


async def work(engine: Engine, name: str) -> None:
    """Does jobs, a few at a time, as fast as the engine gives them."""
    query = b"select * from mutirao.turn(%s, %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], %s::int[], 5)"
    async with await AsyncConnection.connect(engine.url, autocommit=True) as session:
        jobs: list[Any] = []
        while True:
            tasks = await engine.tasks("order")
            changes = [Jsonb(CHANGES[tasks[job[4]]]) for job in jobs]
            done = [job[1] for job in jobs], [job[2] for job in jobs], changes, [None] * len(jobs)
            told = await (await session.execute(query, [name, *done, list(tasks)])).fetchall()
            busy = {row[1] for row in told if row[0] == "busy"}
            jobs = [job for job in jobs if job[1] in busy] + [row for row in told if row[0] == "job"]


@asynccontextmanager
async def workers(engine: Engine) -> AsyncIterator[None]:
    working = [asyncio.create_task(work(engine, f"worker {n}")) for n in range(3)]
    try:
        yield
        for each in working:
            assert not each.done(), each.exception()
    finally:
        for each in working:
            each.cancel()
        await asyncio.gather(*working, return_exceptions=True)


async def drive(engine: Engine, batch: int) -> None:
    while await engine.rows("select from mutirao.batch where id = %s and status = 'running'", batch):
        await engine.rows("select mutirao.step_batch(%s, 9)", batch)


async def drive_and_die(engine: Engine, batch: int) -> None:
    """A step that has done everything but commit, and then its server process is gone."""
    session = await AsyncConnection.connect(engine.url)
    with suppress(psycopg.OperationalError):
        await session.execute("select mutirao.step_batch(%s, 9)", [batch])
        await engine.rows("select pg_terminate_backend(%s)", session.info.backend_pid)
        await session.commit()
    await session.close()


async def drive_among_deaths(engine: Engine, batch: int) -> None:
    for _ in range(5):
        await drive_and_die(engine, batch)
    await asyncio.gather(drive(engine, batch), drive(engine, batch), drive_and_die(engine, batch))
    assert await engine.one("select status from mutirao.batch where id = %s", batch) == "finished"


async def until_all_end(engine: Engine) -> None:
    while await engine.rows("select from mutirao.instance"):
        pass


async def nothing_was_lost_or_done_twice(engine: Engine, chosen: list[int]) -> None:
    assert await engine.one("select count(*) from mutirao.closed") == len(chosen)
    assert await engine.rows("select * from mutirao.job") == []
    finished = "select job from mutirao.trace where kind = 'finish' group by job having count(*) > 1"
    assert await engine.rows(finished) == []


async def test_migration_beside_workers_with_drivers_that_die(engine: Engine) -> None:
    chosen = await orders(engine)
    await engine.apply("order", ATTRIBUTES, NEW, final="stage = 'sent'")
    batch = await engine.one("""select mutirao.migrate_flow('order', tasks => '{"pack": "wrap"}')""")
    assert await engine.one("select mutirao.step_batch(%s, 9)", batch) == 9
    async with workers(engine):
        await drive_among_deaths(engine, batch)
        await until_all_end(engine)
    await nothing_was_lost_or_done_twice(engine, chosen)
    assert await engine.rows("select distinct status::text, state ->> 'stage' from mutirao.closed") == [
        ("closed.completed", "sent")
    ]
    # Whoever moved went by the new version from then on, which lets nothing be sent unchecked.
    unchecked = """
        select from mutirao.closed c join mutirao.version v on v.id = c.version
        where v.number = 2 and not (c.state ->> 'checked')::boolean
          and exists (select from mutirao.trace t where t.instance = c.id and t.kind = 'migrate' and t.state ->> 'stage' = 'new')
          and exists (select from mutirao.trace t join mutirao.task k on k.id = t.task
            where t.instance = c.id and t.kind = 'finish' and k.name = 'send'
              and t.cause > (select min(m.id) from mutirao.trace m where m.instance = c.id and m.kind = 'migrate'))"""
    assert await engine.rows(unchecked) == []
    done, refused = (await engine.rows("select done, refused from mutirao.batch"))[0]
    assert done == await engine.one("select count(*) from mutirao.trace where kind = 'migrate'")
    assert refused == 0


async def test_cancel_and_set_beside_workers_with_drivers_that_die(engine: Engine) -> None:
    chosen = await orders(engine)
    async with workers(engine):
        make = "select mutirao.make_batch(%s, %s, %s)"
        marked = await engine.one(make, "set", Jsonb({"flow": "order"}), Jsonb({"change": {"checked": True}}))
        dropped = await engine.one(make, "cancel", Jsonb({"flow": "order", "where": "n % 2 = 0"}), Jsonb({}))
        await asyncio.gather(drive_among_deaths(engine, marked), drive_among_deaths(engine, dropped))
        await until_all_end(engine)
    await nothing_was_lost_or_done_twice(engine, chosen)
    for batch, kind in ((marked, "set"), (dropped, "cancel")):
        done = await engine.one("select done from mutirao.batch where id = %s", batch)
        assert done == await engine.one("select count(*) from mutirao.trace where kind = %s", kind)
    assert (
        await engine.rows(
            "select from mutirao.closed where status = 'closed.aborted' and mod((state ->> 'n')::int, 2) = 1"
        )
        == []
    )


async def test_a_job_that_is_being_claimed_counts_as_running_and_nobody_waits(engine: Engine) -> None:
    await engine.apply("order", ATTRIBUTES, OLD, final="stage = 'sent'")
    [instance] = await engine.start_many("order", [{}])
    tasks = list(await engine.tasks("order", "pack"))
    await engine.apply("order", ATTRIBUTES, NEW, final="stage = 'sent'")
    batch = await engine.one("select mutirao.migrate_flow('order')")
    async with session(engine) as worker:
        ((job, attempt),) = await run(worker, "select job, attempt from mutirao.claim('w', %s::int[], 1)", tasks)
        await at_once(engine, "select mutirao.step_batch(%s)", batch)
        await worker.commit()
    assert await engine.one("select status from mutirao.batch") == "finished"
    assert await engine.jobs(instance) == {"pack": "running", "wrap": "ready"}
    assert await engine.one("select mutirao.complete(%s, %s, %s)", job, attempt, Jsonb({"n": 1})) == "ok"


async def test_an_instance_with_a_renamed_job_that_is_being_claimed_is_come_back_to(engine: Engine) -> None:
    await engine.apply("order", ATTRIBUTES, OLD, final="stage = 'sent'")
    [instance, other] = await engine.start_many("order", [{}, {}])
    tasks = list(await engine.tasks("order", "pack"))
    await engine.apply("order", ATTRIBUTES, NEW, final="stage = 'sent'")
    batch = await engine.one("""select mutirao.migrate_flow('order', tasks => '{"pack": "wrap"}')""")
    async with session(engine) as worker:
        ((job, attempt),) = await run(worker, "select job, attempt from mutirao.claim('w', %s::int[], 1)", tasks)
        await at_once(engine, "select mutirao.step_batch(%s)", batch)
        assert (await engine.jobs(instance), await engine.jobs(other)) == ({"pack": "ready"}, {"wrap": "ready"})
        await worker.commit()
    await at_once(engine, "select mutirao.step_batch(%s)", batch)
    assert await engine.rows("select status, done, skipped, refused from mutirao.batch") == [("finished", 2, 0, 0)]
    assert await engine.jobs(instance) == {"wrap": "running"}
    assert await engine.one("select mutirao.complete(%s, %s, %s)", job, attempt, Jsonb({"stage": "packed"})) == "ok"

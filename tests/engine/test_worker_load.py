"""`engine.load`: what there is to do, as metrics tell it, and what it costs to find out."""

from datetime import datetime, timedelta
from typing import Any

from worker_stage import Stage, fresh_stage  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, task
from mutirao.database.sql import query


class Parcel(Flow):
    size: int = 0
    sent: bool = False
    final = "sent"

    @task(when="not sent and size < 10", retries=1)
    async def send(self) -> Change:
        return {"sent": True}

    @task(when="not sent and size > 5", priority=3)
    async def weigh(self) -> Change:
        return {"size": 1}


async def load(stage: Stage, kind: str) -> dict[tuple[str, ...], tuple[float, float | None]]:
    return {
        (row.task, row.status): (row.count, row.seconds and round(row.seconds))
        for row in await stage.engine.load()
        if row.kind == kind
    }


class Reminder(Flow):
    at: datetime
    sent: bool = False
    final = "sent"

    @task(when="not sent", wait="at")
    async def remind(self) -> Change:
        return {"sent": True}


async def test_a_job_that_waited_for_a_month_is_not_a_month_old(stage: Stage) -> None:
    await stage.engine.apply(Reminder)
    [(now,)] = await stage.rows("select mutirao.now()")
    await stage.engine.start(Reminder(at=now + timedelta(days=30)))
    await stage.engine.start(Reminder(at=now + timedelta(days=29)))
    for day in (29, 1):
        await stage.advance(days=day)
        await stage.rows("select mutirao.turn_clock(500, 'retries')")
    await stage.advance(minutes=1)
    assert await load(stage, "jobs") == {("remind", "ready"): (2, 86460)}
    [backlog] = await stage.engine.backlog()
    assert round(backlog.oldest or 0) == 86460


async def claim(stage: Stage, task_name: str, count: int) -> list[Any]:
    [(number,)] = await stage.rows("select id from mutirao.task_ids('parcel', array[%s])", task_name)
    return await stage.rows("select job, attempt from mutirao.claim('gone', array[%s], %s)", number, count)


async def test_load_tells_jobs_by_task_and_status_with_the_age_of_the_oldest(stage: Stage) -> None:
    await stage.engine.apply(Parcel)
    await stage.engine.start_many([Parcel() for _ in range(3)], priority=-5)
    await stage.advance(minutes=1)
    await stage.engine.start_many([Parcel(size=7) for _ in range(4)])
    await stage.advance(seconds=5)
    assert await load(stage, "jobs") == {("send", "ready"): (7, 65), ("weigh", "ready"): (4, 5)}
    [(job, attempt), *_] = await claim(stage, "weigh", 3)
    await stage.rows("select mutirao.fail(%s, %s, 'later')", job, attempt)
    assert await load(stage, "jobs") == {
        ("send", "ready"): (7, 65),
        ("weigh", "ready"): (1, 5),
        ("weigh", "running"): (2, None),
        ("weigh", "waiting"): (1, None),
    }
    assert await load(stage, "instances") == {("", "open.running"): (7, None)}


async def test_load_tells_exceptions_by_flow(stage: Stage) -> None:
    await stage.engine.apply(Parcel)
    await stage.engine.start(Parcel())
    [(job, attempt)] = await claim(stage, "send", 1)
    await stage.rows("select mutirao.fail(%s, %s, 'never', true)", job, attempt)
    assert [count for count, _ in (await load(stage, "exceptions")).values()] == [1]
    assert await load(stage, "jobs") == {}
    assert await load(stage, "instances") == {("", "open.exception"): (1, None)}


async def test_load_tells_how_late_a_clock_is(stage: Stage) -> None:
    await stage.engine.apply(Parcel)
    await stage.engine.start_many([Parcel(), Parcel()])
    [(job, attempt), _] = await claim(stage, "send", 2)
    await stage.rows("select mutirao.fail(%s, %s, 'later')", job, attempt)
    assert await load(stage, "overdue") == {("", what): (0, 0) for what in ("retry", "wait", "lease")}
    await stage.advance(minutes=2)
    overdue = await load(stage, "overdue")
    assert overdue["", "lease"] == (0, 60)
    assert 118 <= (overdue["", "retry"][1] or 0) <= 120


async def test_load_reads_a_sample_of_what_is_large(stage: Stage) -> None:
    """A hundred thousand jobs that wait: their number is known roughly, and few of the table's pages are read."""
    await stage.engine.apply(Parcel)
    await stage.do("alter table mutirao.job set (autovacuum_enabled = false)")
    await stage.do(
        "insert into mutirao.job (instance, flow, task, status, cause, due_at, created_at, error) "
        "select n, f.id, t.id, 'waiting', 1, now() + interval '1 day', now(), to_jsonb(repeat('x', 300)) "
        "from generate_series(1, 100000) n, mutirao.flow f join mutirao.task t on t.flow = f.id and t.name = 'send'"
    )
    await stage.do("analyze mutirao.job")
    [(count, _)] = (await load(stage, "jobs")).values()
    assert 90_000 <= count <= 110_000
    [(plan,)] = await stage.rows("explain (analyze, buffers, format json) " + query("load"))
    [(pages,)] = await stage.rows("select pg_relation_size('mutirao.job') / 8192")
    assert plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"] < pages / 2

"""The life of an instance: exceptions, their one job, and their repair."""

from datetime import timedelta

import psycopg
import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`


async def stuck(engine: Engine) -> int:
    """An instance on whose state nothing fires."""
    await engine.apply("f", {"a": 0}, {"go": "a = 0", "more": "a = 2"}, final="a = 9")
    instance = await engine.start("f")
    await engine.do("f", "go", a=1)
    return instance


async def test_nothing_pending_not_final_and_nothing_fires_is_an_exception(engine: Engine) -> None:
    instance = await stuck(engine)
    assert await engine.status(instance) == "open.exception"
    assert await engine.codes(instance) == ["nothing_fires"]
    assert await engine.jobs(instance) == {"_EXCPT": "ready"}
    assert await engine.state(instance) == {"a": 1}
    last = (await engine.trace(instance))[-1]
    assert (last.kind, last.fired, last.status, last.state) == ("finish", ["_EXCPT"], "open.exception", {"a": 1})


async def test_a_wed_flow_without_a_final_condition_ends_in_exception(engine: Engine) -> None:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'"}, final=None)
    instance = await engine.start("f")
    await engine.do("f", "go", a="y")
    assert await engine.codes(instance) == ["nothing_fires"]


async def test_a_repair_writes_looks_and_goes_on(engine: Engine) -> None:
    instance = await stuck(engine)
    await engine.repair(instance, a=2)
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"more": "ready"}
    last = (await engine.trace(instance))[-1]
    assert (last.kind, last.task, last.fired, last.state) == ("repair", "_EXCPT", ["more"], {"a": 2})


async def test_a_repair_to_a_final_state_completes(engine: Engine) -> None:
    instance = await stuck(engine)
    await engine.repair(instance, a=9)
    assert await engine.status(instance) == "closed.completed"
    assert await engine.jobs(instance) == {}


async def test_a_repair_that_helps_nothing_leaves_the_exception(engine: Engine) -> None:
    instance = await stuck(engine)
    before = await engine.job(instance, "_EXCPT")
    await engine.repair(instance, a=5)
    assert await engine.state(instance) == {"a": 5}
    assert await engine.codes(instance) == ["nothing_fires"]
    assert await engine.job(instance, "_EXCPT") == before


async def test_only_an_exception_is_repaired(engine: Engine) -> None:
    await stuck(engine)
    fine = await engine.start("f")
    async with engine.refused("not_an_exception", "open.running"):
        await engine.repair(fine, a=2)


async def test_a_set_that_makes_something_fire_ends_the_exception_too(engine: Engine) -> None:
    instance = await stuck(engine)
    await engine.set(instance, a=2)
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"more": "ready"}


async def test_to_take_the_exception_job_and_write_is_a_repair(engine: Engine) -> None:
    instance = await stuck(engine)
    job = await engine.take("f", "_EXCPT")
    assert job.state == {"a": 1}
    assert await engine.complete(job, a=2) == "ok"
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"more": "ready"}
    last = (await engine.trace(instance))[-1]
    assert (last.kind, last.task, last.job) == ("repair", "_EXCPT", job.id)


async def test_an_exception_job_in_a_batch_is_a_repair_beside_common_jobs(engine: Engine) -> None:
    instance = await stuck(engine)
    other = await engine.start("f")
    jobs = [await engine.take("f", "_EXCPT"), await engine.take("f", "go")]
    told, _ = await engine.turn([(jobs[0], {"a": 9}), (jobs[1], {"a": 9})])
    assert told == []
    assert await engine.status(instance) == "closed.completed"
    assert await engine.status(other) == "closed.completed"
    assert await engine.kinds(instance) == ["start", "finish", "repair"]
    assert await engine.kinds(other) == ["start", "finish"]


async def test_an_exception_job_written_in_plain_sql_is_a_repair(engine: Engine) -> None:
    instance = await stuck(engine)
    job = await engine.take("f", "_EXCPT")
    async with await psycopg.AsyncConnection.connect(engine.url) as session:
        await session.execute(f"set local mutirao.attempt = '{job.attempt}'".encode())
        await session.execute("update f.wed_flow set a = 2 where wid = %s", [instance])
    assert await engine.jobs(instance) == {"more": "ready"}
    assert await engine.kinds(instance) == ["start", "finish", "repair"]


async def test_while_reasons_remain_the_exception_job_comes_back_later(engine: Engine) -> None:
    """At once would be a loop without end for a program that repairs and mends nothing."""
    instance = await stuck(engine)
    job = await engine.take("f", "_EXCPT")
    await engine.complete(job, a=5)
    assert await engine.jobs(instance) == {"_EXCPT": "waiting"}
    await engine.advance(seconds=1)
    await engine.tick()
    assert (await engine.take("f", "_EXCPT")).id == job.id


async def test_a_repair_that_is_refused_leaves_the_exception_job_with_its_worker(engine: Engine) -> None:
    instance = await stuck(engine)
    job = await engine.take("f", "_EXCPT")
    async with engine.refused("unknown_attribute"):
        await engine.complete(job, z=1)
    told, _ = await engine.turn([(job, {"a": "text"})])
    assert [(t.kind, (t.note or {})["code"]) for t in told] == [("refused", "wrong_type")]
    assert await engine.jobs(instance) == {"_EXCPT": "running"}
    assert await engine.complete(job, a=9) == "ok"


async def test_to_fail_at_the_exception_job_is_to_give_it_back_for_later(engine: Engine) -> None:
    instance = await stuck(engine)
    before = await engine.kinds(instance)
    for pause in (timedelta(seconds=0.2), timedelta(seconds=2), timedelta(seconds=20)):
        await engine.fail_for_good(await engine.take("f", "_EXCPT"))
        assert await engine.jobs(instance) == {"_EXCPT": "waiting"}
        assert await engine.claim("f", "_EXCPT") == []
        await engine.advance(seconds=pause.total_seconds())
        await engine.tick()
    assert await engine.jobs(instance) == {"_EXCPT": "ready"}
    assert await engine.kinds(instance) == [*before, "retry", "retry", "retry"]


async def test_a_lease_on_the_exception_job_that_ends_gives_it_to_another(engine: Engine) -> None:
    instance = await stuck(engine)
    lost = await engine.take("f", "_EXCPT")
    for _ in range(25):
        await engine.advance(minutes=2)
        await engine.tick()
        await engine.claim("f", "_EXCPT")
    assert await engine.jobs(instance) == {"_EXCPT": "running"}
    assert await engine.codes(instance) == ["nothing_fires"]
    async with engine.refused("lease_lost"):
        await engine.complete(lost, a=2)


async def test_one_exception_job_carries_the_list_of_reasons(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": "a = 0", "two": "a = 0", "three": "a = 0"}, final="a = 9")
    instance = await engine.start("f")
    for task in ("one", "two"):
        await engine.fail_for_good(await engine.take("f", task), f"{task} broke")
    assert await engine.jobs(instance) == {"one": "failed", "two": "failed", "three": "ready", "_EXCPT": "ready"}
    carried = await engine.one("select error from mutirao.job where id = %s", await engine.job(instance, "_EXCPT"))
    assert carried == await engine.reasons(instance)
    assert [(r["code"], r["task"], r["error"]) for r in carried] == [
        ("task_failed", "one", "one broke"),
        ("task_failed", "two", "two broke"),
    ]


async def test_the_exception_job_ends_with_its_last_reason(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": "a = 0", "two": "a = 0", "three": "a = 0"}, final="a = 9")
    instance = await engine.start("f")
    for task in ("one", "two"):
        await engine.fail_for_good(await engine.take("f", task))
    await engine.retry(await engine.job(instance, "one"))
    assert [r["task"] for r in await engine.reasons(instance)] == ["two"]
    assert await engine.status(instance) == "open.exception"
    await engine.skip(await engine.job(instance, "two"))
    assert await engine.status(instance) == "open.running"
    assert "_EXCPT" not in await engine.jobs(instance)


async def test_the_exception_job_never_counts_as_pending(engine: Engine) -> None:
    instance = await stuck(engine)
    assert await engine.one("select pending from mutirao.instance") == []
    await engine.set(instance, a=9)  # final: would be refused if something were pending
    assert await engine.status(instance) == "closed.completed"


async def test_other_jobs_go_on_while_it_is_an_exception(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "b": 0}, {"one": "a = 0", "two": "b < 3"}, final="a = 9")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    for b in (1, 2):
        await engine.do("f", "two", b=b)
        assert await engine.status(instance) == "open.exception"
    assert (await engine.trace(instance))[-1].fired == ["two"]


async def test_a_runaway_is_stopped_and_reported_at_the_limit(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"loop": "n >= 0"}, final="n = -1", firing_limit=5)
    instance = await engine.start("f")
    for n in range(1, 6):
        assert await engine.status(instance) == "open.running"
        await engine.do("f", "loop", n=n)
    assert await engine.state(instance) == {"n": 5}
    assert await engine.jobs(instance) == {"_EXCPT": "ready"}
    assert await engine.reasons(instance) == [{"code": "runaway", "firings": 5}]
    assert (await engine.trace(instance))[-1].fired == ["_EXCPT"]


async def test_the_limit_of_firings_is_ten_thousand_unless_set(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"loop": "n >= 0"})
    await engine.create("g", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'y'")
    assert await engine.rows("select firing_limit from mutirao.version") == [(10000,), (10000,)]


async def test_a_runaway_ends_or_runs_on_after_a_repair(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"loop": "n >= 0"}, final="n = -1", firing_limit=2)
    ended, on = await engine.start_many("f", [{}, {}])
    for n in (1, 2):
        for job in await engine.claim("f", "loop", room=2):
            await engine.complete(job, n=n)
    await engine.repair(ended, n=-1)
    assert await engine.status(ended) == "closed.completed"
    await engine.repair(on, n=0)
    assert await engine.jobs(on) == {"loop": "ready"}


@pytest.mark.parametrize("steer", ["set", "repair"])
async def test_a_correction_that_does_not_fit_is_refused_and_nothing_changes(engine: Engine, steer: str) -> None:
    instance = await stuck(engine)
    async with engine.refused("wrong_type", "integer"):
        await getattr(engine, steer)(instance, a="text")
    async with engine.refused("unknown_attribute", "it has a"):
        await getattr(engine, steer)(instance, b=1)


async def test_wed_trace_shows_final_exception_and_regular_states(engine: Engine) -> None:
    instance = await stuck(engine)
    await engine.repair(instance, a=2)
    await engine.do("f", "more", a=9)
    shown = await engine.rows("select state, trf, trw, status from f.wed_trace where wid = %s order by tstmp", instance)
    assert shown == [
        ({"a": 0}, ["go"], None, "R"),
        ({"a": 1}, ["_EXCPT"], "go", "E"),
        ({"a": 2}, ["more"], "_EXCPT", "R"),
        ({"a": 9}, [], "more", "F"),
    ]

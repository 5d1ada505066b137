"""Rollbacks and going back, while somebody else has the instance or just claims a job of it."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from driver import Engine, Job, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import at_once, run, running, session, until_it_waits

LOCK = "select from mutirao.instance where id = %s for no key update"
COMPLETE = "select mutirao.complete(%s, %s, '{}')"
TASKS: dict[str, Any] = {
    "s": {"when": "true", "fires": "once", "safe_point": True},
    "b": after("s"),
    "c": after("s"),
}


async def undoing_beside(engine: Engine) -> tuple[int, Job]:
    """An instance that is rolled back to its safe-point, and a job whose lease has run out before it could go on."""
    await engine.apply("f", {"n": 0}, TASKS, ends="quiet")
    instance = await engine.start("f")
    await engine.do("f", "s")
    b = await engine.take("f", "b")
    await engine.rows("select mutirao.roll_back(%s, 's')", instance)
    await engine.advance(minutes=5)
    return instance, b


async def test_a_clock_does_not_wait_for_who_has_the_instance(engine: Engine) -> None:
    instance, _ = await undoing_beside(engine)
    async with session(engine) as other:
        await run(other, LOCK, instance)
        await at_once(engine, "select * from mutirao.turn_clock(500, 'leases')")
    await engine.tick()
    assert await engine.jobs(instance) == {"b": "ready", "c": "ready"}


async def test_who_gives_a_job_back_does_not_wait_for_who_has_the_instance(engine: Engine) -> None:
    instance, b = await undoing_beside(engine)
    async with session(engine) as other:
        await run(other, LOCK, instance)
        left = await at_once(engine, "select mutirao.release(%s, %s)", [b.id], [b.attempt])
        assert left == [(b.id,)]


async def test_a_rollback_ends_once_when_a_clock_meets_who_ends_it(engine: Engine) -> None:
    instance, b = await undoing_beside(engine)
    async with session(engine) as other:
        await run(other, COMPLETE, b.id, b.attempt)
        await at_once(engine, "select * from mutirao.turn_clock(500, 'leases')")
        await other.commit()
    await engine.tick()
    assert (await engine.kinds(instance)).count("rolled_back") == 1
    assert await engine.jobs(instance) == {"b": "ready", "c": "ready"}


async def test_nobody_goes_back_over_what_is_just_being_claimed(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, TASKS, ends="quiet")
    instance = await engine.start("f")
    await engine.do("f", "s")
    tasks = list(await engine.tasks("f", "b"))
    async with session(engine) as claiming, session(engine) as other:
        [(job, attempt)] = await run(
            claiming, "select job, attempt from mutirao.claim('w', %s::int[], 1, %s)", tasks, timedelta(minutes=1)
        )
        going = running(other, "select mutirao.go_back(%s, 's')", instance)
        await until_it_waits(engine, other)
        await claiming.commit()
        with pytest.raises(psycopg.Error, match="job_running"):
            await going
    await engine.rows(COMPLETE, job, attempt)
    assert await engine.jobs(instance) == {"c": "ready"}

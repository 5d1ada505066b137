"""Finished instances are dropped beside live work: by several clocks, with one killed in the middle, and nothing else goes."""

import asyncio
from datetime import timedelta

import psycopg
import pytest
from driver import Engine, fresh_engine
from probe import at_once, run, session

__all__ = ["fresh_engine"]

TURN = "select (done ->> 'retention')::int from mutirao.turn_clock(%s, 'retention')"
OLD = 300
LIVE = 60


@pytest.fixture
async def steps(engine: Engine) -> Engine:
    """A flow of three steps, and many instances of it that ended long ago."""
    tasks = {f"step_{n}": f"k = {n}" for n in range(3)}
    await engine.apply("steps", {"k": {"type": "integer", "default": 0, "searchable": True}}, tasks, final="k = 3")
    await engine.start_many("steps", [{"k": 3}] * OLD)
    await engine.advance(days=2)
    await engine.rows("select mutirao.keep('steps', %s)", timedelta(days=1))
    return engine


async def old_ones(engine: Engine) -> int:
    return int(
        await engine.one("select count(*) from mutirao.closed where closed_at < mutirao.now() - interval '1 day'")
    )


async def test_while_one_clock_drops_another_passes_on(steps: Engine) -> None:
    async with session(steps) as first:
        assert await run(first, TURN, 50) == [(50,)]
        assert await at_once(steps, TURN, 50) == [(0,)]
        await first.commit()
    await steps.advance(seconds=5)
    assert await steps.rows(TURN, 50) == [(50,)]
    assert await old_ones(steps) == OLD - 100


async def test_a_clock_killed_in_the_middle_has_dropped_nothing(steps: Engine) -> None:
    before = await steps.everything()
    async with session(steps) as killed:
        assert await run(killed, TURN, 50) == [(50,)]
        await steps.rows("select pg_terminate_backend(%s)", killed.info.backend_pid)
        with pytest.raises(psycopg.OperationalError):
            await run(killed, "select 1")
    while await steps.rows("select from pg_stat_activity where pid = %s", killed.info.backend_pid):
        pass
    assert await steps.everything() == before
    assert await steps.rows(TURN, 50) == [(50,)]


async def test_an_instance_that_somebody_has_is_left_for_later(steps: Engine) -> None:
    async with session(steps) as other:
        [(held,)] = await run(other, "select id from mutirao.closed order by id limit 1 for update")
        assert await at_once(steps, TURN, 500) == [(OLD - 1,)]
        assert await steps.status(held) == "closed.completed"
    await steps.advance(seconds=5)
    assert await steps.rows(TURN, 500) == [(1,)]
    assert await old_ones(steps) == 0


async def test_live_work_goes_on_while_old_instances_go(steps: Engine) -> None:
    """Two clocks and two workers, until all that is live is done and all that is old is gone."""
    live = await steps.start_many("steps", [{}] * LIVE)

    async def clock() -> None:
        while await old_ones(steps):
            await steps.rows(TURN, 20)
            await steps.advance(seconds=1)

    async def worker(name: str) -> None:
        while await steps.rows("select from mutirao.instance"):
            for job in await steps.claim("steps", room=10, worker=name):
                assert await steps.complete(job, k=job.state["k"] + 1) == "ok"

    await asyncio.gather(clock(), clock(), worker("ann"), worker("bob"))
    assert await steps.rows("select id from mutirao.closed order by id") == [(number,) for number in live]
    kinds = await steps.rows("select instance, array_agg(kind order by id) from mutirao.trace group by 1 order by 1")
    assert kinds == [(number, ["start", "finish", "finish", "finish"]) for number in live]
    assert await steps.one("select count(*) from mutirao.search") == LIVE


async def test_dropping_by_hand_is_a_batch_that_leaves_open_and_younger_ones(steps: Engine) -> None:
    young = await steps.start("steps", k=3)
    open_one = await steps.start("steps")
    await steps.rows("select mutirao.keep('steps', null)")
    before = await steps.one("select mutirao.now() - interval '1 day'")
    [(batch,)] = await steps.rows("select mutirao.drop_instances('{\"flow\": \"steps\"}', %s, 'too old')", before)
    while await steps.rows("select from mutirao.batch where status = 'running'"):
        await steps.rows("select mutirao.step_batch(%s)", batch)
    assert await steps.rows("select done, skipped, refused from mutirao.batch") == [(OLD, 1, 0)]
    assert [await steps.status(each) for each in (young, open_one)] == ["closed.completed", "open.running"]
    assert await steps.one("select count(*) from mutirao.trace") == 2

"""Limits with many workers at once: never more than allowed, and nobody is forgotten."""

import asyncio
from collections import Counter

from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import at_once, run, session
from worker_stage import stage_on

from mutirao import Change, Flow, Limit, task

MOST = 3
_inside: Counter[str] = Counter()
_highest: Counter[str] = Counter()


class Call(Flow):
    """Counts how many of its jobs are inside user code at once, in all and for each customer."""

    customer: str
    calls: int = 3
    final = "calls = 0"

    @task(when="calls > 0", limit=Limit(at_once=MOST, per="customer", each=1))
    async def call(self) -> Change:
        for name in ("all", self.customer):
            _inside[name] += 1
            _highest[name] = max(_highest[name], _inside[name])
        await asyncio.sleep(0)
        for name in ("all", self.customer):
            _inside[name] -= 1
        return {"calls": self.calls - 1}


async def test_workers_never_do_more_at_once_than_the_limit_allows(database_url: str) -> None:
    _inside.clear()
    _highest.clear()
    async with stage_on(database_url) as stage:
        await stage.engine.apply(Call)
        await stage.engine.start_many([Call(customer=name) for name in "aaaaaaaabbbbccd"])
        async with stage.working(Call, name="one"), stage.working(Call, name="two"), stage.working(Call, name="three"):
            await stage.all_close("call", 15)
    assert set(_inside.values()) == {0}
    assert _highest["all"] == MOST
    assert {_highest[name] for name in "abcd"} == {1}


async def test_a_claim_in_an_open_transaction_delays_others_but_stops_nobody(engine: Engine) -> None:
    tasks = {"call": {"when": "n = 0", "limit": {"at_once": 5}}, "free": "n = 0"}
    await engine.apply("f", {"n": 0}, tasks, final="n = 1")
    await engine.start_many("f", [{}] * 4)
    (limited,) = await engine.tasks("f", "call")
    async with session(engine) as slow:
        await run(slow, "select job from mutirao.claim('slow', %s::int[], 1)", [limited])
        jobs = await engine.claim("f", room=9)
        assert [job.task for job in jobs] == ["free"] * 4
        await slow.commit()
    assert len(await engine.claim("f", room=9)) == 3


async def test_a_limit_that_somebody_holds_is_passed_over_while_there_is_something_else(engine: Engine) -> None:
    """And whoever passed it over is told to look again."""
    limited = {"when": "n = 0", "limit": {"at_once": 5}}
    await engine.apply("f", {"n": 0}, {"call": limited, "write": limited}, final="n = 1")
    await engine.start_many("f", [{}] * 3)
    (call,) = await engine.tasks("f", "call")
    async with session(engine) as slow, session(engine) as listener:
        await run(listener, "listen mutirao")
        await listener.commit()
        await run(slow, "select job from mutirao.claim('slow', %s::int[], 1)", [call])
        assert [job.task for job in await engine.claim("f", room=9)] == ["write"] * 3
        await slow.commit()
        hints = [hint.payload async for hint in listener.notifies(timeout=5, stop_after=1)]
    (flow,) = await engine.rows("select id::text from mutirao.flow where name = 'f'")
    assert hints == list(flow)
    assert [job.task for job in await engine.claim("f", room=9)] == ["call"] * 2


async def test_what_a_session_that_died_had_claimed_is_free_again(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"call": {"when": "n = 0", "limit": {"at_once": 1}}}, final="n = 1")
    await engine.start_many("f", [{}] * 2)
    tasks = list(await engine.tasks("f"))
    async with session(engine) as dies:
        assert len(await run(dies, "select job from mutirao.claim('w', %s::int[], 5)", tasks)) == 1
        await dies.rollback()
    assert len(await engine.claim("f", room=5)) == 1


async def test_a_job_that_somebody_holds_is_passed_over(engine: Engine) -> None:
    """And what the worker reported in the same turn is kept."""
    tasks = {"call": {"when": "n = 0", "limit": {"per": "customer", "each": 1}}}
    await engine.apply("f", {"n": 0, "customer": ""}, tasks, final="n = 1")
    first, held, third = await engine.start_many("f", [{"customer": name} for name in "abc"])
    job = await engine.take("f", "call")
    async with session(engine) as person:
        await run(person, "select mutirao.suspend(%s)", held)
        told, got = await engine.turn([(job, {"n": 1})], flow="f", room=9)
        assert (told, [each.instance for each in got]) == ([], [third])
        await person.rollback()
    assert await engine.status(first) == "closed.completed"


async def test_what_was_claimed_while_a_limit_was_being_set_counts(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"call": "n = 0"}, final="n = 1")
    await engine.start_many("f", [{}] * 3)
    async with session(engine) as person:
        await run(person, "select mutirao.limit_task('f', 'call', at_once => 1)")
        await engine.take("f", "call")
        await person.commit()
    await engine.tick()
    assert await engine.claim("f", room=9) == []


async def test_a_job_that_somebody_has_locked_is_counted_later_and_not_waited_for(engine: Engine) -> None:
    """He may be waiting for another one that the clock has locked."""
    await engine.apply("f", {"n": 0, "customer": "a"}, {"call": "n = 0"}, final="n = 1")
    first, held = await engine.start_many("f", [{}] * 2)
    async with session(engine) as person:
        await run(person, "select from mutirao.job where instance = %s for update", held)
        await engine.rows("select mutirao.limit_task('f', 'call', per => 'customer', each => 1)")
        await at_once(engine, "select * from mutirao.turn_clock(500, 'limits')")
        assert await engine.rows("select instance, slot from mutirao.job order by id") == [(first, "a"), (held, None)]
        assert await engine.claim("f", room=9) == []
        await person.commit()
    await engine.tick()
    assert await engine.rows("select slot from mutirao.job") == [("a",)] * 2
    assert len(await engine.claim("f", room=9)) == 1

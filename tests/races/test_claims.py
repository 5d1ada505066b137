"""Claims against claims, and against those who suspend, cancel, give back or take away."""

import asyncio

import psycopg
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import at_once, run, running, session, until_it_waits
from psycopg.types.json import Jsonb

CLAIM = "select job, attempt, instance from mutirao.claim('w', %s::int[], %s)"


async def one_task(engine: Engine, *, instances: int = 1) -> tuple[list[int], list[int]]:
    await engine.apply("f", {"a": 0}, {"go": "a = 0", "other": "a = 0"}, final="a = 1")
    started = await engine.start_many("f", [{}] * instances)
    return started, list(await engine.tasks("f", "go"))


async def test_two_sessions_never_claim_the_same_job(engine: Engine) -> None:
    _, tasks = await one_task(engine, instances=10)
    async with session(engine) as first, session(engine) as second:
        mine = await run(first, CLAIM, tasks, 6)
        yours = await run(second, CLAIM, tasks, 6)
        assert (len(mine), len(yours)) == (6, 4)
        assert not {job for job, *_ in mine} & {job for job, *_ in yours}
        await first.rollback()
        # What the first gave up is there again, the rest is not.
        assert len(await at_once(engine, CLAIM, tasks, 10)) == 6
        await second.commit()


async def test_eight_sessions_at_once_claim_each_job_exactly_once(engine: Engine) -> None:
    _, tasks = await one_task(engine, instances=200)

    async def claimer() -> list[int]:
        got: list[int] = []
        async with await psycopg.AsyncConnection.connect(engine.url, autocommit=True) as connected:
            while rows := await run(connected, CLAIM, tasks, 7):
                got += [job for job, *_ in rows]
        return got

    claimed = [job for got in await asyncio.gather(*(claimer() for _ in range(8))) for job in got]
    left = [job for job, *_ in await at_once(engine, CLAIM, tasks, 200)]
    assert len(claimed) + len(left) == len({*claimed, *left}) == 200


async def test_a_suspend_waits_for_a_claim_under_way_and_holds_what_it_left(engine: Engine) -> None:
    (instance,), tasks = await one_task(engine)
    async with session(engine) as claimer, session(engine) as person:
        ((job, attempt, _),) = await run(claimer, CLAIM, tasks, 1)
        suspending = running(person, "select mutirao.suspend(%s)", instance)
        await until_it_waits(engine, person)
        await claimer.commit()
        await suspending
        await person.commit()
    assert await engine.jobs(instance) == {"go": "running", "other": "held"}
    await engine.rows("select mutirao.complete(%s, %s, '{}')", job, attempt)
    assert await engine.status(instance) == "open.notrunning.suspended"


async def test_a_suspend_holds_what_a_claim_gave_up(engine: Engine) -> None:
    (instance,), tasks = await one_task(engine)
    async with session(engine) as claimer, session(engine) as person:
        await run(claimer, CLAIM, tasks, 1)
        suspending = running(person, "select mutirao.suspend(%s)", instance)
        await until_it_waits(engine, person)
        await claimer.rollback()
        await suspending
        await person.commit()
    assert await engine.jobs(instance) == {"go": "held", "other": "held"}


async def test_a_claim_during_a_suspend_gets_nothing_and_does_not_wait(engine: Engine) -> None:
    (instance,), tasks = await one_task(engine)
    async with session(engine) as person:
        await run(person, "select mutirao.suspend(%s)", instance)
        assert await at_once(engine, CLAIM, tasks, 1) == []
        await person.rollback()
    assert len(await at_once(engine, CLAIM, tasks, 1)) == 1


async def test_a_cancel_waits_for_a_claim_under_way_and_lets_it_finish(engine: Engine) -> None:
    (instance,), tasks = await one_task(engine)
    async with session(engine) as claimer, session(engine) as person:
        ((job, attempt, _),) = await run(claimer, CLAIM, tasks, 1)
        cancelling = running(person, "select mutirao.cancel(%s)", instance)
        await until_it_waits(engine, person)
        await claimer.commit()
        await cancelling
        await person.commit()
    assert await engine.jobs(instance) == {"go": "running"}
    await engine.rows("select mutirao.complete(%s, %s, '{}')", job, attempt)
    assert await engine.status(instance) == "closed.aborted"


async def test_a_cancel_closes_at_once_when_the_claim_under_way_is_given_up(engine: Engine) -> None:
    (instance,), tasks = await one_task(engine)
    async with session(engine) as claimer, session(engine) as person:
        await run(claimer, CLAIM, tasks, 1)
        cancelling = running(person, "select mutirao.cancel(%s)", instance)
        await until_it_waits(engine, person)
        await claimer.rollback()
        await cancelling
        await person.commit()
    assert await engine.status(instance) == "closed.aborted"
    assert await engine.jobs(instance) == {}


async def test_a_claim_during_a_cancel_gets_nothing_and_a_completion_is_told_to_come_again(engine: Engine) -> None:
    (instance,), tasks = await one_task(engine)
    job = await engine.take("f", "other")
    async with session(engine) as person:
        await run(person, "select mutirao.cancel(%s)", instance)
        assert await at_once(engine, CLAIM, tasks, 1) == []
        told, _ = await engine.turn([(job, {"a": 1})])
        assert [t.kind for t in told] == ["busy"]
        await person.commit()
    assert await engine.complete(job, a=1) == "ok"
    assert await engine.status(instance) == "closed.aborted"


async def test_a_job_given_back_during_a_suspend_is_not_made_ready_behind_its_back(engine: Engine) -> None:
    (instance,), tasks = await one_task(engine)
    job = await engine.take("f", "go")
    async with session(engine) as person:
        await run(person, "select mutirao.suspend(%s)", instance)
        back = "select * from mutirao.release(array[%s::bigint], array[%s::bigint])"
        assert await at_once(engine, back, job.id, job.attempt) == [(job.id,)]  # not now: it is busy
        await person.commit()
    assert await engine.release(job) == []
    assert await engine.jobs(instance) == {"go": "held", "other": "held"}
    assert await at_once(engine, CLAIM, tasks, 1) == []


async def test_the_end_of_a_lease_during_a_suspend_is_left_to_the_next_clock(engine: Engine) -> None:
    (instance,), _ = await one_task(engine)
    await engine.take("f", "go")
    await engine.advance(minutes=2)
    async with session(engine) as person:
        await run(person, "select mutirao.suspend(%s)", instance)
        assert await at_once(engine, "select (done ->> 'leases')::int from mutirao.turn_clock()") == [(0,)]
        await person.commit()
    assert (await engine.tick())[1] == 1
    assert await engine.jobs(instance) == {"go": "held", "other": "held"}


async def test_a_completion_and_the_end_of_its_lease_meet_and_one_of_them_counts(engine: Engine) -> None:
    (instance,), _ = await one_task(engine)
    job = await engine.take("f", "go")
    await engine.advance(minutes=2)
    async with session(engine) as worker:
        await run(worker, "select mutirao.complete(%s, %s, %s)", job.id, job.attempt, Jsonb({"a": 2}))
        assert await at_once(engine, "select (done ->> 'leases')::int from mutirao.turn_clock()") == [(0,)]
        await worker.commit()
    assert await engine.tick() == (0, 0, 0)
    assert await engine.state(instance) == {"a": 2}


async def test_a_claim_that_somebody_watches_is_given_back_when_its_instance_is_busy(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0}, {"slow": {"when": "a = 0", "fires": "once"}, "watch": after("slow", "running")}, ends="quiet"
    )
    held, free = await engine.start_many("f", [{}, {}])
    tasks = list(await engine.tasks("f", "slow"))
    async with session(engine) as person:
        await run(person, "select mutirao.set(%s, '{}')", held)
        assert [instance for *_, instance in await at_once(engine, CLAIM, tasks, 2)] == [free]
        await person.commit()
    assert await engine.jobs(held) == {"slow": "waiting"}  # not for somebody to ask again, but for a moment
    assert await engine.jobs(free) == {"slow": "running", "watch": "ready"}
    await engine.advance(seconds=1)
    assert await engine.tick() == (1, 0, 0)
    assert [instance for *_, instance in await at_once(engine, CLAIM, tasks, 2)] == [held]

"""Claims: attempts that fence, leases, priorities, and what a worker gets in exchange."""

from datetime import timedelta

import pytest
from driver import Engine, Job, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb


async def counter(engine: Engine, *, instances: int = 1) -> list[int]:
    await engine.apply("f", {"n": 0}, {"step": "n < 3"}, final="n = 3")
    return await engine.start_many("f", [{}] * instances)


async def test_each_claim_yields_an_attempt_from_one_sequence(engine: Engine) -> None:
    await counter(engine, instances=3)
    await engine.apply("g", {"n": 0}, {"step": "n < 3"}, final="n = 3")
    await engine.start("g")
    jobs = [*await engine.claim("f", room=3), *await engine.claim("g")]
    attempts = [job.attempt for job in jobs]
    assert len(set(attempts)) == 4
    assert attempts == sorted(attempts)


async def test_who_was_thought_dead_can_neither_complete_nor_fail_nor_renew(engine: Engine) -> None:
    (instance,) = await counter(engine)
    dead = await engine.take("f", "step", worker="dead")
    await engine.advance(seconds=61)
    await engine.tick()
    alive = await engine.take("f", "step", worker="alive")
    async with engine.refused("lease_lost", f"attempt {dead.attempt}"):
        await engine.complete(dead, n=99)
    async with engine.refused("lease_lost"):
        await engine.fail(dead)
    assert await engine.renew(dead) == [dead.attempt]
    assert await engine.release(dead) == []
    told, _ = await engine.turn([(dead, {"n": 99})])
    assert [(t.kind, t.job) for t in told] == [("lost", dead.id)]
    assert await engine.jobs(instance) == {"step": "running"}
    await engine.complete(alive, n=1)
    assert await engine.state(instance) == {"n": 1}


async def test_a_finished_job_cannot_be_finished_again(engine: Engine) -> None:
    (instance,) = await counter(engine)
    job = await engine.take("f", "step")
    await engine.complete(job, n=1)
    async with engine.refused("lease_lost"):
        await engine.complete(job, n=2)
    assert await engine.state(instance) == {"n": 1}


async def test_an_attempt_of_another_job_opens_nothing(engine: Engine) -> None:
    await counter(engine, instances=2)
    one, two = await engine.claim("f", room=2)
    async with engine.refused("lease_lost"):
        await engine.complete(one._replace(attempt=two.attempt), n=1)


async def test_a_lease_that_ended_but_was_given_to_nobody_still_counts(engine: Engine) -> None:
    (instance,) = await counter(engine)
    job = await engine.take("f", "step")
    await engine.advance(seconds=61)  # and no clock has come by
    await engine.complete(job, n=1)
    assert await engine.state(instance) == {"n": 1}


async def test_a_renewed_lease_lasts_and_one_that_is_not_ends(engine: Engine) -> None:
    await counter(engine, instances=2)
    kept, lost = await engine.claim("f", room=2)
    await engine.advance(seconds=50)
    assert await engine.renew(kept) == []
    await engine.advance(seconds=30)
    assert (await engine.tick())[1] == 1
    assert await engine.renew(kept, lost) == [lost.attempt]


async def test_the_clock_says_when_it_has_something_to_do(engine: Engine) -> None:
    await counter(engine)
    assert await engine.one("select next_at from mutirao.turn_clock()") is None
    await engine.claim("f", lease=timedelta(seconds=90))
    left = await engine.one("select extract(epoch from next_at - mutirao.now())::float8 from mutirao.turn_clock()")
    assert 80 < left <= 90


async def test_a_job_given_back_is_ready_at_once_and_uses_no_retry(engine: Engine) -> None:
    (instance,) = await counter(engine)
    job = await engine.take("f", "step")
    assert await engine.release(job) == []
    assert await engine.jobs(instance) == {"step": "ready"}
    assert (await engine.take("f", "step")).failures == 0


async def test_a_claim_gets_only_jobs_of_the_tasks_it_names_and_no_more_than_it_has_room_for(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"a": "n = 0", "b": "n = 0"}, final="n = 1")
    await engine.start_many("f", [{}] * 10)
    got = await engine.claim("f", "b", room=7)
    assert [job.task for job in got] == ["b"] * 7
    assert len(await engine.claim("f", "b", room=7)) == 3
    assert await engine.claim("f", "b", room=7) == []
    assert await engine.claim("f", "a", room=0) == []


async def test_the_oldest_goes_first(engine: Engine) -> None:
    instances = await counter(engine, instances=5)
    assert [(await engine.take("f", "step")).instance for _ in instances] == instances


async def test_the_higher_priority_goes_first_across_tasks(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"low": "n = 0", "high": {"when": "n = 0", "priority": 5}}, final="n = 1")
    plain = await engine.start("f")
    urgent = await engine.start("f", priority=10)
    order = [(job.instance, job.task) for _ in range(4) for job in await engine.claim("f")]
    assert order == [(urgent, "high"), (urgent, "low"), (plain, "high"), (plain, "low")]


async def test_a_negative_priority_waits_for_all_others(engine: Engine) -> None:
    await counter(engine)
    later = await engine.start("f", priority=-1)
    usual = await engine.start("f")
    order = [(await engine.take("f", "step")).instance for _ in range(3)]
    assert order[1:] == [usual, later]


async def test_who_gives_back_jobs_gets_what_they_fire_leased_in_exchange(engine: Engine) -> None:
    await counter(engine, instances=5)
    jobs = await engine.claim("f", room=5)
    told, got = await engine.turn([(job, {"n": 1}) for job in jobs], flow="f", room=5)
    assert told == []
    assert [job.instance for job in got] == [job.instance for job in jobs]
    assert all(job.state == {"n": 1} for job in got)
    told, got = await engine.turn([(job, {"n": 2}) for job in got], flow="f", room=2)
    assert len(got) == 2


async def test_never_more_is_leased_than_there_is_room_for(engine: Engine) -> None:
    names = [f"t{n}" for n in range(6)]
    await engine.apply("f", {"n": 0, "a": 0, "b": 0}, {"a": "a = 0", "b": "b = 0"} | {
        name: {"when": f"{'a' if n % 2 else 'b'} = 1", "fires": "once"} for n, name in enumerate(names)
    }, ends="quiet")  # fmt: skip
    await engine.start("f")
    a, b = await engine.claim("f", "a", "b", room=2)
    _, got = await engine.turn([(a, {"a": 1}), (b, {"b": 1})], flow="f", room=2)
    assert len(got) == 2
    assert await engine.one("select count(*) from mutirao.job where status = 'running'") == 2


async def test_what_is_more_urgent_goes_before_what_one_has_just_fired(engine: Engine) -> None:
    await counter(engine)
    job = await engine.take("f", "step")
    urgent = await engine.start("f", priority=1)
    _, got = await engine.turn([(job, {"n": 1})], flow="f", room=1)
    assert [job.instance for job in got] == [urgent]


async def test_an_answer_that_is_no_job_takes_no_room(engine: Engine) -> None:
    await counter(engine, instances=2)
    job = await engine.take("f", "step")
    told, got = await engine.turn([(job._replace(attempt=0), {"n": 1})], flow="f", room=1)
    assert [t.kind for t in told] == ["lost"]
    assert len(got) == 1


async def test_arrays_of_different_length_are_refused(engine: Engine) -> None:
    await counter(engine)
    job = await engine.take("f", "step")
    for attempts, changes, errors in (([], ["{}"], [None]), ([job.attempt], [], [None]), ([job.attempt], ["{}"], [])):
        async with engine.refused("wrong_call", "one length"):
            await engine.rows(
                "select * from mutirao.turn('ann', %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], '{}', 0)",
                [job.id], attempts, changes, errors,
            )  # fmt: skip


async def test_unknown_flows_and_tasks_are_named(engine: Engine) -> None:
    await counter(engine)
    async with engine.refused("unknown_flow", '"nope"'):
        await engine.start("nope")
    async with engine.refused("unknown_flow", '"nope"'):
        await engine.claim("nope")
    async with engine.refused("unknown_task", "it has step"):
        await engine.claim("f", "stepp")
    async with engine.refused("unknown_task", "it has step"):
        await engine.rows("select * from f.take('stepp')")


async def test_the_state_of_a_claimed_job_is_the_one_that_fired_it(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "b": 0}, {"a": "a = 0", "b": "b = 0"}, final="a = 1 and b = 1")
    await engine.start("f")
    await engine.do("f", "a", a=1)
    job: Job = await engine.take("f", "b")
    assert job.state == {"a": 0, "b": 0}


async def test_the_engine_reads_no_clock_but_its_own(engine: Engine) -> None:
    """Else a test that moves the clock would prove nothing."""
    reading = (
        r"(clock|statement|transaction)_timestamp|current_(time|date)|localtime|\mtimeofday|(?<!mutirao\.)\mnow\(\)"
    )
    found = await engine.rows(
        """
        select p.proname from pg_proc p
        where p.pronamespace = 'mutirao'::regnamespace and p.proname not in ('now', 'stopwatch', 'condition_hint')
          and coalesce(p.prosrc, '') || coalesce(pg_get_function_sqlbody(p.oid), '') ~* %s""",
        reading,
    )
    assert found == []


async def test_no_room_is_no_job(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a = 0"}, final="a = 1")
    await engine.start("f")
    tasks = list(await engine.tasks("f", "go"))
    assert await engine.rows("select * from mutirao.claim('ann', %s::int[], null)", tasks) == []


async def test_instances_that_always_have_a_next_step_do_not_keep_others_out(engine: Engine) -> None:
    """A worker with one place, whose job always fires the next one: sooner or later it gets what has waited."""
    await engine.apply("loop", {"n": 0}, {"step": "n >= 0"}, final="n < 0")
    await engine.apply("lone", {"done": False}, {"work": "not done"}, final="done")
    await engine.start("loop")
    tasks = [*await engine.tasks("loop", "step"), *await engine.tasks("lone", "work")]
    turn = "select job, attempt, instance from mutirao.turn('ann', %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], %s::int[], 1)"
    ((job, attempt, _),) = await engine.rows(turn, [], [], [], [], tasks)
    waiting = await engine.start("lone")
    for n in range(300):
        ((job, attempt, instance),) = await engine.rows(turn, [job], [attempt], [Jsonb({"n": n})], [None], tasks)
        if instance == waiting:
            return
    pytest.fail("300 steps of one instance, and the other still waits")

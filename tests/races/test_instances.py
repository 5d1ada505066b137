"""Several sessions write the same instances: nobody waits for long, nothing is lost, nothing ends twice."""

import asyncio
from collections import Counter
from typing import Any

import psycopg
import pytest
from driver import Engine, Job, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import at_once, run, running, session, until_it_waits
from psycopg.types.json import Jsonb

COMPLETE = "select mutirao.complete(%s, %s, %s)"


async def branches(engine: Engine, *, width: int = 4, instances: int = 1) -> list[int]:
    """Parallel branches and a join."""
    names = [f"b{n}" for n in range(width)]
    await engine.apply(
        "f",
        dict.fromkeys(names, 0) | {"joined": False},
        {name: f"{name} = 0" for name in names}
        | {"join": " and ".join(f"{name} > 0" for name in names) + " and not joined"},
        final="joined",
    )
    return await engine.start_many("f", [{}] * instances)


async def test_one_poison_condition_among_five_hundred_instances(engine: Engine) -> None:
    await engine.apply("f", {"d": 1, "n": 0}, {"go": "n = 0", "check": "n = 1 and 10 / d > 0"}, final="n = 2")
    instances = await engine.start_many("f", [{}] * 500)
    poisoned = instances[250]
    jobs = await engine.claim("f", "go", room=500)
    done = [(job, {"n": 1, "d": 0 if job.instance == poisoned else 1}) for job in jobs]
    told, got = await engine.turn(done, flow="f", room=500)
    assert [(t.kind, (t.note or {}).get("task"), (t.note or {}).get("error")) for t in told] == [
        ("parked", "check", "division by zero")
    ]
    assert len(got) == 499
    assert {job.instance for job in got} == set(instances) - {poisoned}
    statuses = await engine.rows("select status::text, count(*) from mutirao.instance group by 1 order by 1")
    assert dict(statuses) == {"open.running": 499, "open.exception": 1}
    assert await engine.rows("select id from mutirao.instance where status = 'open.exception'") == [(poisoned,)]
    (reason,) = await engine.reasons(poisoned)
    assert (reason["code"], reason["condition"], reason["error"]) == (
        "condition_failed",
        "n = 1 and 10 / d > 0",
        "division by zero",
    )
    assert await engine.one("select change from mutirao.job where id = %s", reason["job"]) == {"n": 1, "d": 0}
    assert await engine.state(poisoned) == {"d": 1, "n": 0}


async def test_four_workers_on_parallel_branches_of_the_same_instances_lose_nothing(engine: Engine) -> None:
    instances = await branches(engine, instances=40)
    ids = {name: task for task, name in (await engine.tasks("f")).items()}
    answers: Counter[str] = Counter()

    async def work(branch: str) -> None:
        tasks = [ids[branch], ids["join"]]
        async with await psycopg.AsyncConnection.connect(engine.url, autocommit=True) as connected:
            done: list[tuple[int, int, dict[str, Any]]] = []
            while True:
                rows = await run(
                    connected,
                    "select * from mutirao.turn(%s, %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], %s::int[], 10)",
                    branch, [d[0] for d in done], [d[1] for d in done], [Jsonb(d[2]) for d in done], [None] * len(done), tasks,
                )  # fmt: skip
                answers.update(row[0] for row in rows)
                busy = {row[1] for row in rows if row[0] == "busy"}
                again = [d for d in done if d[0] in busy]
                new = [
                    (row[1], row[2], {branch: 1} if row[4] == ids[branch] else {"joined": True})
                    for row in rows
                    if row[0] == "job"
                ]
                done = again + new
                if not done and not await run(connected, "select from mutirao.job"):
                    return

    await asyncio.gather(*(work(f"b{n}") for n in range(4)))
    assert set(answers) <= {"job", "busy"}
    closed = await engine.rows("select id, status::text, state from mutirao.closed order by id")
    assert closed == [(i, "closed.completed", {"b0": 1, "b1": 1, "b2": 1, "b3": 1, "joined": True}) for i in instances]
    assert (
        await engine.rows(
            "select count(*) from mutirao.trace where kind = 'finish' group by instance having count(*) <> 5"
        )
        == []
    )
    assert await engine.one("select deadlocks from pg_stat_database where datname = current_database()") == 0


async def test_changes_of_two_sessions_are_merged_though_both_read_the_same_state(engine: Engine) -> None:
    (instance,) = await branches(engine, width=2)
    one, two = await engine.claim("f", "b0", "b1", room=2)
    async with session(engine) as first, session(engine) as second:
        await run(first, "select mutirao.complete_here(%s, %s, %s)", one.id, one.attempt, Jsonb({"b0": 1}))
        waiting = running(second, "select mutirao.complete_here(%s, %s, %s)", two.id, two.attempt, Jsonb({"b1": 1}))
        await until_it_waits(engine, second)
        await first.commit()
        await waiting
        await second.commit()
    assert await engine.state(instance) == {"b0": 1, "b1": 1, "joined": False}
    assert await engine.jobs(instance) == {"join": "ready"}


async def test_an_instance_that_somebody_holds_is_answered_busy_and_the_rest_of_the_batch_goes_through(
    engine: Engine,
) -> None:
    held, free = await branches(engine, width=2, instances=2)
    jobs = {job.instance: job for job in await engine.claim("f", "b0", room=2)}
    async with session(engine) as holder:
        await run(holder, "select mutirao.set(%s, '{}')", held)
        told, _ = await engine.turn([(jobs[held], {"b0": 1}), (jobs[free], {"b0": 1})])
        assert [(t.kind, t.job) for t in told] == [("busy", jobs[held].id)]
        assert (await engine.state(free))["b0"] == 1
        with pytest.raises(psycopg.Error, match=r"^instance_busy: "):
            await engine.complete(jobs[held], b0=1)
        with pytest.raises(psycopg.Error, match=r"^instance_busy: "):
            await engine.fail(jobs[held])
        await holder.rollback()
    told, _ = await engine.turn([(jobs[held], {"b0": 1})])
    assert told == []
    assert (await engine.state(held))["b0"] == 1


async def test_a_long_transaction_on_one_instance_delays_nobody_else(engine: Engine) -> None:
    held, other = await branches(engine, width=2, instances=2)
    async with session(engine) as psql:
        ((attempt,),) = await run(psql, "select attempt from f.take('b0', %s)", held)
        await psql.commit()
        await psql.execute(f"set local mutirao.attempt = '{attempt}'".encode())
        await run(psql, "update f.wed_flow set b0 = 7 where wid = %s", held)
        # It stays open. Everything else is done with a lock timeout of a millisecond.
        ids = list(await engine.tasks("f"))
        await at_once(engine, "select mutirao.start('f')")
        claimed = await at_once(engine, "select job, attempt, instance from mutirao.claim('w', %s::int[], 10)", ids)
        assert {row[2] for row in claimed} >= {other}
        await at_once(
            engine,
            "select * from mutirao.renew(%s::bigint[], %s::bigint[])",
            [c[0] for c in claimed],
            [c[1] for c in claimed],
        )
        kinds = await at_once(
            engine,
            "select kind, instance from mutirao.turn('w', %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], '{}', 0)",
            [c[0] for c in claimed], [c[1] for c in claimed], [Jsonb({})] * len(claimed), [None] * len(claimed),
        )  # fmt: skip
        assert {instance for kind, instance in kinds if kind == "busy"} <= {held}
        assert {kind for kind, _ in kinds} <= {"busy"}
        await engine.advance(hours=1)
        await at_once(engine, "select * from mutirao.turn_clock()")
        await at_once(engine, "select mutirao.suspend(%s)", other)
        await at_once(engine, "select mutirao.cancel(%s)", other)
        await psql.commit()
    assert (await engine.state(held))["b0"] == 7
    await engine.tick()
    assert set((await engine.jobs(held)).values()) == {"ready"}


async def test_a_write_of_attributes_that_somebody_else_has_written_meanwhile_is_refused(engine: Engine) -> None:
    (instance,) = await branches(engine, width=2)
    async with session(engine) as psql, session(engine) as other:
        ((attempt,),) = await run(psql, "select attempt from f.take('b0')")
        await psql.commit()
        await run(other, "select mutirao.set(%s, %s)", instance, Jsonb({"b0": 5}))
        await psql.execute(f"set local mutirao.attempt = '{attempt}'".encode())
        waiting = running(psql, "update f.wed_flow set b0 = b0 + 1 where wid = %s", instance)
        await until_it_waits(engine, psql)
        await other.commit()
        with pytest.raises(psycopg.errors.SerializationFailure, match="changed_meanwhile"):
            await waiting
        await psql.rollback()
        assert await engine.state(instance) == {"b0": 5, "b1": 0, "joined": False}
        # Tried again, it reads what is there.
        await psql.execute(f"set local mutirao.attempt = '{attempt}'".encode())
        await run(psql, "update f.wed_flow set b0 = b0 + 1 where wid = %s", instance)
        await psql.commit()
    assert await engine.state(instance) == {"b0": 6, "b1": 0, "joined": False}


async def test_a_write_of_other_attributes_meanwhile_is_no_conflict(engine: Engine) -> None:
    (instance,) = await branches(engine, width=2)
    async with session(engine) as psql, session(engine) as other:
        ((attempt,),) = await run(psql, "select attempt from f.take('b0')")
        await psql.commit()
        await run(other, "select mutirao.set(%s, %s)", instance, Jsonb({"b1": 5}))
        await psql.execute(f"set local mutirao.attempt = '{attempt}'".encode())
        waiting = running(psql, "update f.wed_flow set b0 = 1 where wid = %s", instance)
        await until_it_waits(engine, psql)
        await other.commit()
        await waiting
        await psql.commit()
    assert await engine.state(instance) == {"b0": 1, "b1": 5, "joined": False}


async def test_of_two_sessions_that_write_with_one_attempt_one_ends_the_job(engine: Engine) -> None:
    (instance,) = await branches(engine, width=2)
    job = await engine.take("f", "b0")
    async with session(engine) as first, session(engine) as second:
        await run(first, COMPLETE, job.id, job.attempt, Jsonb({"b0": 1}))
        waiting = running(second, "select mutirao.complete_here(%s, %s, %s)", job.id, job.attempt, Jsonb({"b0": 2}))
        await until_it_waits(engine, second)
        await first.commit()
        with pytest.raises(psycopg.Error, match=r"^lease_lost: "):
            await waiting
    assert await engine.state(instance) == {"b0": 1, "b1": 0, "joined": False}


async def test_a_completion_that_is_rolled_back_has_done_nothing(engine: Engine) -> None:
    await branches(engine)
    job = await engine.take("f", "b0")
    before = await engine.everything()
    async with session(engine) as first:
        await run(first, COMPLETE, job.id, job.attempt, Jsonb({"b0": 1}))
        await first.rollback()
    assert await engine.everything() == before


async def test_a_renewal_waits_for_nobody_who_ends_those_jobs(engine: Engine) -> None:
    """Else two that take the same jobs in different order would wait for each other."""
    await branches(engine, instances=2)
    first, second = await engine.claim("f", "b0", room=2)
    async with session(engine) as ending:
        await run(ending, COMPLETE, second.id, second.attempt, Jsonb({"b0": 1}))
        lost = await at_once(
            engine,
            "select * from mutirao.renew(%s::bigint[], %s::bigint[])",
            [first.id, second.id],
            [first.attempt, second.attempt],
        )
        assert lost == []  # neither is: one is renewed, the other is about to end
        await run(ending, COMPLETE, first.id, first.attempt, Jsonb({"b0": 1}))
        await ending.commit()
    assert await engine.renew(first, second) == [first.attempt, second.attempt]


async def test_two_clocks_share_the_work(engine: Engine) -> None:
    await branches(engine, width=1, instances=10)
    jobs: list[Job] = await engine.claim("f", "b0", room=10)
    await engine.advance(minutes=2)
    async with session(engine) as first:
        ((ended,),) = await run(first, "select (done ->> 'leases')::int from mutirao.turn_clock(4)")
        assert ended == 4
        assert await at_once(engine, "select (done ->> 'leases')::int from mutirao.turn_clock()") == [(6,)]
        await first.commit()
    assert await engine.tick() == (0, 0, 0)
    assert await engine.one("select count(*) from mutirao.job where status = 'ready' and losses = 1") == len(jobs)

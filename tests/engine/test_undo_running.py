"""Rolling back while something runs: it ends first, is given back, is lost, or is being claimed at that very moment."""

import asyncio
from typing import Any

import psycopg
import pytest
from batch_driver import drive
from driver import Engine, Job, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

ONCE: dict[str, Any] = {"when": "true", "fires": "once", "retries": 0}
CHAIN: dict[str, Any] = {"a": {**ONCE, "compensation": "u"}, "b": after("a", retries=0), "u": {}}
# `aside` was fired before the safe-point `s` ended, `b` after it.
SAFE: dict[str, Any] = {
    "s": {**ONCE, "safe_point": True},
    "aside": {**ONCE, "compensation": "u"},
    "b": after("s", retries=0),
    "u": {},
}


async def begun(engine: Engine, tasks: dict[str, Any], *done: str) -> int:
    await engine.apply("f", {"n": 0}, tasks, ends="quiet")
    instance = await engine.start("f")
    for task in done:
        await engine.do("f", task)
    return instance


async def roll_back(engine: Engine, instance: int, safe_point: str | None = None) -> None:
    await engine.rows("select mutirao.roll_back(%s, %s)", instance, safe_point)


async def test_what_is_given_back_is_gone(engine: Engine) -> None:
    instance = await begun(engine, CHAIN, "a")
    b = await engine.take("f", "b")
    await roll_back(engine, instance)
    await engine.release(b)
    assert await engine.jobs(instance) == {"u": "ready"}


async def test_a_compensation_that_is_given_back_is_ready_again(engine: Engine) -> None:
    instance = await begun(engine, CHAIN, "a")
    await roll_back(engine, instance)
    await engine.release(await engine.take("f", "u"))
    assert await engine.jobs(instance) == {"u": "ready"}
    await engine.do("f", "u")
    assert await engine.status(instance) == "closed.terminated"


async def test_what_a_worker_took_with_it_is_gone(engine: Engine) -> None:
    instance = await begun(engine, CHAIN, "a")
    await engine.take("f", "b")
    await roll_back(engine, instance)
    await engine.advance(minutes=5)
    await engine.tick()
    assert await engine.jobs(instance) == {"u": "ready"}


async def test_a_compensation_that_a_worker_took_with_it_is_ready_again(engine: Engine) -> None:
    instance = await begun(engine, CHAIN, "a")
    await roll_back(engine, instance)
    lost = await engine.take("f", "u")
    await engine.advance(minutes=5)
    await engine.tick()
    again = await engine.take("f", "u")
    assert again.attempt > lost.attempt
    await engine.complete(again)
    assert await engine.status(instance) == "closed.terminated"
    assert (await engine.kinds(instance)).count("compensate") == 1


async def test_what_is_given_back_and_does_not_follow_the_safe_point_goes_on(engine: Engine) -> None:
    instance = await begun(engine, SAFE, "s")
    aside = await engine.take("f", "aside")
    await roll_back(engine, instance, "s")
    await engine.release(aside)
    assert await engine.jobs(instance) == {"aside": "ready", "b": "ready"}


async def test_what_does_not_follow_the_safe_point_is_tried_again(engine: Engine) -> None:
    instance = await begun(engine, {**SAFE, "aside": {**SAFE["aside"], "retries": 3}}, "s")
    aside = await engine.take("f", "aside")
    await roll_back(engine, instance, "s")
    await engine.fail(aside, "no")
    assert await engine.jobs(instance) == {"aside": "ready", "b": "ready"}


async def test_a_failure_of_what_does_not_follow_the_safe_point_counts(engine: Engine) -> None:
    instance = await begun(engine, SAFE, "s")
    aside = await engine.take("f", "aside")
    await roll_back(engine, instance, "s")
    await engine.fail(aside, "no")
    assert await engine.jobs(instance) == {"aside": "failed", "_EXCPT": "ready", "b": "ready"}
    assert await engine.status(instance) == "open.exception"


async def test_what_was_tried_again_after_the_safe_point_follows_it(engine: Engine) -> None:
    instance = await begun(engine, SAFE)
    await engine.fail(await engine.take("f", "aside"), "no")
    await engine.do("f", "s")
    await engine.retry(await engine.job(instance, "aside"))
    await engine.do("f", "aside")
    await roll_back(engine, instance, "s")
    assert await engine.jobs(instance) == {"u": "ready"}
    await engine.do("f", "u")
    assert await engine.jobs(instance) == {"b": "ready", "aside": "ready"}


async def test_whoever_claims_a_critical_task_at_that_moment_is_waited_for(engine: Engine) -> None:
    instance = await begun(engine, {**CHAIN, "b": after("a", critical=True)}, "a")
    tasks = await engine.tasks("f", "b")
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    async with await AsyncConnection.connect(engine.url) as claiming:
        await claiming.execute("select mutirao.claim('w', %s::int[], 1, interval '60 s')", [list(tasks)])
        rolling = asyncio.create_task(roll_back(engine, instance))
        while not await engine.one(waiting):  # noqa: ASYNC110 only the database knows
            await asyncio.sleep(0.01)
        await claiming.commit()
        with pytest.raises(psycopg.Error, match='critical_task: task "b"'):
            await rolling
    assert await engine.jobs(instance) == {"b": "running"}


async def test_an_interrupted_instance_is_rolled_back_at_once(engine: Engine) -> None:
    instance = await begun(engine, CHAIN, "a")
    await engine.suspend(instance)
    await roll_back(engine, instance)
    assert await engine.jobs(instance) == {"u": "ready"}


async def test_what_the_version_cannot_undo_any_more_is_critical(engine: Engine) -> None:
    instance = await begun(engine, CHAIN, "a")
    await engine.apply("f", {"n": 0}, {"b": ONCE}, ends="quiet")
    await drive(engine, await engine.one("select mutirao.migrate_flow('f')"))
    async with engine.refused("critical_task", '"a"'):
        await roll_back(engine, instance)


async def test_only_compensations_change_it(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, CHAIN, ends="quiet")
    instance = await engine.one("select mutirao.start('f', key => 'key')")
    await engine.do("f", "a", n=1)
    await engine.take("f", "b")
    await roll_back(engine, instance)
    async with engine.refused("instance_undoing", "only compensations"):
        await engine.set(instance, n=7)
    async with engine.refused("instance_undoing", "only compensations"):
        await engine.rows("select mutirao.send('f', 'key', '{\"n\": 7}')")


FINAL: dict[str, Any] = {
    "a": {**ONCE, "compensation": "undo_a"},
    "b": {**ONCE, "compensation": "undo_b"},
    "undo_a": {},
    "undo_b": {},
}


async def of_final(engine: Engine, **tasks: Any) -> int:
    await engine.apply("f", {"n": 0}, FINAL | tasks, final="n = 9")
    return await engine.start("f")


async def test_a_compensation_of_an_interrupted_rollback_ends_once_though_its_state_is_final(engine: Engine) -> None:
    instance = await of_final(engine)
    for task in ("a", "b"):
        await engine.do("f", task)
    await roll_back(engine, instance)
    undo = await engine.take("f", "undo_b")
    await engine.suspend(instance)
    await engine.complete(undo, n=9)
    assert await engine.jobs(instance) == {"undo_a": "held"}
    await engine.resume(instance)
    await engine.do("f", "undo_a")
    assert await engine.status(instance) == "closed.terminated"
    assert (await engine.kinds(instance)).count("compensate") == 2


async def test_what_ends_while_a_rollback_is_interrupted_is_undone_though_its_state_is_final(engine: Engine) -> None:
    instance = await of_final(engine)
    a, b = await engine.take("f", "a"), await engine.take("f", "b")
    await roll_back(engine, instance)
    await engine.suspend(instance)
    await engine.complete(a, n=9)
    await engine.complete(b)
    await engine.resume(instance)
    assert await engine.jobs(instance) == {"undo_a": "ready", "undo_b": "ready"}


async def test_what_is_parked_is_done_and_undone(engine: Engine) -> None:
    instance = await of_final(engine, c=ONCE)
    assert await engine.do("f", "a", n=9) == "parked"
    assert await engine.do("f", "b", n=9) == "parked"
    await roll_back(engine, instance)
    assert await engine.jobs(instance) == {"undo_a": "ready", "undo_b": "ready"}
    for task in ("undo_a", "undo_b"):
        await engine.do("f", task)
    assert await engine.status(instance) == "closed.terminated"


async def test_what_is_parked_without_a_change_is_not_done(engine: Engine) -> None:
    instance = await of_final(engine, c={**ONCE, "critical": True})
    c = await engine.take("f", "c")
    problem = Jsonb({"code": "final_blocked"})
    await engine.rows("select mutirao.park_attempt(%s, %s, null, %s)", c.id, c.attempt, problem)
    await roll_back(engine, instance)
    assert await engine.status(instance) == "closed.terminated"


# `aside` was fired before the safe-point `s` ended; `undo_b` undoes what followed it.
BESIDE: dict[str, Any] = {
    "s": {**ONCE, "safe_point": True},
    "aside": ONCE,
    "b": after("s", compensation="undo_b"),
    "c": after("b"),
    "undo_b": {},
}


async def park(engine: Engine, job: Job) -> None:
    """A condition took too long for the worker."""
    problem = Jsonb({"code": "condition_failed", "error": "too slow"})
    await engine.rows("select mutirao.park_attempt(%s, %s, '{}', %s)", job.id, job.attempt, problem)


async def test_what_rests_beside_a_rollback_is_not_skipped(engine: Engine) -> None:
    instance = await begun(engine, BESIDE, "s", "b")
    await roll_back(engine, instance, "s")
    for _ in range(2):
        async with engine.refused("instance_undoing", "only its compensations"):
            await engine.skip(await engine.job(instance, "aside"), n=7)
        await engine.suspend(instance)
    await engine.resume(instance)
    await engine.do("f", "undo_b")
    assert await engine.jobs(instance) == {"aside": "ready", "b": "ready"}


async def test_what_has_failed_beside_a_rollback_is_retried_after_it(engine: Engine) -> None:
    instance = await begun(engine, BESIDE)
    await engine.fail(await engine.take("f", "aside"))
    for task in ("s", "b"):
        await engine.do("f", task)
    await roll_back(engine, instance, "s")
    async with engine.refused("instance_undoing", "only its compensations"):
        await engine.retry(await engine.job(instance, "aside"))
    batch = await drive(engine, await engine.one("select mutirao.make_batch('retry', %s)", Jsonb({"flow": "f"})))
    assert (batch.done, batch.refused) == (0, 0)
    await engine.do("f", "undo_b")
    await engine.retry(await engine.job(instance, "aside"))
    assert await engine.jobs(instance) == {"aside": "ready", "b": "ready"}


async def test_what_is_to_be_undone_is_not_parked(engine: Engine) -> None:
    instance = await begun(engine, CHAIN, "a")
    b = await engine.take("f", "b")
    await roll_back(engine, instance)
    await park(engine, b)
    assert await engine.jobs(instance) == {"u": "ready"}
    assert (await engine.kinds(instance))[-1] == "drop"


async def test_a_compensation_is_not_parked_but_tried_again(engine: Engine) -> None:
    instance = await begun(engine, {**CHAIN, "u": {"retries": 1}}, "a")
    await roll_back(engine, instance)
    for _ in range(2):
        undo = await engine.take("f", "u")
        await park(engine, undo)
        await engine.advance(minutes=10)
        await engine.tick()
    assert await engine.codes(instance) == ["compensation_failed"]
    assert await engine.status(instance) == "open.exception"


async def test_what_is_parked_beside_a_rollback_does_not_keep_it(engine: Engine) -> None:
    instance = await begun(engine, BESIDE, "s", "b")
    aside = await engine.take("f", "aside")
    await roll_back(engine, instance, "s")
    await park(engine, aside)
    assert (await engine.jobs(instance))["undo_b"] == "ready"
    await engine.do("f", "undo_b")
    assert await engine.jobs(instance) == {"b": "ready"}, "aside has got through"


async def test_two_that_fail_beside_a_rollback_at_once_fail_once_each(engine: Engine) -> None:
    instance = await begun(engine, {**SAFE, "beside": ONCE})
    aside, beside = await engine.take("f", "aside"), await engine.take("f", "beside")
    await engine.do("f", "s")
    await roll_back(engine, instance, "s")
    await engine.turn([], [(aside, "no"), (beside, "no")])
    assert await engine.one("select cardinality(failed) from mutirao.instance where id = %s", instance) == 2
    assert await engine.codes(instance) == ["task_failed", "task_failed"]
    assert await engine.jobs(instance) == {"aside": "failed", "beside": "failed", "b": "ready", "_EXCPT": "ready"}


async def test_the_deadline_of_an_item_beside_a_rollback_is_told_after_it(engine: Engine) -> None:
    await engine.rows("select mutirao.add_role(null, 'clerk')")
    instance = await begun(
        engine, {**BESIDE, "aside": {**ONCE, "offer": {"role": "clerk", "deadline": 7200}}}, "s", "b"
    )
    await roll_back(engine, instance, "s")
    await engine.advance(hours=1, minutes=30)
    await engine.tick()
    await engine.do("f", "undo_b")
    assert await engine.one("select alert_at <= mutirao.now() from mutirao.job where role is not null")


async def test_the_deadline_of_a_compensation_is_told(engine: Engine) -> None:
    await engine.rows("select mutirao.add_role(null, 'clerk')")
    instance = await begun(engine, {**CHAIN, "u": {"offer": {"role": "clerk", "deadline": 7200}}}, "a")
    await roll_back(engine, instance)
    await engine.advance(hours=1, minutes=30)
    await engine.tick()
    assert await engine.one("select alert_at > mutirao.now() from mutirao.job where role is not null")

"""Emergency triggers: a task that waits no longer than so long for those it depends on."""

from datetime import timedelta

import pytest
from batch_driver import drive
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`

HOUR = 3600
DAY = timedelta(days=1)
FIREMEN = {
    "procedure_1": {"when": "true", "fires": "once", "retries": 0},
    "procedure_2": after("procedure_1", time_to_wait=HOUR),
}


async def called(engine: Engine) -> int:
    await engine.apply("rescue", {"a": 0}, FIREMEN, ends="quiet")
    return await engine.start("rescue")


async def test_the_time_runs_from_the_start_of_the_first_predecessor(engine: Engine) -> None:
    instance = await called(engine)
    await engine.advance(hours=2)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "ready"}
    await engine.take("rescue", "procedure_1", lease=DAY)
    await engine.advance(minutes=59)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running"}
    await engine.advance(minutes=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running", "procedure_2": "ready"}


async def test_it_starts_once_whatever_they_do_later(engine: Engine) -> None:
    instance = await called(engine)
    first = await engine.take("rescue", "procedure_1", lease=DAY)
    await engine.advance(hours=1)
    await engine.tick()
    await engine.do("rescue", "procedure_2")
    await engine.complete(first)
    assert await engine.status(instance) == "closed.completed"


async def test_who_ends_in_time_needs_no_alarm(engine: Engine) -> None:
    instance = await called(engine)
    await engine.do("rescue", "procedure_1")
    assert await engine.jobs(instance) == {"procedure_2": "ready"}
    assert not await engine.rows("select from mutirao.alarm")


async def test_it_starts_even_if_they_failed(engine: Engine) -> None:
    instance = await called(engine)
    await engine.fail(await engine.take("rescue", "procedure_1"), "no")
    await engine.advance(hours=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "failed", "_EXCPT": "ready", "procedure_2": "ready"}


async def test_an_interrupted_instance_is_not_alarmed(engine: Engine) -> None:
    instance = await called(engine)
    await engine.take("rescue", "procedure_1", lease=DAY)
    await engine.suspend(instance)
    await engine.advance(hours=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running"}
    await engine.resume(instance)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running", "procedure_2": "ready"}


async def test_what_is_rolled_back_is_not_waited_for(engine: Engine) -> None:
    tasks = {
        "s": {"when": "true", "fires": "once", "safe_point": True},
        "g": after("s", retries=0),
        "j": after("g", time_to_wait=HOUR),
    }
    await engine.apply("rescue", {"a": 0}, tasks, ends="quiet")
    instance = await engine.start("rescue")
    await engine.do("rescue", "s")
    going = await engine.take("rescue", "g", lease=DAY)
    await engine.advance(minutes=50)
    await engine.rows("select mutirao.roll_back(%s, 's')", instance)
    await engine.fail(going, "no")
    await engine.advance(minutes=11)
    await engine.tick()
    assert await engine.jobs(instance) == {"g": "ready"}
    assert not await engine.rows("select from mutirao.alarm")


async def test_a_task_that_cannot_start_is_tried_once_and_again_when_something_changes(engine: Engine) -> None:
    await engine.apply("rescue", {"a": 0}, FIREMEN, ends="quiet", firing_limit=1)
    instance = await engine.start("rescue")
    await engine.take("rescue", "procedure_1", lease=DAY)
    await engine.advance(hours=1)
    for _ in range(3):
        await engine.tick()
    assert [step.kind for step in await engine.trace(instance)].count("alarm") == 1
    assert await engine.status(instance) == "open.exception"
    await engine.repair(instance)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running", "procedure_2": "ready"}


async def test_whoever_waits_for_it_to_be_ready_starts_with_it(engine: Engine) -> None:
    watching = {"watch": {"depends": {"task": "procedure_2", "state": "ready"}}}
    await engine.apply("rescue", {"a": 0}, {**FIREMEN, **watching}, ends="quiet")
    instance = await engine.start("rescue")
    await engine.take("rescue", "procedure_1", lease=DAY)
    await engine.advance(hours=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running", "procedure_2": "ready", "watch": "ready"}


async def test_who_waits_for_a_failure_is_not_started_after_a_success(engine: Engine) -> None:
    """The second procedure is for when the first has not helped: it has, so nothing is left to wait for."""
    tasks = {**FIREMEN, "procedure_2": after("procedure_1", "failed", time_to_wait=HOUR)}
    await engine.apply("rescue", {"a": 0}, tasks, ends="quiet")
    for ended in ("in time", "too late"):
        instance = await engine.start("rescue")
        first = await engine.take("rescue", "procedure_1", lease=DAY)
        if ended == "too late":
            await engine.advance(hours=1)
            await engine.tick()
            await engine.do("rescue", "procedure_2")
        await engine.complete(first)
        assert await engine.status(instance) == "closed.completed"
        assert not await engine.rows("select from mutirao.alarm")
        assert ("alarm" in await engine.kinds(instance)) == (ended == "too late")


async def test_an_alarm_that_could_not_start_leaves_the_clock_to_the_others(engine: Engine) -> None:
    await engine.apply("rescue", {"a": 0}, FIREMEN, ends="quiet", firing_limit=1)
    await engine.start("rescue")
    await engine.take("rescue", "procedure_1", lease=DAY)
    await engine.advance(hours=1)
    await engine.tick()
    duty = "select done, extract(epoch from next_at - mutirao.now())::float8 from mutirao.turn_clock(500, 'alarms')"
    assert await engine.rows(duty) == [({"alarms": 0}, None)]


async def test_of_two_alarms_due_at_once_one_may_fire_the_other(engine: Engine) -> None:
    either = {"any": [{"task": "g", "state": "succeeded"}, {"task": "e1", "state": "ready"}]}
    tasks = {
        "g": {"when": "true", "fires": "once"},
        "e1": after("g", time_to_wait=HOUR),
        "e2": {"depends": either, "time_to_wait": HOUR},
    }
    await engine.apply("rescue", {"a": 0}, tasks, ends="quiet")
    instance = await engine.start("rescue")
    await engine.take("rescue", "g", lease=DAY)
    await engine.advance(hours=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"g": "running", "e1": "ready", "e2": "ready"}


@pytest.mark.parametrize("next_task", ["procedure_2", "procedure_3"])
async def test_an_alarm_goes_with_the_version_that_set_it(engine: Engine, next_task: str) -> None:
    instance = await called(engine)
    first = await engine.take("rescue", "procedure_1", lease=DAY)
    await engine.apply(
        "rescue", {"a": 0}, {"procedure_1": FIREMEN["procedure_1"], next_task: after("procedure_1")}, ends="quiet"
    )
    await drive(engine, await engine.one("select mutirao.migrate_flow('rescue')"))
    await engine.advance(hours=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running"}
    await engine.complete(first)
    await engine.do("rescue", next_task)
    assert await engine.status(instance) == "closed.completed"


async def test_the_time_goes_on_when_the_task_is_renamed(engine: Engine) -> None:
    instance = await called(engine)
    await engine.take("rescue", "procedure_1", lease=DAY)
    await engine.advance(minutes=50)
    renamed = {"procedure_1": FIREMEN["procedure_1"], "emergency": FIREMEN["procedure_2"]}
    await engine.apply("rescue", {"a": 0}, renamed, ends="quiet")
    await drive(
        engine, await engine.one("""select mutirao.migrate_flow('rescue', tasks => '{"procedure_2": "emergency"}')""")
    )
    await engine.advance(minutes=10)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running", "emergency": "ready"}


@pytest.mark.parametrize("ended_by", ["a person", "a clock"])
async def test_the_time_runs_also_from_a_predecessor_that_never_ran(engine: Engine, ended_by: str) -> None:
    begin = {"when": "true", "fires": "once", **({"wait": "due", "by_clock": True} if ended_by == "a clock" else {})}
    both = {"all": [{"task": "begin", "state": "succeeded"}, {"task": "never", "state": "succeeded"}]}
    tasks = {"begin": begin, "never": {"when": "a = 7"}, "emergency": {"depends": both, "time_to_wait": HOUR}}
    await engine.apply("rescue", {"a": 0, "due": {"type": "timestamp"}}, tasks, ends="quiet")
    instance = await engine.start("rescue", due="2020-01-01T00:00:00Z")
    if ended_by == "a person":
        await engine.skip(await engine.job(instance, "begin"))
    await engine.tick()
    assert await engine.status(instance) == "open.running"
    await engine.advance(hours=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"emergency": "ready"}


async def test_the_time_goes_on_when_a_predecessor_is_tried_again(engine: Engine) -> None:
    instance = await called(engine)
    await engine.fail(await engine.take("rescue", "procedure_1"), "no")
    await engine.advance(minutes=30)
    await engine.retry(await engine.job(instance, "procedure_1"))
    await engine.advance(minutes=30)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "ready", "procedure_2": "ready"}


async def test_the_time_runs_anew_when_an_instance_goes_back_to_a_predecessor(engine: Engine) -> None:
    tasks = {**FIREMEN, "never": {"when": "a = 7"}}
    tasks["procedure_2"] = {
        "depends": {"all": [{"task": t, "state": "succeeded"} for t in ("procedure_1", "never")]},
        "time_to_wait": HOUR,
    }
    await engine.apply("rescue", {"a": 0}, tasks, ends="quiet")
    instance = await engine.start("rescue")
    await engine.do("rescue", "procedure_1")
    await engine.advance(minutes=50)
    await engine.rows("select mutirao.go_back(%s, 'procedure_1')", instance)
    await engine.take("rescue", "procedure_1", lease=DAY)
    await engine.advance(minutes=50)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running"}
    await engine.advance(minutes=10)
    await engine.tick()
    assert await engine.jobs(instance) == {"procedure_1": "running", "procedure_2": "ready"}

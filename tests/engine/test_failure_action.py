"""What a task that has failed for good does to those that wait for it: blocks, releases, or has a contingency."""

from typing import Any

from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`

BAD = {"error": "no", "final": True}


def figure(**failing: Any) -> dict[str, Any]:
    """T1 → T3 → T4, T5, beside T2: the seed's figures 19 to 21."""
    return {
        "t1": {"when": "true", "fires": "once"},
        "t2": after("t1"),
        "t3": after("t1", retries=0, **failing),
        "t4": after("t3"),
        "t5": after("t3"),
    }


async def to_the_failure(engine: Engine, **failing: Any) -> int:
    more: dict[str, Any] = {"t6": {}} if "contingency" in failing else {}
    await engine.apply("f", {"a": 0}, figure(**failing) | more, ends="quiet")
    instance = await engine.start("f")
    await engine.do("f", "t1")
    await engine.do("f", "t2")
    await engine.fail(await engine.take("f", "t3"), "no")
    return instance


async def test_what_depends_on_a_failed_task_is_blocked(engine: Engine) -> None:
    instance = await to_the_failure(engine)
    assert await engine.jobs(instance) == {"t3": "failed", "_EXCPT": "ready"}
    assert await engine.status(instance) == "open.exception"


async def test_what_depends_on_a_failed_task_is_released(engine: Engine) -> None:
    instance = await to_the_failure(engine, on_failure="release")
    assert await engine.jobs(instance) == {"t3": "failed", "t4": "ready", "t5": "ready"}
    await engine.do("f", "t4")
    await engine.do("f", "t5")
    assert await engine.status(instance) == "closed.completed"


async def test_those_who_waited_for_a_task_wait_for_its_contingency(engine: Engine) -> None:
    instance = await to_the_failure(engine, contingency="t6")
    assert await engine.jobs(instance) == {"t3": "failed", "t6": "ready"}
    assert await engine.status(instance) == "open.running"
    await engine.do("f", "t6")
    assert await engine.jobs(instance) == {"t3": "failed", "t4": "ready", "t5": "ready"}
    await engine.do("f", "t4")
    await engine.do("f", "t5")
    assert await engine.status(instance) == "closed.completed"


async def test_who_skips_a_contingency_lets_those_on_who_wait_for_its_task(engine: Engine) -> None:
    instance = await to_the_failure(engine, contingency="t6")
    await engine.fail_for_good(await engine.take("f", "t6"))
    await engine.skip(await engine.job(instance, "t6"))
    assert await engine.jobs(instance) == {"t3": "failed", "t4": "ready", "t5": "ready"}


async def test_a_forced_task_is_tried_until_it_succeeds(engine: Engine) -> None:
    """By an error and by `raise Failed`, and many more times than it has retries."""
    await engine.apply("g", {"done": False}, {"t": {"when": "not done", "force": True, "retries": 1}}, final="done")
    instance = await engine.start("g")
    pauses = []
    for n in range(12):
        await engine.fail(await engine.take("g", "t"), final=n % 2 == 0)
        assert await engine.jobs(instance) == {"t": "waiting"}
        assert await engine.status(instance) == "open.running"
        assert await engine.reasons(instance) == []
        pauses.append(await engine.one("select extract(epoch from due_at - mutirao.now())::float8 from mutirao.job"))
        await engine.advance(seconds=pauses[-1] + 1)
        await engine.tick()
    assert pauses[0] < 1 < pauses[2] < 60 < pauses[-1] < 500
    await engine.do("g", "t", done=True)
    assert await engine.status(instance) == "closed.completed"


async def test_a_failure_that_rolls_back_is_not_taken_care_of_by_another_task(engine: Engine) -> None:
    tasks = {"t1": {"when": "true", "fires": "once", "on_failure": "roll_back", "retries": 0}}
    await engine.apply("g", {"a": 0}, tasks | {"t2": after("t1", "failed"), "t3": after("t1")}, ends="quiet")
    instance = await engine.start("g")
    await engine.rows("select mutirao.start_task(%s, 't2')", instance)
    await engine.do("g", "t2")
    await engine.fail(await engine.take("g", "t1"))
    assert await engine.status(instance) == "closed.terminated"


async def test_a_contingency_started_by_hand_releases_who_waits_and_starts_none_before_it(engine: Engine) -> None:
    tasks = {
        "t1": {"when": "true", "fires": "once", "contingency": "t2"},
        "t2": {"contingency": "t3"},
        "t3": {"on_failure": "release", "retries": 0},
        "t4": after("t1"),
    }
    await engine.apply("g", {"a": 0}, tasks, ends="quiet")
    instance = await engine.start("g")
    await engine.rows("select mutirao.start_task(%s, 't3')", instance)
    await engine.fail(await engine.take("g", "t3"))
    assert await engine.jobs(instance) == {"t1": "ready", "t3": "failed", "t4": "ready"}


async def answers(engine: Engine, instance: int) -> dict[str, str]:
    return dict(
        await engine.rows("select (e).task, (e).answer from mutirao.why(%s) e where (e).task is not null", instance)
    )


async def test_why_tells_what_is_blocked(engine: Engine) -> None:
    blocked = await to_the_failure(engine)
    assert "is blocked by what has failed" in (await answers(engine, blocked))["t4"]


async def test_why_tells_for_whom_a_task_stands_by(engine: Engine) -> None:
    await engine.apply(
        "g",
        {"a": 0},
        {"x": {"when": "true", "fires": "once", "contingency": "y", "compensation": "z"}, "y": {}, "z": {}},
    )
    told = await answers(engine, await engine.start("g"))
    assert "x has not failed for good" in told["y"]
    assert "x is not to be undone" in told["z"]

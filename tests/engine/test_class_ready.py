"""READY of tasks that have a class: reached when they are let through and not before; at once where nothing holds them back."""

from typing import Any

import pytest
from batch_driver import drive
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from staff import Office
from test_class import classes

ONCE: dict[str, Any] = {"when": "true", "fires": "once", "retries": 0}
BOTH: dict[str, Any] = {
    "depends": {"all": [{"task": "a", "state": "ready"}, {"task": "q", "state": "succeeded"}]},
    "retries": 0,
}


async def synchronizing(engine: Engine, b: dict[str, Any]) -> tuple[int, int]:
    """Two instances: `a` of the first has the class, that of the second waits for it."""
    await classes(engine, crane=["crane"])
    await engine.apply("f", {}, {"a": ONCE | {"task_class": "crane"}, "b": b}, ends="quiet")
    one, two = await engine.start("f"), await engine.start("f")
    await engine.tick()
    return one, two


async def test_ready_is_reached_by_who_is_let_through(engine: Engine) -> None:
    for b in (after("a", "ready"), {"when": "task_a = 'ready'", "fires": "once"}):
        one, two = await synchronizing(engine, b)
        assert await engine.jobs(one) == {"a": "ready", "b": "ready"}
        assert await engine.jobs(two) == {"a": "waiting"}
        await engine.do("f", "a")
        await engine.tick()
        assert await engine.jobs(two) == {"a": "ready", "b": "ready"}
        await engine.cancel(one)
        await engine.cancel(two)


async def test_between_let_through_and_ready_a_job_is_synchronizing_and_has_its_class(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("f", {}, {"a": ONCE | {"task_class": "crane"}, "b": after("a", "ready")}, ends="quiet")
    one = await engine.start("f")
    await engine.start("f")
    assert await engine.rows("select mutirao.job_state(status, gate), gate from mutirao.job order by id") == [
        ("synchronizing", "holds"),
        ("synchronizing", "waits"),
    ]
    assert await engine.claim("f", "a", room=2) == []
    await engine.suspend(one)
    assert [gate for (gate,) in await engine.rows("select gate from mutirao.job order by id")] == [None, "holds"]


async def test_a_work_item_with_a_class_is_ready_as_soon_as_it_fires(engine: Engine) -> None:
    await Office(engine).hire("clerk_1", "clerk")
    await classes(engine, crane=["crane"])
    a = ONCE | {"offer": {"role": "clerk", "kind": "manual"}, "task_class": "crane"}
    await engine.apply("f", {}, {"a": a, "q": ONCE, "b": BOTH}, ends="quiet")
    instance = await engine.start("f")
    await engine.do("f", "q")
    assert await engine.jobs(instance) == {"a": "ready", "b": "ready"}


async def test_a_dropped_class_makes_ready_who_waited(engine: Engine) -> None:
    _, two = await synchronizing(engine, after("a", "ready"))
    await engine.rows("select mutirao.drop_class('crane')")
    await engine.tick()
    assert await engine.jobs(two) == {"a": "ready", "b": "ready"}
    three = await engine.start("f")
    assert await engine.jobs(three) == {"a": "ready", "b": "ready"}


async def test_after_a_class_was_dropped_tasks_are_ready_when_they_fire(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    tasks = {"a": ONCE | {"task_class": "crane"}, "q": ONCE, "b": BOTH}
    await engine.apply("f", {}, tasks | {"c": {"when": "task_a = 'failed'"}}, ends="quiet")
    await engine.rows("select mutirao.drop_class('crane')")
    instance = await engine.start("f")
    assert await engine.one("select latest from mutirao.instance") == {"a": "ready"}
    await engine.do("f", "q")
    assert await engine.jobs(instance) == {"a": "ready", "b": "ready"}


async def test_a_failed_job_that_is_retried_is_not_ready_before_its_turn(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("f", {}, {"a": ONCE | {"task_class": "crane"}, "q": ONCE, "b": BOTH}, ends="quiet")
    one = await engine.start("f")
    await engine.start("f")
    await engine.tick()
    await engine.fail(await engine.take("f", "a"))
    await engine.tick()
    await engine.retry(await engine.job(one, "a"))
    await engine.complete(next(job for job in await engine.claim("f", "q", room=2) if job.instance == one))
    assert await engine.jobs(one) == {"a": "waiting"}
    await engine.do("f", "a")
    await engine.tick()
    assert await engine.jobs(one) == {"a": "ready", "b": "ready"}


async def test_who_is_let_through_and_not_ready_yet_is_not_tried_again(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("f", {}, {"a": ONCE | {"task_class": "crane"}, "b": after("a", "ready")}, ends="quiet")
    one = await engine.start("f")
    async with engine.refused("job_not_failed", "is synchronizing"):
        await engine.retry(await engine.job(one, "a"))
    await engine.tick()
    assert await engine.jobs(one) == {"a": "ready", "b": "ready"}


async def migrated(engine: Engine, tasks: dict[str, Any]) -> None:
    await engine.apply("f", {"more": 0}, tasks, ends="quiet")
    await drive(engine, await engine.one("select mutirao.migrate_flow('f')"))
    await engine.tick()


@pytest.mark.parametrize("b", [after("a", "ready"), {"when": "task_a = 'ready'", "fires": "once"}])
@pytest.mark.parametrize("is_new", [True, False])
async def test_who_is_migrated_while_synchronizing_is_ready_when_let_through(
    engine: Engine, b: dict[str, Any], is_new: bool
) -> None:
    """Also where the version before did not ask whether it is ready."""
    one, two = await synchronizing(engine, after("a") if is_new else b)
    await migrated(engine, {"a": ONCE | {"task_class": "crane"}, "b": b})
    assert await engine.jobs(one) == {"a": "ready", "b": "ready"}
    assert await engine.jobs(two) == {"a": "waiting"}
    await engine.do("f", "a")
    await engine.tick()
    assert await engine.jobs(two) == {"a": "ready", "b": "ready"}


async def test_who_is_migrated_while_synchronizing_to_a_version_without_the_class_is_ready(engine: Engine) -> None:
    _, two = await synchronizing(engine, after("a"))
    await migrated(engine, {"a": ONCE, "b": after("a", "ready")})
    assert await engine.jobs(two) == {"a": "ready", "b": "ready"}


async def test_who_runs_is_synchronizing_no_longer(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    b = {"when": "x = 1 and task_a = 'synchronizing'", "fires": "once"}
    await engine.apply("f", {"x": 0}, {"a": ONCE | {"task_class": "crane"}, "b": b}, ends="quiet")
    one, two = await engine.start("f"), await engine.start("f")
    await engine.tick()
    await engine.set(one, x=1)
    await engine.set(two, x=1)
    assert await engine.jobs(one) == {"a": "ready"}
    assert await engine.jobs(two) == {"a": "waiting", "b": "ready"}
    await engine.take("f", "a")
    assert await engine.one("select latest from mutirao.instance where id = %s", one) == {"a": "running"}

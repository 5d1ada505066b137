"""Rollbacks and migrations: what the instance did under other names and versions counts, and what is being undone keeps its version."""

from typing import Any

from batch_driver import Count, drive, refusals
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb

ONCE: dict[str, Any] = {"when": "true", "fires": "once", "retries": 0}
CHAIN: dict[str, Any] = {"a": {**ONCE, "compensation": "u"}, "b": after("a"), "u": {}}


async def begun(engine: Engine, tasks: dict[str, Any], *done: str) -> int:
    await engine.apply("f", {"n": 0}, tasks, ends="quiet")
    instance = await engine.start("f")
    for task in done:
        await engine.do("f", task)
    return instance


async def migrate(engine: Engine, tasks: dict[str, Any], **renamed: str) -> Count:
    await engine.apply("f", {"n": 0}, tasks, ends="quiet")
    return await drive(engine, await engine.one("select mutirao.migrate_flow('f', tasks => %s)", Jsonb(renamed)))


async def roll_back(engine: Engine, instance: int, safe_point: str | None = None) -> None:
    await engine.rows("select mutirao.roll_back(%s, %s)", instance, safe_point)


async def test_what_is_being_undone_keeps_its_version(engine: Engine) -> None:
    instance = await begun(engine, CHAIN, "a")
    await roll_back(engine, instance)
    undoing = await engine.take("f", "u")
    await engine.suspend(instance)  # it is still being rolled back
    await engine.apply("f", {"n": 0}, {"z": ONCE}, ends="quiet")
    [told] = await engine.rows("select outcome, why from mutirao.preview_migration('f')")
    assert told[0] == "refused"
    assert told[1].startswith("instance_undoing")
    batch = await engine.one("select mutirao.migrate_flow('f')")
    assert (await drive(engine, batch)).refused == 1
    assert await refusals(engine, batch) == [(instance, "instance_undoing")]
    await engine.resume(instance)
    await engine.complete(undoing)
    assert await engine.status(instance) == "closed.terminated"


async def test_what_runs_and_the_version_could_not_undo_is_critical(engine: Engine) -> None:
    instance = await begun(engine, CHAIN)
    await engine.take("f", "a")
    await migrate(engine, {"b": ONCE})
    async with engine.refused("critical_task", '"a"'):
        await roll_back(engine, instance)


async def test_a_child_whose_task_is_gone_cannot_be_undone(engine: Engine) -> None:
    await engine.apply("c", {"n": 0}, {"x": {**ONCE, "compensation": "ux"}, "ux": {}}, ends="quiet")
    instance = await begun(engine, {"go": {**ONCE, "child": "c"}, "b": after("go")})
    await engine.tick()
    await engine.do("c", "x")
    await engine.tick()
    await migrate(engine, {"b": ONCE})
    async with engine.refused("critical_task", '"go"'):
        await roll_back(engine, instance)


async def test_what_ended_under_another_name_does_not_happen_again(engine: Engine) -> None:
    def tasks(first: str) -> dict[str, Any]:
        return {first: ONCE, "s": after(first, safe_point=True), "b": after("s")}

    instance = await begun(engine, tasks("first"), "first", "s")
    await migrate(engine, tasks("second"), first="second")
    await migrate(engine, tasks("third"), second="third")
    await roll_back(engine, instance, "s")
    assert await engine.jobs(instance) == {"b": "ready"}


async def test_a_safe_point_is_one_under_another_name(engine: Engine) -> None:
    def tasks(point: str) -> dict[str, Any]:
        return {**CHAIN, point: after("a", safe_point=True), "b": after(point, retries=0, on_failure="safe_point")}

    instance = await begun(engine, tasks("s"), "a", "s")
    await migrate(engine, tasks("p"), s="p")
    await engine.fail(await engine.take("f", "b"))
    assert await engine.jobs(instance) == {"b": "ready"}
    async with engine.refused("unknown_safe_point", "it has passed p"):
        await roll_back(engine, instance, "s")
    await roll_back(engine, instance, "p")
    assert await engine.jobs(instance) == {"b": "ready"}


async def test_what_ended_under_another_name_is_undone(engine: Engine) -> None:
    instance = await begun(engine, CHAIN, "a")
    await migrate(engine, {"c": CHAIN["a"], "b": after("c"), "u": {}}, a="c")
    await roll_back(engine, instance)
    await engine.do("f", "u")
    assert await engine.status(instance) == "closed.terminated"
    states = dict(await engine.rows("select task, state from mutirao.task_states(%s)", instance))
    assert states["c"] == "compensated"


async def test_an_instance_goes_back_to_what_ended_under_another_name(engine: Engine) -> None:
    instance = await begun(engine, {"a": ONCE, "b": after("a")}, "a")
    await engine.rows("select mutirao.go_back(%s, 'a')", instance)
    await engine.do("f", "a")
    await migrate(engine, {"c": ONCE, "b": after("c")}, a="c")
    await engine.rows("select mutirao.go_back(%s, 'c')", instance)
    assert await engine.jobs(instance) == {"c": "ready"}


async def test_what_was_renamed_twice_is_found_in_the_trace(engine: Engine) -> None:
    """No version before the last needed to remember that the task had ended."""
    instance = await begun(engine, {"a": "n = 0", "b": "n = 1"})
    await engine.do("f", "a", n=1)
    await migrate(engine, {"c": "n = 0", "b": "n = 1"}, a="c")
    await migrate(engine, {"c": {"when": "true", "fires": "once"}, "b": "n = 1", "d": after("c")})
    assert await engine.jobs(instance) == {"b": "ready", "d": "ready"}

"""Rollbacks pass down: children are undone with their parents, and whoever stops or interrupts the one does so to the other."""

from typing import Any

import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from family import child_of

ONCE: dict[str, Any] = {"when": "true", "fires": "once", "retries": 0}
TRIP: dict[str, Any] = {
    "hotel": {**ONCE, "compensation": "free_hotel", "safe_point": True},
    "flight": after("hotel", compensation="free_flight"),
    "pay": after("flight"),
    "free_hotel": {},
    "free_flight": {},
}


async def on_tour(engine: Engine, *done: str, trip: dict[str, Any] = TRIP, **tasks: Any) -> tuple[int, int]:
    """A parent whose task `go` is done by a trip, in which so much has been done."""
    await engine.apply("trip", {"n": 0}, trip, ends="quiet")
    await engine.apply("tour", {"n": 0}, tasks or {"go": {**ONCE, "child": "trip"}, "rest": after("go")}, ends="quiet")
    parent = await engine.start("tour")
    await engine.tick()
    for task in done:
        await engine.do("trip", task)
    await engine.tick()
    return parent, await child_of(engine, parent)


async def roll_back(engine: Engine, instance: int, safe_point: str | None = None) -> None:
    await engine.rows("select mutirao.roll_back(%s, %s)", instance, safe_point)


async def being_undone(engine: Engine) -> tuple[int, int]:
    """The child had completed, and was opened again to be undone."""
    parent, child = await on_tour(engine, "hotel", "flight", "pay")
    assert await engine.jobs(parent) == {"rest": "ready"}
    await roll_back(engine, parent)
    await engine.tick()
    assert await engine.jobs(child) == {"free_flight": "ready"}
    return parent, child


async def tick(engine: Engine, times: int = 3) -> None:
    for _ in range(times):
        await engine.tick()


async def test_whoever_interrupts_the_parent_before_a_clock_came_interrupts_the_undoing(engine: Engine) -> None:
    parent, child = await on_tour(engine, "hotel")
    await roll_back(engine, parent)
    await engine.suspend(parent)
    await tick(engine)
    assert await engine.status(child) == "open.notrunning.suspended"
    await engine.resume(parent)
    await tick(engine)
    assert await engine.jobs(child) == {"free_hotel": "ready"}


async def test_a_child_that_goes_back_to_a_safe_point_is_undone_whole(engine: Engine) -> None:
    parent, child = await on_tour(engine, "hotel", "flight")
    await roll_back(engine, child, "hotel")
    await roll_back(engine, parent)
    await engine.tick()
    await engine.do("trip", "free_flight")
    assert await engine.jobs(child) == {"free_hotel": "ready"}


async def test_a_child_that_undoes_something_is_not_undone_itself(engine: Engine) -> None:
    await engine.apply("trip", {"n": 0}, TRIP, ends="quiet")
    tasks = {
        "a": {**ONCE, "safe_point": True},
        "b": after("a", compensation="undo_b"),
        "c": after("b"),
        "undo_b": {"child": "trip"},
    }
    await engine.apply("tour", {"n": 0}, tasks, ends="quiet")
    parent = await engine.start("tour")
    await engine.do("tour", "a")
    await engine.do("tour", "b")
    await roll_back(engine, parent, "a")
    await engine.tick()
    await engine.do("trip", "hotel")
    await roll_back(engine, parent)
    await tick(engine)
    assert await engine.jobs(await child_of(engine, parent)) == {"flight": "ready"}


@pytest.mark.parametrize("generations", [2, 3])
async def test_a_child_is_kept_as_long_as_it_may_have_to_be_undone(engine: Engine, generations: int) -> None:
    parent, child = await on_tour(engine)
    above = parent
    if generations == 3:
        await engine.apply("year", {"n": 0}, {"tour": {**ONCE, "child": "tour"}, "next": after("tour")}, ends="quiet")
        above = await engine.start("year")
        await tick(engine, 2)
        parent = await child_of(engine, above)
        child = await child_of(engine, parent)
    for task in ("hotel", "flight", "pay"):
        for job in await engine.claim("trip", task, room=2):
            await engine.complete(job)
    await engine.tick()
    if generations == 3:
        for job in await engine.claim("tour", "rest", room=2):
            await engine.complete(job)
        await engine.tick()
        assert await engine.status(parent) == "closed.completed"
    await engine.rows("select mutirao.keep(f, interval '1 day') from unnest(array['trip', 'tour']) f")
    await engine.advance(days=2)
    await tick(engine)
    await roll_back(engine, above)
    await tick(engine, 4)
    assert await engine.jobs(child) == {"free_flight": "ready"}


async def test_a_child_whose_outputs_were_refused_is_undone(engine: Engine) -> None:
    go = {**ONCE, "child": "trip", "on_failure": "roll_back", "inputs": []}
    await engine.apply("trip", {"n": "text"}, TRIP, ends="quiet")
    await engine.apply("tour", {"n": 0}, {"go": go, "rest": after("go")}, ends="quiet")
    parent = await engine.start("tour")
    await engine.tick()
    child = await child_of(engine, parent)
    for task in ("hotel", "flight", "pay"):
        await engine.do("trip", task)
    await tick(engine)
    assert await engine.jobs(child) == {"free_flight": "ready"}
    await engine.do("trip", "free_flight")
    await engine.do("trip", "free_hotel")
    await engine.tick()
    assert await engine.status(parent) == "closed.terminated"


async def test_a_child_that_completes_during_the_rollback_and_is_refused_is_undone(engine: Engine) -> None:
    tasks = {"go": {**ONCE, "child": "trip", "inputs": []}, "rest": after("go")}
    await engine.apply("trip", {"n": "text"}, TRIP, ends="quiet")
    await engine.apply("tour", {"n": 0}, tasks, ends="quiet")
    parent = await engine.start("tour")
    await engine.tick()
    child = await child_of(engine, parent)
    for task in ("hotel", "flight", "pay"):
        await engine.do("trip", task)
    await roll_back(engine, parent)
    await tick(engine)
    assert await engine.jobs(child) == {"free_flight": "ready"}


async def test_whoever_cancels_the_parent_stops_the_undoing_of_its_child(engine: Engine) -> None:
    parent, child = await being_undone(engine)
    await engine.cancel(parent)
    await tick(engine)
    assert [await engine.status(each) for each in (parent, child)] == ["closed.aborted"] * 2


async def test_a_child_that_was_not_opened_yet_is_not_when_the_parent_is_cancelled(engine: Engine) -> None:
    parent, child = await on_tour(engine, "hotel", "flight", "pay")
    await roll_back(engine, parent)
    await engine.cancel(parent)
    await tick(engine)
    assert [await engine.status(each) for each in (parent, child)] == ["closed.aborted", "closed.completed"]


async def test_whoever_interrupts_the_parent_interrupts_the_undoing_of_its_child(engine: Engine) -> None:
    parent, child = await being_undone(engine)
    await engine.suspend(parent)
    await engine.tick()
    assert await engine.jobs(child) == {"free_flight": "held"}
    await engine.resume(parent)
    await engine.tick()
    await engine.do("trip", "free_flight")
    await engine.do("trip", "free_hotel")
    await engine.tick()
    assert [await engine.status(each) for each in (parent, child)] == ["closed.terminated"] * 2


async def test_a_child_that_was_stopped_half_undone_is_a_matter_for_a_person(engine: Engine) -> None:
    parent, child = await being_undone(engine)
    await engine.do("trip", "free_flight")
    await engine.cancel(child)
    await tick(engine)
    assert await engine.codes(parent) == ["compensation_failed"]
    await engine.retry(await engine.job(parent, "go"))
    await engine.tick()
    assert await engine.jobs(child) == {"free_hotel": "ready"}
    await engine.do("trip", "free_hotel")
    await engine.tick()
    assert [await engine.status(each) for each in (parent, child)] == ["closed.terminated"] * 2


async def test_a_child_that_was_stopped_half_undone_may_be_taken_as_undone(engine: Engine) -> None:
    parent, child = await being_undone(engine)
    await engine.cancel(child)
    await tick(engine)
    await engine.skip(await engine.job(parent, "go"))
    assert await engine.status(parent) == "closed.terminated"


async def test_an_undoing_that_is_tried_again_while_the_parent_is_interrupted_waits(engine: Engine) -> None:
    parent, child = await being_undone(engine)
    await engine.cancel(child)
    await tick(engine)
    await engine.suspend(parent)
    await engine.retry(await engine.job(parent, "go"))
    await tick(engine)
    assert await engine.status(child) == "closed.aborted"
    await engine.resume(parent)
    await tick(engine)
    assert await engine.jobs(child) == {"free_flight": "ready"}


async def test_a_child_that_cannot_be_undone_any_more_is_not_taken_as_undone(engine: Engine) -> None:
    trip = {task: TRIP[task] for task in TRIP if task != "free_flight"} | {"flight": after("hotel", critical=True)}
    parent, child = await on_tour(engine, "hotel", trip=trip)
    await roll_back(engine, parent)
    await engine.do("trip", "flight")  # before a clock came
    await engine.tick()
    assert await engine.codes(child) == ["critical_task"]
    await engine.do("trip", "pay")
    await tick(engine)
    await engine.repair(child)
    await tick(engine)
    assert await engine.codes(parent) == ["compensation_failed"]


async def test_a_child_beside_the_safe_point_goes_on_when_an_interrupted_parent_is_rolled_back(engine: Engine) -> None:
    aside = {"s": {**ONCE, "safe_point": True}, "aside": {**ONCE, "child": "trip"}, "b": after("s")}
    parent, child = await on_tour(engine, **aside)
    await engine.do("tour", "s")
    await engine.suspend(parent)
    await engine.tick()
    assert await engine.status(child) == "open.notrunning.suspended"
    await roll_back(engine, parent, "s")
    await tick(engine)
    assert await engine.jobs(child) == {"hotel": "ready"}

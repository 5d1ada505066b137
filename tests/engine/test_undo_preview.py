"""What a rollback would undo is told before, as it would be: of what ran, of what children did, of what cannot be undone."""

from typing import Any

from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from test_undo_child import ONCE, TRIP, on_tour

TOUR: dict[str, Any] = {
    "go": {**ONCE, "child": "trip", "safe_point": True},
    "rest": after("go", compensation="wake"),
    "wake": {},
}


async def preview(engine: Engine, instance: int, safe_point: str | None = None) -> list[Any]:
    """Each task: its compensation, whether it is critical, done by a child, and still runs."""
    boss = await engine.one(
        "select coalesce((select id from mutirao.person where name = 'boss'), mutirao.add_person(null, 'boss', roles => array['administrator']))"
    )
    rows = "select task, compensation, is_critical, by_child, is_running from mutirao.preview_undo(%s, %s, %s)"
    return [tuple(row) for row in await engine.rows(rows, boss, instance, safe_point)]


async def test_what_a_child_did_is_undone_by_it_unless_that_is_critical(engine: Engine) -> None:
    parent, child = await on_tour(engine, "hotel", **TOUR)
    assert await preview(engine, child) == [("hotel", "free_hotel", False, False, False)]
    assert await preview(engine, parent) == [("go", None, False, True, True)]
    for task in ("flight", "pay"):
        await engine.do("trip", task)
    await engine.tick()
    await engine.take("tour", "rest")
    assert await preview(engine, parent) == [("rest", "wake", False, False, True), ("go", None, False, True, False)]
    assert await preview(engine, parent, "go") == [("rest", "wake", False, False, True)]


async def test_what_is_critical_in_a_child_is_so_for_its_parent(engine: Engine) -> None:
    trip = {**TRIP, "pay": after("flight", critical=True)}
    parent, child = await on_tour(engine, "hotel", "flight", trip=trip, **TOUR)
    assert not any(each[2] for each in await preview(engine, parent))
    await engine.take("trip", "pay")
    assert ("pay", None, True, False, True) in await preview(engine, child)
    assert await preview(engine, parent) == [("go", None, True, True, True)]
    async with engine.refused("critical_task"):
        await engine.rows("select mutirao.roll_back(%s)", parent)


CRITICAL_TRIP: dict[str, Any] = {"hotel": ONCE, "pay": after("hotel", critical=True)}


async def refuses(engine: Engine, instance: int, *rows: tuple[Any, ...], safe_point: str | None = None) -> None:
    """It tells so before, by these rows alone."""
    assert [each for each in await preview(engine, instance, safe_point) if each[2]] == list(rows)
    async with engine.refused("critical_task", '"pay"'):
        await engine.rows("select mutirao.roll_back(%s, %s)", instance, safe_point)


async def test_a_child_is_looked_into_though_a_compensation_undoes_its_task(engine: Engine) -> None:
    tour = {"go": {**ONCE, "child": "trip", "compensation": "wake"}, "wake": {}}
    parent, _ = await on_tour(engine, "hotel", trip=CRITICAL_TRIP, **tour)
    assert await preview(engine, parent) == [("go", "wake", False, False, True)]
    await engine.take("trip", "pay")
    await refuses(engine, parent, ("go", "wake", True, False, True))


async def test_a_task_that_failed_is_in_the_way_by_what_its_child_did(engine: Engine) -> None:
    tour = {"go": {**ONCE, "child": "trip", "inputs": [], "compensation": "wake"}, "wake": {}}
    await engine.apply("trip", {"n": "text"}, CRITICAL_TRIP, ends="quiet")
    await engine.apply("tour", {"n": 0}, tour, ends="quiet")
    parent = await engine.start("tour")
    await engine.tick()
    await engine.do("trip", "hotel")
    await engine.do("trip", "pay")
    await engine.tick()
    assert (await engine.jobs(parent))["go"] == "failed"  # what the child wrote does not fit
    await refuses(engine, parent, ("go", None, True, False, False))


async def test_a_compensation_at_work_is_in_the_way_by_what_its_child_does(engine: Engine) -> None:
    tasks = {
        "a": {**ONCE, "safe_point": True},
        "b": after("a", compensation="back"),
        "c": after("b"),
        "back": {"child": "trip"},
    }
    await engine.apply("trip", {"n": 0}, CRITICAL_TRIP, ends="quiet")
    await engine.apply("tour", {"n": 0}, tasks, ends="quiet")
    instance = await engine.start("tour")
    await engine.do("tour", "a")
    await engine.do("tour", "b")
    await engine.rows("select mutirao.roll_back(%s, 'a')", instance)
    await engine.tick()
    await engine.do("trip", "hotel")
    assert [row[0] for row in await preview(engine, instance)] == ["b", "a"]
    await engine.take("trip", "pay")
    await refuses(engine, instance, ("back", None, True, False, False))


async def test_what_runs_is_not_counted_as_done(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"a": {"when": "n < 9", "compensation": "b"}, "b": {}}, ends="quiet")
    instance = await engine.start("f")
    await engine.do("f", "a", n=1)
    await engine.take("f", "a")
    assert await preview(engine, instance) == [("a", "b", False, False, True)]
    assert await engine.rows(
        "select times from mutirao.preview_undo((select id from mutirao.person), %s)", instance
    ) == [(1,)]


async def test_nothing_is_told_of_what_has_ended_or_of_a_safe_point_that_was_not_passed(engine: Engine) -> None:
    parent, child = await on_tour(engine, "hotel", "flight", "pay", **TOUR)
    assert await preview(engine, parent) == [("go", None, False, True, False)]
    async with engine.refused("instance_closed"):
        await preview(engine, child)
    async with engine.refused("unknown_safe_point"):
        await preview(engine, parent, "rest")

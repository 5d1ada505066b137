"""A work item with a timeout: whoever takes it has so long, and no longer."""

from typing import Any

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from staff import Office

PAINT: dict[str, Any] = {
    "paint": {
        "when": "not done",
        "offer": {"role": "painter", "disconnected": True},
        "task_class": "room",
        "timeout": 3600,
        "retries": 0,
    }
}


@pytest.fixture(name="site")
async def building_site(engine: Engine) -> Office:
    office = Office(engine)
    for name, role in (("painter_1", "painter"), ("painter_2", "painter"), ("manager", "administrator")):
        await office.hire(name, role)
    await engine.rows("select mutirao.put_class('room', '{room}')")
    await engine.apply("painting", {"done": False}, PAINT, final="done")
    return office


@pytest.mark.parametrize("lock", [False, True])
async def test_an_item_that_is_held_too_long_goes_back_to_the_list_with_its_class(site: Office, lock: bool) -> None:
    engine = site.engine
    one, _ = await site.create("painting"), await site.create("painting")
    first, second = [job for (job,) in await engine.rows("select id from mutirao.job order by id")]
    take = "select mutirao.select_item(%s, %s, %s)"
    attempt = await engine.one(take, site.numbers["painter_1"], first, lock)
    await engine.advance(minutes=59)
    await engine.tick()
    async with engine.refused("class_held"):
        await site.select("painter_2", second)
    await engine.advance(minutes=2)
    await engine.tick()
    assert await engine.jobs(one) == {"paint": "ready"}
    assert await engine.status(one) == "open.running"
    await site.select("painter_2", second)
    await site.finish("painter_1", first, attempt, done=True)  # kept beside the instance, as what comes too late
    assert await engine.jobs(one) == {"paint": "ready"}
    assert await site.heard("taken") == [("painter_1", "taken")]


async def test_taking_it_again_counts_anew(site: Office) -> None:
    engine = site.engine
    started = await site.create("painting")
    [(item,)] = await engine.rows("select id from mutirao.job")
    attempts = []
    for _ in range(3):
        attempts.append(await site.select("painter_1", item))
        await engine.advance(minutes=61)
        await engine.tick()
    attempt = await site.select("painter_1", item)
    assert len({*attempts, attempt}) == 4
    await engine.advance(minutes=30)
    await engine.tick()
    await site.finish("painter_1", item, attempt, done=True)
    assert await engine.status(started) == "closed.completed"

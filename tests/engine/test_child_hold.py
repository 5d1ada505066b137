"""Children are cancelled, interrupted and resumed with their parents."""

from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from family import TICK, begin, family, grandparents, three_levels


async def test_cancel_passes_down_all_levels_and_what_runs_may_finish(engine: Engine) -> None:
    await grandparents(engine)
    lives = await three_levels(engine, await engine.start("year"))
    job = await engine.take("shipping", "pack")
    await engine.cancel(lives[0])
    for _ in range(4):
        await engine.one(TICK)
    assert [await engine.status(each) for each in lives] == ["open.running"] * 3
    assert [hold for (hold,) in await engine.rows("select hold from mutirao.instance order by id")] == ["cancelled"] * 3
    await engine.complete(job, parcel="p")
    for _ in range(3):
        await engine.one(TICK)
    assert [await engine.status(each) for each in lives] == ["closed.aborted"] * 3
    assert (await engine.trace(lives[2]))[1].note == {"reason": f"its parent, instance {lives[1]}, was cancelled"}


async def test_a_child_that_was_not_started_is_not_when_the_parent_is_cancelled(engine: Engine) -> None:
    await family(engine)
    parent = await engine.start("order")
    await engine.cancel(parent)
    assert await engine.status(parent) == "closed.aborted"
    assert await engine.one(TICK) == 0
    assert await engine.rows("select from mutirao.instance") == []


async def test_a_parent_that_is_interrupted_starts_its_child_when_it_is_resumed(engine: Engine) -> None:
    await family(engine)
    parent = await engine.start("order")
    await engine.suspend(parent)
    assert await engine.one(TICK) == 1
    assert await engine.rows("select from mutirao.child where due_at is not null or instance is not null") == []
    await engine.resume(parent)
    assert await engine.one(TICK) == 1
    assert await engine.jobs(parent) == {"ship": "running"}


async def test_children_are_interrupted_and_resumed_with_their_parents(engine: Engine) -> None:
    await grandparents(engine)
    lives = await three_levels(engine, await engine.start("year"))
    await engine.suspend(lives[0])
    for _ in range(3):
        await engine.one(TICK)
    assert [await engine.status(each) for each in lives] == ["open.notrunning.suspended"] * 3
    assert await engine.claim("shipping", "pack") == []
    assert (await engine.trace(lives[2]))[1].note == {"reason": f"its parent, instance {lives[1]}, was interrupted"}
    await engine.resume(lives[0])
    for _ in range(3):
        await engine.one(TICK)
    assert [await engine.status(each) for each in lives] == ["open.running"] * 3
    assert (await engine.trace(lives[2]))[2].note == {"reason": f"its parent, instance {lives[1]}, was resumed"}
    await engine.do("shipping", "pack", parcel="p")
    for _ in range(2):
        await engine.one(TICK)
    assert {await engine.status(each) for each in lives} == {"closed.completed"}


async def test_what_was_interrupted_on_its_own_is_not_resumed_with_its_parent(engine: Engine) -> None:
    await family(engine)
    parent, child = await begin(engine)
    await engine.suspend(child)
    await engine.suspend(parent)
    await engine.one(TICK)
    await engine.resume(parent)
    await engine.one(TICK)
    assert await engine.status(parent) == "open.running"
    assert await engine.status(child) == "open.notrunning.suspended"


async def test_a_parent_that_is_resumed_before_a_clock_came_leaves_its_child_alone(engine: Engine) -> None:
    await family(engine)
    parent, child = await begin(engine)
    await engine.suspend(parent)
    await engine.resume(parent)
    await engine.one(TICK)
    assert await engine.kinds(child) == ["start"]


async def test_a_child_that_ends_while_its_parent_is_interrupted_is_merged(engine: Engine) -> None:
    await family(engine)
    parent, _ = await begin(engine)
    job = await engine.take("shipping", "pack")
    await engine.suspend(parent)
    await engine.complete(job, parcel="p")
    await engine.one(TICK)
    assert (await engine.state(parent))["parcel"] == "p"
    assert await engine.status(parent) == "open.notrunning.suspended"
    await engine.resume(parent)
    assert await engine.status(parent) == "closed.completed"


async def test_a_child_that_ends_before_it_could_be_cancelled_ends_its_parent(engine: Engine) -> None:
    await family(engine)
    parent, child = await begin(engine)
    job = await engine.take("shipping", "pack")
    await engine.cancel(parent)
    await engine.complete(job, parcel="p")
    await engine.one(TICK)
    assert [await engine.status(each) for each in (parent, child)] == ["closed.aborted", "closed.completed"]


async def test_a_job_that_a_child_does_is_skipped_when_the_child_is_cancelled(engine: Engine) -> None:
    await family(engine)
    parent, child = await begin(engine)
    job = await engine.job(parent, "ship")
    async with engine.refused("job_running", f"done by its child, instance {child}: cancel that instance first"):
        await engine.skip(job, parcel="by hand")
    await engine.cancel(child)
    assert await engine.one(TICK) == 1
    await engine.skip(job, parcel="by hand")
    assert await engine.status(parent) == "closed.completed"


async def test_a_job_that_is_skipped_before_a_clock_came_starts_nothing(engine: Engine) -> None:
    await family(engine)
    parent = await engine.start("order")
    await engine.skip(await engine.job(parent, "ship"), parcel="by hand")
    await engine.one(TICK)
    assert await engine.rows("select from mutirao.child") == []
    assert await engine.status(parent) == "closed.completed"

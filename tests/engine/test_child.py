"""Child flows: a task that another flow does, from its start to its end, and what passes between the two."""

import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from family import TICK, begin, child_of, family

from mutirao.database.engine import Engine as RealEngine


async def test_it_starts_with_its_inputs_and_merges_its_outputs(engine: Engine) -> None:
    await family(engine, inputs=["address"], outputs=["parcel"])
    parent, child = await begin(engine, address="there")
    assert await engine.state(child) == {"address": "there", "weight": 1, "parcel": None}
    assert await engine.jobs(parent) == {"ship": "running"}
    assert (await engine.trace(child))[0].note == {"parent": parent, "job": await engine.job(parent, "ship")}
    await engine.do("shipping", "pack", parcel="p7", address="elsewhere")
    assert await engine.status(parent) == "open.running"
    assert await engine.one(TICK) == 1
    assert await engine.status(parent) == "closed.completed"
    assert await engine.state(parent) == {"address": "there", "parcel": "p7", "other": 0}
    assert await engine.one(TICK) == 0


async def test_without_inputs_and_outputs_all_that_both_know_is_passed(engine: Engine) -> None:
    await family(engine)
    parent, child = await begin(engine, address="there", other=5)
    assert await engine.state(child) == {"address": "there", "weight": 1, "parcel": None}
    await engine.do("shipping", "pack", parcel="p7", address="elsewhere")
    await engine.one(TICK)
    assert await engine.state(parent) == {"address": "elsewhere", "parcel": "p7", "other": 5}


async def test_a_child_that_is_final_at_once_ends_the_job_at_once(engine: Engine) -> None:
    await family(engine)
    await engine.apply(
        "order",
        {"a": 0, "parcel": "x"},
        {"ship": {"when": "a = 0", "child": "shipping", "fires": "once"}},
        ends="quiet",
    )
    parent = await engine.start("order")
    assert await engine.one(TICK) == 1
    assert await engine.one(TICK) == 1
    assert await engine.status(parent) == "closed.completed"


async def test_a_child_that_is_cancelled_fails_the_job_and_trying_again_starts_another(engine: Engine) -> None:
    await family(engine)
    parent, first = await begin(engine)
    await engine.cancel(first)
    await engine.one(TICK)
    assert await engine.jobs(parent) == {"ship": "failed", "_EXCPT": "ready"}
    [reason] = await engine.reasons(parent)
    assert reason["error"] == f"its child, instance {first}, was cancelled"
    await engine.retry(await engine.job(parent, "ship"))
    assert await engine.one(TICK) == 1
    second = await child_of(engine, parent)
    assert second != first
    await engine.do("shipping", "pack", parcel="p")
    await engine.one(TICK)
    assert await engine.status(parent) == "closed.completed"


async def tried_again(engine: Engine, parent: int, ended: int) -> int:
    """After a pause there is another child."""
    assert await engine.jobs(parent) == {"ship": "waiting"}
    for _ in range(3):
        await engine.advance(minutes=10)
        await engine.tick()
    assert await engine.jobs(parent) == {"ship": "running"}
    assert await engine.status(parent) == "open.running"
    child = await child_of(engine, parent)
    assert child != ended
    return child


@pytest.mark.parametrize("task_class", [None, "dock"])
async def test_a_forced_child_is_tried_until_it_succeeds(engine: Engine, task_class: str | None) -> None:
    await engine.rows("select mutirao.put_class('dock', '{}')")
    await family(engine, force=True, retries=0, task_class=task_class)
    parent, child = await begin(engine)
    for _ in range(3):
        await engine.cancel(child)
        await engine.one(TICK)
        child = await tried_again(engine, parent, child)
    await engine.do("shipping", "pack", parcel="p")
    await engine.one(TICK)
    assert await engine.status(parent) == "closed.completed"


async def test_a_forced_child_is_tried_again_though_its_parent_was_written_or_interrupted(engine: Engine) -> None:
    await family(engine, force=True, backoff=60)
    parent, child = await begin(engine)
    await engine.cancel(child)
    await engine.one(TICK)
    await engine.set(parent, other=1)
    await engine.suspend(parent)
    await engine.tick()
    await engine.resume(parent)
    for _ in range(3):
        await engine.advance(minutes=10)
        await engine.tick()
    assert await child_of(engine, parent) != child
    assert await engine.jobs(parent) == {"ship": "running"}


async def test_a_forced_child_that_cannot_be_started_is_tried_again(engine: Engine) -> None:
    await family(engine, force=True)
    await engine.apply("shipping", {"weight": 0}, {"pack": "weight > 0"}, final="weight < 0")
    parent = await engine.start("order")
    await engine.one(TICK)
    await engine.apply("shipping", {"weight": 1}, {"pack": "weight > 0"}, final="weight < 0")
    await engine.advance(minutes=10)
    await engine.tick()
    assert await engine.jobs(parent) == {"ship": "running"}


async def test_a_child_that_cannot_start_fails_the_job_with_the_reason(engine: Engine) -> None:
    await family(engine, inputs=["address"])
    await engine.apply(
        "shipping",
        {"address": {"type": "text"}, "parcel": "full"},
        {"pack": "address = 'there'"},
        final="parcel = 'never'",
    )
    parent = await engine.start("order")
    assert await engine.one(TICK) == 1
    [reason] = await engine.reasons(parent)
    assert reason["code"] == "task_failed"
    assert "its child could not be started: nothing_fires" in reason["error"]
    assert await engine.rows("select from mutirao.child where instance is not null") == []


async def test_outputs_that_the_parent_cannot_take_fail_the_job(engine: Engine) -> None:
    await family(engine)
    await engine.apply("shipping", {"parcel": 0}, {"pack": "parcel = 0"}, final="parcel > 0")
    parent = await engine.start("order")
    await engine.rows("update mutirao.instance set state = state || '{\"parcel\": 0}' where id = %s", parent)
    await engine.one(TICK)
    await engine.do("shipping", "pack", parcel=5)
    await engine.one(TICK)
    assert await engine.jobs(parent) == {"ship": "failed", "_EXCPT": "ready"}


async def test_an_exception_of_the_child_is_its_own_affair_until_it_ends(engine: Engine) -> None:
    await family(engine)
    parent, child = await begin(engine)
    await engine.fail_for_good(await engine.take("shipping", "pack"))
    assert (await engine.status(child), await engine.status(parent)) == ("open.exception", "open.running")
    await engine.skip(await engine.job(child, "pack"), parcel="p")
    await engine.one(TICK)
    assert await engine.status(parent) == "closed.completed"


async def test_a_failure_of_the_child_can_be_handled_by_the_parent(engine: Engine) -> None:
    await family(engine)
    await engine.apply(
        "order",
        {"parcel": {"type": "text"}},
        {"ship": {"when": "parcel is null", "child": "shipping", "fires": "once"}, "fetch": after("ship", "failed")},
        ends="quiet",
    )
    parent, child = await begin(engine)
    await engine.cancel(child)
    await engine.one(TICK)
    assert await engine.jobs(parent) == {"ship": "failed", "fetch": "ready"}


async def test_a_circle_is_refused(engine: Engine) -> None:
    await family(engine)
    async with engine.refused(
        "child_circle", 'flow "shipping" would start itself without end, by way of its child "order"'
    ):
        await engine.apply("shipping", {"a": 0}, {"again": {"when": "a = 0", "child": "order"}}, final="a = 1")
    async with engine.refused("child_circle", 'by way of its child "order"'):
        await engine.apply("order", {"a": 0}, {"again": {"when": "a = 0", "child": "order"}}, final="a = 1")


async def test_an_unknown_child_and_one_that_waits_are_refused(engine: Engine) -> None:
    await family(engine)
    async with engine.refused("unknown_flow", 'task "go" runs the flow "nothing"'):
        await engine.apply("f", {"a": 0}, {"go": {"when": "a = 0", "child": "nothing"}}, final="a = 1")
    async with engine.refused("flow_invalid", "let a task before it wait"):
        await engine.apply(
            "f",
            {"a": 0, "at": {"type": "timestamp"}},
            {"go": {"when": "a = 0", "child": "order", "wait": "at"}},
            final="a = 1",
        )


async def test_why_tells_of_a_job_that_waits_for_its_child(engine: Engine) -> None:
    await family(engine)

    async def says(parent: int) -> tuple[str, str]:
        ((answer, job),) = await engine.rows("select answer, job from mutirao.why(%s, 'ship')", parent)
        return job["waits_for"], answer

    parent = await engine.start("order")
    assert await says(parent) == ("clock", "ship is to be done by an instance of shipping, which a clock starts")
    await engine.one(TICK)
    child = await child_of(engine, parent)
    assert await says(parent) == (
        "child",
        f"ship is being done by instance {child} of shipping, which is open.running",
    )
    await engine.do("shipping", "pack", parcel="p")
    assert await says(parent) == (
        "clock",
        f"ship is done: instance {child} of shipping has ended, and a clock takes over what it gives",
    )


async def test_records_tell_parent_and_children(engine: Engine) -> None:
    await family(engine)
    parent, child = await begin(engine)
    async with RealEngine(engine.url, upgrade=False) as real:
        assert (await real.instance(parent)).children == [child]
        assert (await real.instance(child)).parent == parent
        assert [each.parent for each in await real.instances()] == [parent, None]

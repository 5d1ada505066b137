"""Child flows: a task that another flow does, from its start to its end, and what passes between the two."""

import asyncio
from typing import Any

import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from staff import Office, furnish, offer

from mutirao.database.engine import Engine as RealEngine

TICK = "select (done ->> 'children')::int from mutirao.turn_clock(duty => 'children')"


async def family(engine: Engine, **about: Any) -> None:
    """A flow `order` whose task `ship` is done by the flow `shipping`."""
    await engine.apply(
        "shipping",
        {"address": {"type": "text"}, "weight": 1, "parcel": {"type": "text"}},
        {"pack": "parcel is null"},
        final="parcel is not null",
    )
    task = {"when": "parcel is null", "child": "shipping", **about}
    await engine.apply(
        "order",
        {"address": "here", "parcel": {"type": "text"}, "other": 0},
        {"ship": task},
        final="parcel is not null",
    )


async def child_of(engine: Engine, parent: int) -> int:
    return int(await engine.one("select instance from mutirao.child where parent = %s", parent))


async def begin(engine: Engine, **state: Any) -> tuple[int, int]:
    """A parent, and the child that a clock has started for it."""
    parent = await engine.start("order", **state)
    assert await engine.one(TICK) == 1
    return parent, await child_of(engine, parent)


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


# ---------------------------------------------------------------------------------------------------- cancel, interrupt


async def three_levels(engine: Engine) -> list[int]:
    await family(engine)
    await engine.apply(
        "year",
        {"parcel": {"type": "text"}},
        {"order": {"when": "parcel is null", "child": "order"}},
        final="parcel is not null",
    )
    top = await engine.start("year")
    await engine.one(TICK)
    await engine.one(TICK)
    middle = await child_of(engine, top)
    return [top, middle, await child_of(engine, middle)]


async def test_cancel_passes_down_all_levels_and_what_runs_may_finish(engine: Engine) -> None:
    lives = await three_levels(engine)
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
    lives = await three_levels(engine)
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


# ------------------------------------------------------------------------------------------------------------- refusals


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


# --------------------------------------------------------------------------------------------------------- many, killed


async def test_a_hundred_parents_are_done_in_few_turns(engine: Engine) -> None:
    await family(engine)
    parents = await engine.start_many("order", [{}] * 100)
    assert [await engine.one(TICK) for _ in range(3)] == [50, 50, 0]
    jobs = await engine.claim("shipping", "pack", room=100)
    assert len(jobs) == 100
    await engine.turn([(job, {"parcel": "p"}) for job in jobs])
    assert [await engine.one(TICK) for _ in range(3)] == [50, 50, 0]
    assert {await engine.status(parent) for parent in parents} == {"closed.completed"}


async def test_a_clock_that_is_killed_before_it_commits_has_done_nothing(engine: Engine) -> None:
    """At each of the three steps: starting, cancelling, ending."""
    await family(engine)

    async def killed() -> None:
        before = await engine.everything()
        session = await AsyncConnection.connect(engine.url)
        await session.execute("select mutirao.turn_clock(duty => 'children')")
        await engine.rows("select pg_terminate_backend(%s)", session.info.backend_pid)
        await session.close()
        assert await engine.everything() == before

    parent = await engine.start("order")
    await killed()
    await engine.one(TICK)
    await engine.do("shipping", "pack", parcel="p")
    await killed()
    await engine.one(TICK)
    assert await engine.status(parent) == "closed.completed"
    other = await engine.start("order")
    await engine.one(TICK)
    await engine.cancel(other)
    await killed()
    for _ in range(2):
        await engine.one(TICK)
    assert await engine.status(other) == "closed.aborted"
    assert await engine.one("select count(*) from mutirao.child") == 2


async def test_clocks_at_once_start_each_child_once_and_wait_for_nobody(engine: Engine) -> None:
    await family(engine)
    await engine.start_many("order", [{}] * 60)
    async with await AsyncConnection.connect(engine.url) as first:
        await first.execute("select mutirao.turn_clock(20, 'children')")
        done = await asyncio.wait_for(
            engine.one("select (done ->> 'children')::int from mutirao.turn_clock(50, 'children')"), 10
        )
        assert done == 30
        await first.commit()
    await engine.one(TICK)
    assert (
        await engine.one(
            "select count(*) from mutirao.instance i join mutirao.flow f on f.id = i.flow where f.name = 'shipping'"
        )
        == 60
    )


async def test_a_parent_that_somebody_writes_is_left_for_the_next_turn(engine: Engine) -> None:
    await family(engine)
    parent, other = await engine.start_many("order", [{}, {}])
    async with await AsyncConnection.connect(engine.url) as session:
        await session.execute("select from mutirao.instance where id = %s for no key update", [parent])
        assert await engine.one(TICK) == 1
        assert await engine.jobs(other) == {"ship": "running"}
    assert await engine.one(TICK) == 1
    assert await engine.jobs(parent) == {"ship": "running"}


async def test_an_ended_child_is_kept_until_its_parent_has_what_it_gives(engine: Engine) -> None:
    await family(engine)
    parent, child = await begin(engine)
    await engine.rows("select mutirao.keep('shipping', '0')")
    await engine.do("shipping", "pack", parcel="p")
    await engine.rows("select mutirao.turn_clock(duty => 'retention')")
    assert await engine.status(child) == "closed.completed"
    await engine.one(TICK)
    assert await engine.state(parent) == {"address": "here", "parcel": "p", "other": 0}
    await engine.advance(seconds=5)
    await engine.rows("select mutirao.turn_clock(duty => 'retention')")
    assert await engine.rows("select from mutirao.closed where id = %s", child) == []


# --------------------------------------------------------------------------------------------------------- who is told


@pytest.fixture(name="office")
async def office_of(engine: Engine) -> Office:
    return await furnish(engine)


async def created_order(office: Office) -> int:
    """An order that the manager is in charge of, and whose child has begun."""
    await office.engine.apply(
        "order",
        {"parcel": {"type": "text"}},
        {"ship": {"when": "parcel is null", "child": "shipping"}},
        final="parcel is not null",
        creator="manager",
    )
    parent = await office.create("order")
    await office.engine.one(TICK)
    return parent


async def test_whoever_is_in_charge_is_so_of_the_child_and_hears_only_what_calls_for_them(office: Office) -> None:
    engine = office.engine
    await engine.apply(
        "shipping",
        {"parcel": {"type": "text"}},
        {"pack": {"when": "parcel is null", "offer": offer()}},
        final="parcel is not null",
    )
    parent = await created_order(office)
    child = await child_of(engine, parent)
    item = await engine.job(child, "pack")
    await office.finish("clerk_1", item, await office.select("clerk_1", item), error="no box")
    await office.steer("manager", item, "retry")
    await office.finish("clerk_1", item, await office.select("clerk_1", item), parcel="p")
    await engine.one(TICK)
    assert [(each.kind, each.sender) for each in await office.messages("manager")] == [
        ("instance_started", str(parent)),
        ("task_failed", str(child)),
        ("instance_ended", str(parent)),
    ]


async def in_charge(office: Office, *instances: int) -> list[str]:
    named = "select p.name from mutirao.charge c join mutirao.person p on p.id = c.person where c.instance = %s"
    return [await office.engine.one(named, each) for each in instances]


async def test_children_are_handed_over_with_their_parents(office: Office) -> None:
    engine = office.engine
    await three_levels(engine)
    await engine.apply(
        "year",
        {"parcel": {"type": "text"}},
        {"order": {"when": "parcel is null", "child": "order"}},
        final="parcel is not null",
        creator="manager",
    )
    top = await office.create("year")
    await engine.one(TICK)
    await engine.one(TICK)
    middle = await child_of(engine, top)
    lives = [top, middle, await child_of(engine, middle)]
    assert await in_charge(office, *lives) == ["manager"] * 3
    await office.hand_over("manager", top, "clerk_1")
    await office.hand_over("clerk_1", top, "clerk_2")  # before a clock came
    await engine.suspend(top)
    for _ in range(3):
        await engine.one(TICK)
    assert await in_charge(office, *lives) == ["clerk_2"] * 3
    holds = await engine.rows("select hold from mutirao.instance where id = any (%s)", lives)
    assert holds == [("suspended",)] * 3
    assert await engine.one(TICK) == 0
    assert (await engine.trace(middle))[1].note == {
        "to": "clerk_2", "reason": f"its parent, instance {top}, was handed over",
    }  # fmt: skip
    await office.hand_over("clerk_2", middle, "manager")  # on its own
    await office.hand_over("clerk_2", top, "admin")
    for _ in range(3):
        await engine.one(TICK)
    assert await in_charge(office, *lives) == ["admin", "manager", "manager"]


async def test_a_child_that_ends_badly_is_told_of_as_a_failed_task_of_its_parent(office: Office) -> None:
    engine = office.engine
    await family(engine)
    parent = await created_order(office)
    await engine.cancel(await child_of(engine, parent))
    await engine.one(TICK)
    assert [(each.kind, each.sender) for each in await office.messages("manager")][1:] == [("task_failed", str(parent))]


# ------------------------------------------------------------------------------------------------------ what is told


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

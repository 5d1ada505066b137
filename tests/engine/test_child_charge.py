"""Who is in charge of a child, and who is told of it."""

from driver import fresh_engine  # noqa: F401 gives the fixture `engine`
from family import TICK, child_of, family, grandparents, three_levels
from staff import Office, furnished_office, offer  # noqa: F401 gives the fixture `office`


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
    await grandparents(engine, creator="manager")
    lives = await three_levels(engine, await office.create("year"))
    top, middle, _ = lives
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


async def test_many_children_are_handed_over_by_the_room_of_a_clock(office: Office) -> None:
    engine = office.engine
    await family(engine)
    tasks = {f"ship_{number}": {"when": "true", "fires": "once", "child": "shipping"} for number in range(7)}
    await engine.apply("orders", {"parcel": {"type": "text"}}, tasks, ends="quiet", creator="manager")
    parent = await office.create("orders")
    assert await engine.one(TICK) == 7
    children = [each for (each,) in await engine.rows("select instance from mutirao.child where parent = %s", parent)]
    await office.hand_over("manager", parent, "clerk_1")
    turn = "select (done ->> 'children')::int from mutirao.turn_clock(3, 'children')"
    handed = []
    for done in (3, 3, 1, 0):
        assert await engine.one(turn) == done
        handed.append((await in_charge(office, *children)).count("clerk_1"))
    assert handed == [3, 6, 7, 7]


async def test_a_child_that_ends_badly_is_told_of_as_a_failed_task_of_its_parent(office: Office) -> None:
    engine = office.engine
    await family(engine)
    parent = await created_order(office)
    await engine.cancel(await child_of(engine, parent))
    await engine.one(TICK)
    assert [(each.kind, each.sender) for each in await office.messages("manager")][1:] == [("task_failed", str(parent))]

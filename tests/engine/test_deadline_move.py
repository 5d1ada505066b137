"""An item that is late moves to the person in charge, or to whoever stands for them."""

from datetime import timedelta
from typing import Any

from claims import at_each, begin, holder, pass_until
from driver import fresh_engine  # noqa: F401 gives the fixture `engine`
from staff import Office, furnished_office, offer  # noqa: F401 gives the fixture `office`


async def test_what_has_moved_is_in_the_list_of_the_person_in_charge_and_the_late_result_is_kept(
    office: Office,
) -> None:
    instance, item = await begin(office, hours=48)
    attempt = await office.select("clerk_1", item)
    await office.engine.advance(hours=24, seconds=1)
    assert await office.tick() == 1
    assert await holder(office, item) == (None, "manager", True)
    step = (await office.engine.trace(instance))[-1]
    assert (step.kind, step.task, step.writer) == ("transfer", "approve", "clock")
    assert step.note is not None
    assert (step.note["from"], step.note["to"]) == ("clerk_1", "manager")
    assert await office.finish("clerk_1", item, attempt, approved=True) == "item_moved"
    assert await office.engine.rows("select content from mutirao.attachment where job = %s", item) == [
        ({"change": {"approved": True}},)
    ]
    async with office.engine.refused("forbidden"):
        await office.select("clerk_1", item)
    attempt = await office.select("manager", item)
    assert await office.finish("manager", item, attempt, approved=True) == "done"
    assert await office.engine.status(instance) == "closed.completed"


async def test_returned_by_the_person_in_charge_or_a_delegate_it_stays_with_the_one_in_charge(office: Office) -> None:
    _, item = await begin(office, hours=48)
    await office.engine.advance(hours=25)
    await office.tick()
    await office.select("manager", item)
    await office.give_back("manager", item)
    assert await holder(office, item) == (None, "manager", True)
    await office.delegate("manager", item, "clerk_2")
    await office.select("clerk_2", item)
    await office.give_back("clerk_2", item)
    assert await holder(office, item) == (None, "manager", True)


async def test_an_item_that_the_person_in_charge_holds_stays_in_their_hands(office: Office) -> None:
    instance, item = await begin(office, hours=48)
    await office.delegate("manager", item, "manager")
    attempt = await office.select("manager", item)
    await office.heard()
    assert await at_each(office, 24) == {24: [("manager", "deadline")]}
    assert await holder(office, item) == ("manager", "manager", True)
    assert await office.finish("manager", item, attempt, approved=True) == "done"
    assert "transfer" not in await office.engine.kinds(instance)


async def test_whoever_was_invited_does_not_see_what_has_moved(office: Office) -> None:
    _, item = await begin(office, hours=48)
    await office.hire("guest")
    await office.engine.rows(
        "select mutirao.insert_item(%s, %s, %s)", office.numbers["manager"], item, office.numbers["guest"]
    )
    await office.engine.advance(hours=25)
    await office.tick()
    async with office.engine.refused("unknown_job"):
        await office.select("guest", item)


async def test_without_a_person_in_charge_it_becomes_the_business_of_the_administrators(office: Office) -> None:
    await begin(office, hours=48)
    instance = await office.engine.start("claim")
    item = await office.engine.job(instance, "approve")
    await office.engine.rows("delete from mutirao.job where instance <> %s", instance)
    attempt = await office.select("clerk_1", item)
    assert await at_each(office, 24, 0) == {
        24: [("admin", "transferred"), ("clerk_1", "transferred")],
        0: [("admin", "deadline")],
    }
    assert await office.finish("clerk_1", item, attempt) == "item_moved"
    async with office.engine.refused("unknown_job"):
        await office.select("clerk_2", item)
    assert await office.finish("admin", item, await office.select("admin", item), error="no") == "done"
    await office.engine.retry(item)  # and then it is for clerks again
    assert await office.select("clerk_2", item) > 0


async def test_for_whom_an_item_is_not_it_does_not_become_by_being_late(office: Office) -> None:
    """The person in charge did the earlier task, and this one is for anybody else."""
    await office.hire("deputy", "manager", "clerk")
    policy = {"kind": "not_as", "task": "draft"}
    tasks: dict[str, Any] = {
        "draft": {"when": "a = 0", "offer": offer()},
        "check": {"when": "a = 1", "offer": offer(timedelta(hours=48), policy=policy)},
    }
    await office.engine.apply("report", {"a": 0}, tasks, final="a = 2", creator="manager")
    instance = await office.create("report", "deputy")
    item = await office.engine.job(instance, "draft")
    await office.finish("deputy", item, await office.select("deputy", item), a=1)
    item = await office.engine.job(instance, "check")
    await office.heard()
    await pass_until(office, 24)
    told = {each.person: each.text for each in await office.messages(None, "transferred")}
    assert told.keys() == {"admin", "deputy"}
    assert told["deputy"].endswith(": it went to the administrators.")
    assert told["admin"].endswith(": it is yours now.")
    async with office.engine.refused("forbidden"):
        await office.select("deputy", item)
    assert await office.select("admin", item) > 0


async def test_what_moves_to_somebody_who_is_away_is_told_to_their_substitute_who_does_it(office: Office) -> None:
    await office.hire("deputy", "manager")
    await office.engine.rows(
        "select mutirao.set_away(null, %s, mutirao.now(), substitute => %s)",
        office.numbers["manager"],
        office.numbers["deputy"],
    )
    _, item = await begin(office, hours=48)
    told = (await at_each(office, 24))[24]
    assert told == [("deputy", "transferred"), ("manager", "transferred")]
    assert await office.finish("deputy", item, await office.select("deputy", item), approved=True) == "done"


async def test_a_disabled_person_in_charge_is_passed_over(office: Office) -> None:
    _, item = await begin(office, hours=48)
    await office.engine.rows("update mutirao.person set disabled_at = mutirao.now() where name = 'manager'")
    assert ("admin", "transferred") in (await at_each(office, 24))[24]
    assert await office.select("admin", item) > 0


async def test_handing_over_the_charge_hands_over_what_has_moved(office: Office) -> None:
    instance, item = await begin(office, hours=48)
    await office.hire("manager_2", "manager")
    await office.engine.advance(hours=25)
    await office.tick()
    await office.hand_over("manager", instance, "manager_2")
    assert await holder(office, item) == (None, "manager_2", True)


async def test_what_has_moved_is_handed_over_to_nobody_for_whom_it_is_not(office: Office) -> None:
    """Who did the earlier task comes to be in charge: what is late is the administrators' then."""
    tasks: dict[str, Any] = {
        "draft": {"when": "a = 0", "offer": offer()},
        "check": {"when": "a = 1", "offer": offer(timedelta(hours=48), policy={"kind": "not_as", "task": "draft"})},
    }
    await office.engine.apply("report", {"a": 0}, tasks, final="a = 2", creator="manager")
    instance = await office.create("report")
    item = await office.engine.job(instance, "draft")
    await office.finish("clerk_1", item, await office.select("clerk_1", item), a=1)
    item = await office.engine.job(instance, "check")
    await office.engine.advance(hours=25)
    await office.tick()
    assert await holder(office, item) == (None, "manager", True)
    await office.heard()
    await office.hand_over("manager", instance, "clerk_1")
    assert await office.heard() == [("admin", "transferred"), ("clerk_1", "in_charge")]
    assert await office.select("admin", item) > 0

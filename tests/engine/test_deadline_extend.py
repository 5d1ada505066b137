"""More time: for an item under way, late, or tried again."""

from claims import at_each, begin, holder
from driver import fresh_engine  # noqa: F401 gives the fixture `engine`
from staff import Office, furnished_office, offer  # noqa: F401 gives the fixture `office`


async def test_more_time_counts_anew(office: Office) -> None:
    instance, item = await begin(office, hours=48)
    await office.select("clerk_1", item)
    await at_each(office, 24)
    await office.extend("manager", item, hours=72)
    assert (await office.engine.trace(instance))[-1].kind == "extend"
    await office.delegate("manager", item, "clerk_2")
    await office.select("clerk_2", item)
    await office.heard()
    assert await at_each(office, 48, 24) == {
        48: [("clerk_2", "deadline"), ("manager", "deadline")],
        24: [("clerk_2", "transferred"), ("manager", "transferred")],
    }


async def test_whoever_holds_the_item_is_told_of_more_time(office: Office) -> None:
    _, item = await begin(office, hours=48)
    await office.select("clerk_1", item)
    await office.extend("manager", item, hours=100)
    [told] = await office.messages("clerk_1")
    assert (told.kind, told.note["by"]) == ("deadline", "manager")
    assert "is to be done by 2" in told.text


async def test_an_item_without_a_deadline_can_get_one(office: Office) -> None:
    await office.engine.apply(
        "calm", {"a": 0}, {"do": {"when": "a = 0", "offer": offer()}}, final="a = 1", creator="manager"
    )
    instance = await office.create("calm")
    await office.extend("manager", await office.engine.job(instance, "do"), hours=2)
    await office.heard()
    assert await at_each(office, 1) == {1: [("manager", "transferred")]}


async def test_who_may_not_and_what_cannot_be_is_refused(office: Office) -> None:
    _, item = await begin(office, hours=48)
    async with office.engine.refused("forbidden", "only the person in charge"):
        await office.extend("clerk_1", item, hours=9)
    async with office.engine.refused("wrong_call", "a time to come"):
        await office.extend("manager", item, hours=-1)
    async with office.engine.refused("unknown_job"):
        await office.extend("manager", item + 1000, hours=1)
    await office.finish("clerk_1", item, await office.select("clerk_1", item), error="no")
    async with office.engine.refused("item_not_ready", "is failed"):
        await office.extend("manager", item, hours=1)


async def test_a_failed_item_that_is_tried_again_has_its_whole_time_again(office: Office) -> None:
    _, item = await begin(office, hours=48)
    await at_each(office, 24, 0)
    await office.finish("manager", item, await office.select("manager", item), error="not like this")
    await office.steer("manager", item, "retry")
    assert await holder(office, item) == (None, None, False)
    await office.heard()
    assert await at_each(office, 24) == {24: [("manager", "transferred")]}


async def test_an_item_whose_time_is_over_can_be_skipped_also_out_of_somebodys_hands(office: Office) -> None:
    instance, item = await begin(office, hours=48)
    await at_each(office, 0)
    await office.delegate("manager", item, "clerk_2")
    attempt = await office.select("clerk_2", item)
    await office.heard()
    await office.engine.rows(
        "select mutirao.steer_job(%s, %s, 'skip', '{\"approved\": true}')", office.numbers["manager"], item
    )
    assert await office.engine.status(instance) == "closed.completed"
    assert ("clerk_2", "taken") in await office.heard()
    assert await office.finish("clerk_2", item, attempt, approved=False) == "item_moved"

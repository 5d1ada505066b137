"""Those in charge of instances: they create them, steer them and hand them over."""

from typing import Any

import pytest
from desk import Desk, fresh_desk  # noqa: F401 gives the fixture `desk`
from office import one, refused, rows
from psycopg import AsyncConnection

from mutirao.database.charge import Creation
from mutirao.model import Offer, Policy, Task


async def test_a_flow_that_no_longer_names_its_creators_is_started_by_administrators_alone(desk: Desk) -> None:
    """A definition is the whole truth."""
    await desk.put_letters()
    await desk.engine.charges.create(desk.manager, Creation(flow="letter"))
    await desk.put_letters(creator=None)
    async with refused("forbidden", "only administrators"):
        await desk.engine.charges.create(desk.manager, Creation(flow="letter"))
    await desk.put_letters()
    await desk.engine.charges.create(desk.manager, Creation(flow="letter"))


async def test_only_the_creator_role_starts_a_flow(desk: Desk) -> None:
    await desk.put_letters()
    await desk.put_letters(name="closed_shop", creator=None)
    clerk = desk.clerks[0]
    async with refused("forbidden", 'only members of the role "manager" may start flow "letter"'):
        await desk.engine.charges.create(clerk, Creation(flow="letter"))
    async with refused("forbidden", "only administrators"):
        await desk.engine.charges.create(desk.manager, Creation(flow="closed_shop"))
    async with refused("unknown_flow"):
        await desk.engine.charges.create(desk.manager, Creation(flow="leter"))
    first = await desk.engine.charges.create(desk.manager, Creation(flow="letter", key="k", priority=3))
    assert await desk.engine.charges.create(desk.manager, Creation(flow="letter", key="k")) == first
    other = await desk.engine.charges.create(
        desk.administrator, Creation(flow="closed_shop", in_charge="clerk_1"), reason="asked to"
    )
    assert [each.id for each in await desk.engine.charges.in_charge(desk.manager)] == [first]
    assert [each.id for each in await desk.engine.charges.in_charge(clerk)] == [other]
    assert (await desk.engine.instance(first)).priority == 3


async def test_the_list_of_those_in_charge_goes_page_by_page(desk: Desk) -> None:
    await desk.put_letters()
    made = [await desk.letter() for _ in range(5)]
    await desk.engine.charges.cancel(desk.manager, made[1])
    charges = desk.engine.charges

    async def listed(**asked: Any) -> list[int]:
        return [each.id for each in await charges.in_charge(desk.manager, **asked)]

    assert await listed() == made[::-1]
    assert await listed(limit=2) == [made[4], made[3]]
    assert await listed(before=made[3], limit=2) == [made[2], made[1]]
    assert await listed(is_open=False) == [made[1]]
    assert await listed(is_open=True) == [made[4], made[3], made[2], made[0]]


@pytest.mark.parametrize("act", ["suspend", "resume", "cancel"])
async def test_who_only_works_on_an_instance_does_not_steer_it(desk: Desk, act: str) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    async with refused("forbidden", "only the person in charge"):
        await getattr(desk.engine.charges, act)(desk.clerks[0], instance)
    async with refused("forbidden"):
        await desk.engine.charges.set(desk.clerks[0], instance, {"topic": "x"})
    async with refused("forbidden"):
        await desk.engine.charges.hand_over(desk.clerks[0], instance, desk.clerks[0])


async def test_a_charge_is_handed_over(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    job = await desk.item_of(instance)
    heir = desk.clerks[2]
    await desk.engine.charges.hand_over(desk.manager, instance, "clerk_3", reason="on leave")
    async with refused("forbidden"):
        await desk.engine.charges.suspend(desk.manager, instance)
    await desk.engine.charges.set(heir, instance, {"topic": "roads"}, reason="it was misread")
    await desk.engine.charges.skip(heir, job, {"answer": "no need"}, reason="done by phone")
    closed = await desk.engine.instance(instance)
    assert (closed.status, closed.state["topic"], closed.state["answer"]) == ("closed.completed", "roads", "no need")
    assert await desk.story(instance) == [
        ("start", "manager"), ("hand_over", "manager"), ("set", "clerk_3"), ("skip", "clerk_3"),
    ]  # fmt: skip
    for act in (
        desk.engine.charges.cancel(heir, instance),
        desk.engine.charges.hand_over(heir, instance, desk.manager),
    ):
        async with refused("instance_closed"):
            await act


async def test_an_exception_is_repaired_by_the_person_in_charge(desk: Desk) -> None:
    await desk.put_letters(Task(name="read", when="topic = 'tax'"))
    instance = await desk.letter(topic="tax")
    await desk.engine.charges.skip(desk.manager, await desk.item_of(instance), {"topic": "lost"})
    assert (await desk.engine.instance(instance)).status == "open.exception"
    await desk.engine.charges.repair(desk.manager, instance, {"answer": "yes"}, reason="found again")
    assert (await desk.engine.instance(instance)).status == "closed.completed"


async def test_steering_hints_at_the_lists_that_change(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    role = await one(desk.engine, "select id from mutirao.role where name = 'clerk'")
    heard: list[str] = []
    async with await AsyncConnection.connect(desk.engine.url, autocommit=True) as listening:
        await listening.execute("listen mutirao_people")
        await desk.engine.charges.suspend(desk.manager, instance)
        await desk.engine.charges.resume(desk.manager, instance)
        await desk.engine.charges.cancel(desk.manager, instance)
        async for each in listening.notifies(timeout=5):
            heard.append(each.payload)
            if len(heard) == 3:
                break
    assert all(f"r{role}" in each.split(",") for each in heard)


async def test_a_policy_is_one_of_the_flows_own_tasks(desk: Desk) -> None:
    await desk.put_letters()
    async with refused("unknown_task", 'flow "letter" has no task "sign"'):
        await desk.engine.charges.create(desk.manager, Creation(flow="letter", policies={"sign": Policy()}))


async def test_no_policy_of_one_instance_undoes_four_eyes(desk: Desk) -> None:
    """An administrator is no exception."""
    read = Task(name="read", when="topic is null", offer=Offer(role="clerk"), outputs=("topic",))
    sign = Task(
        name="sign",
        when="topic is not null and answer is null",
        offer=Offer(role="clerk", policy=Policy("not_as", "read")),
        outputs=("answer",),
    )
    await desk.put_letters(read, sign)
    for actor in (desk.manager, desk.administrator):
        for policy in (Policy(), Policy("round_robin"), Policy("not_as", "sign")):
            async with refused("forbidden", 'task "sign" is not for whoever did "read"'):
                await desk.engine.charges.create(actor, Creation(flow="letter", policies={"sign": policy}))
    same = {"sign": Policy("not_as", "read"), "read": Policy("round_robin")}
    instance = await desk.engine.charges.create(desk.manager, Creation(flow="letter", policies=same))
    job = await desk.item_of(instance)
    [clerk] = [each for each in desk.clerks if job in await desk.seen(each)]
    await desk.engine.worklists.finish(clerk, job, await desk.engine.worklists.select(clerk, job), {"topic": "tax"})
    assert await desk.item_of(instance) not in await desk.seen(clerk)


async def test_the_substitute_of_who_is_in_charge_steers_under_their_own_name(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    stand_in = desk.clerks[1]
    async with refused("forbidden"):
        await desk.engine.charges.suspend(stand_in, instance)
    await desk.away(desk.manager, stand_in)
    await desk.engine.charges.suspend(stand_in, instance)
    await desk.engine.charges.resume(stand_in, instance)
    await desk.engine.charges.set(stand_in, instance, {"topic": "roads"})
    assert [each.id for each in await desk.engine.charges.in_charge(stand_in)] == [instance]
    async with refused("forbidden"):
        await desk.engine.charges.suspend(desk.clerks[0], instance)
    await desk.away(desk.manager, None)
    async with refused("forbidden"):
        await desk.engine.charges.cancel(stand_in, instance)
    assert [writer for kind, writer in await desk.story(instance) if kind != "start"] == ["clerk_2"] * 3
    assert await desk.engine.charges.in_charge(stand_in) == []


async def test_what_was_said_about_somebody_is_erased(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter(topic="Ms Example's tax")
    await desk.engine.worklists.comment(desk.manager, "Ms Example's tax is late", instance=instance)
    await desk.engine.charges.cancel(desk.manager, instance)
    found = await one(desk.engine, "select holding from mutirao.find_value('Example''s tax')")
    assert found == [instance]
    await one(desk.engine, "select mutirao.erase(array[%s::bigint], value => 'Ms Example''s tax')", instance)
    assert await one(desk.engine, "select text from mutirao.comment") == "[erased] is late"


async def test_open_instances_are_found_among_any_number_of_closed_ones(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    closed = (
        "insert into mutirao.charge (instance, person, ended) select %s + n, %s, true from generate_series(1, 3000) n"
    )
    await rows(desk.engine, f"{closed} returning instance", instance, desk.manager)
    assert [each.id for each in await desk.engine.charges.in_charge(desk.manager, is_open=True, limit=2)] == [instance]
    await desk.engine.charges.hand_over(desk.manager, instance, desk.clerks[0])
    assert await desk.engine.charges.in_charge(desk.manager, is_open=True) == []

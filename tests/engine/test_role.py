"""Roles: added, renamed, described, removed when nothing needs them; persons put in and taken out."""

import pytest
from office import add_requests, fresh_office, one, refused, rows, select  # noqa: F401 gives the fixture `office`

from mutirao.database.engine import Engine
from mutirao.errors import RequestError
from mutirao.model import Attribute, Definition, Task


async def test_a_role_is_added_described_renamed_and_removed(office: Engine) -> None:
    made = await office.roles.add(None, "technician", description="Mends what is broken.")
    assert (made.name, made.description, made.members) == ("technician", "Mends what is broken.", 0)
    changed = await office.roles.change(None, "technician", {"name": "engineer", "description": None})
    assert (changed.id, changed.name, changed.description) == (made.id, "engineer", None)
    assert changed.revision == made.revision + 1
    assert [each.name for each in await office.roles.all(None)] == ["administrator", "clerk", "engineer", "manager"]
    await office.roles.remove(None, "engineer")
    assert await office.roles.names() == ["administrator", "clerk", "manager"]
    async with refused("unknown_role", 'there is no role "engineer"'):
        await office.roles.get(None, "engineer")
    again = await office.roles.add(None, "engineer")
    assert again.id != made.id


async def test_whoever_names_what_is_not_there_is_not_told_all_that_is(office: Engine) -> None:
    with pytest.raises(RequestError) as refusal:
        await office.roles.get(None, "zzz")
    assert refusal.value.message == 'there is no role "zzz"'
    with pytest.raises(RequestError) as refusal:
        await office.persons.get(None, "zzz")
    assert refusal.value.message == 'there is no person "zzz"'


async def test_what_cannot_be_of_a_role_is_refused(office: Engine) -> None:
    async with refused("name_taken", 'there is a role "clerk" already'):
        await office.roles.add(None, "clerk")
    async with refused("name_taken"):
        await office.roles.change(None, "manager", {"name": "clerk"})
    async with refused("unknown_role", 'did you mean "clerk"?'):
        await office.roles.get(None, "clark")
    async with refused("wrong_call", "always called so"):
        await office.roles.change(None, "administrator", {"name": "king"})
    async with refused("wrong_call", "always there"):
        await office.roles.remove(None, "administrator")
    async with refused("unknown_person", "nobody"):
        await office.roles.put(None, "clerk", ["nobody"])
    async with refused("unknown_person", "12345"):
        await office.roles.put(None, "clerk", [12345])
    async with refused("unknown_role", "12345"):
        await office.roles.remove(None, 12345)


async def test_only_administrators_change_roles_and_everybody_sees_them(office: Engine) -> None:
    clerk = await office.persons.add(None, "clerk_1", roles=["clerk"])
    head_clerk = await office.persons.add(None, "head_clerk", roles=["administrator"])
    for attempt in (
        office.roles.add(clerk.id, "king"),
        office.roles.change(clerk.id, "clerk", {"name": "king"}),
        office.roles.remove(clerk.id, "manager"),
        office.roles.put(clerk.id, "administrator", ["clerk_1"]),
        office.roles.take(clerk.id, "administrator", ["head_clerk"]),
    ):
        async with refused("forbidden"):
            await attempt
    assert {each.name: each.members for each in await office.roles.all(clerk.id)} == {
        "administrator": 1,
        "clerk": 1,
        "manager": 0,
    }
    await office.roles.put(head_clerk.id, "manager", ["clerk_1"])
    assert (await office.persons.get(clerk.id, "clerk_1")).roles == ["clerk", "manager"]


async def test_a_change_for_an_earlier_revision_tells_what_has_changed(office: Engine) -> None:
    await office.persons.add(None, "clerk_1")
    seen = await office.roles.get(None, "clerk")
    await office.roles.put(None, "clerk", ["clerk_1"])
    async with refused("changed_meanwhile", "members changed by operator"):
        await office.roles.remove(None, "clerk", revision=seen.revision)
    async with refused("changed_meanwhile", 'role "clerk" is at revision 2, not 1'):
        await office.roles.change(None, "clerk", {"name": "king"}, revision=seen.revision)


async def test_a_role_that_is_needed_stays(office: Engine) -> None:
    await add_requests(office)
    async with refused("role_used", 'task "approve" of flow "request" is offered to it; an open work item is'):
        await office.roles.remove(None, "clerk")
    await one(
        office,
        "update mutirao.flow set creator_role = (select id from mutirao.role where name = 'manager') returning 1",
    )
    async with refused("role_used", 'flow "request" may be started by it'):
        await office.roles.remove(None, "manager")


async def test_a_role_of_old_versions_goes_when_their_instances_have_ended(office: Engine) -> None:
    [job] = await add_requests(office)
    old = await office.roles.get(None, "clerk")
    plain = Task(name="note", when="answer is null")
    await office.apply(
        Definition(
            name="request", attributes=(Attribute("answer", "text"),), tasks=(plain,), final="answer is not null"
        )
    )
    async with refused("role_used", 'an old version of flow "request" are open'):
        await office.roles.remove(None, "clerk")
    await office.cancel((await office.job(job)).instance)
    await office.roles.remove(None, "clerk")
    assert "clerk" not in [each.name for each in await office.roles.all(None)]
    async with refused("unknown_role", "mutirao role add"):
        await add_requests(office)
    again = await office.roles.add(None, "clerk", description="is back")
    assert (again.id, again.description) == (old.id, "is back")
    await add_requests(office)


async def test_whoever_is_put_into_a_role_finds_what_is_open(office: Engine) -> None:
    clerk = await office.persons.add(None, "clerk_1")
    [job] = await add_requests(office)
    async with refused("unknown_job"):
        await select(office, clerk.id, job)
    assert await office.roles.put(None, "clerk", ["clerk_1"]) == 1
    assert await office.roles.put(None, "clerk", ["clerk_1"]) == 0
    await select(office, clerk.id, job)


async def test_whoever_is_taken_out_of_a_role_gives_back_what_is_of_it(office: Engine) -> None:
    clerk = await office.persons.add(None, "clerk_1", roles=["clerk", "manager"])
    other = await office.persons.add(None, "clerk_2", roles=["clerk"])
    held, offered, invited, others = await add_requests(office, number=4)
    await select(office, clerk.id, held)
    head_clerk = await office.persons.add(None, "head_clerk", roles=["administrator"])
    await one(office, "select mutirao.delegate_item(%s, %s, %s)", head_clerk.id, offered, clerk.id)
    await one(office, "select mutirao.insert_item(%s, %s, %s)", head_clerk.id, invited, clerk.id)
    await select(office, clerk.id, invited)
    await select(office, other.id, others)
    assert await office.roles.take(None, "manager", ["clerk_1"]) == 1
    assert (await office.persons.get(None, "clerk_1")).holds == 2
    assert await office.roles.take(None, "clerk", ["clerk_1"]) == 1
    assert await office.roles.take(None, "clerk", ["clerk_1"]) == 0
    found = await rows(office, "select id, status::text, person, offered_to from mutirao.job order by id")
    assert found == [
        (held, "ready", None, None),
        (offered, "ready", None, None),
        (invited, "running", clerk.id, None),
        (others, "running", other.id, None),
    ]
    note = {"from": "clerk_1", "reason": 'out of the role "clerk"'}
    returned = await rows(office, "select job, note from mutirao.trace where kind = 'return' order by job")
    assert returned == [(held, note), (offered, note)]
    async with refused("forbidden", 'for the role "clerk"'):
        await select(office, clerk.id, held)


@pytest.mark.parametrize("act", ["disable", "take"])
async def test_what_many_items_are_given_back_by_is_one_call(office: Engine, act: str) -> None:
    clerk = await office.persons.add(None, "clerk_1", roles=["clerk"])
    jobs = await add_requests(office, number=300)
    await rows(office, "select mutirao.select_item(%s, j) from unnest(%s::bigint[]) j", clerk.id, jobs)
    if act == "disable":
        await office.persons.disable(None, "clerk_1")
    else:
        await office.roles.take(None, "clerk", ["clerk_1"])
    assert await one(office, "select count(*) from mutirao.job where status = 'ready' and person is null") == 300
    assert await one(office, "select count(*) from mutirao.trace where kind = 'return'") == 300

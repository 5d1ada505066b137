"""Persons: added, changed by whoever may, away with a substitute, disabled; and what becomes of what they hold."""

from datetime import UTC, datetime, timedelta

import pytest
from office import add_requests, fresh_office, move, one, refused, rows, select  # noqa: F401 gives the fixture `office`

from mutirao.database.engine import Engine
from mutirao.database.person import Away, PersonFilter

SOON = datetime(2100, 1, 1, tzinfo=UTC)


async def test_a_person_is_added_in_roles_and_found_again(office: Engine) -> None:
    made = await office.persons.add(None, "clerk_1", full_name="First Clerk", email="c@example.org", roles=["clerk"])
    assert (made.name, made.full_name, made.email, made.roles) == ("clerk_1", "First Clerk", "c@example.org", ["clerk"])
    assert made.made_by == "operator"
    assert (made.here, made.holds, made.offered, made.disabled_at) == (False, 0, 0, None)
    assert await office.persons.get(None, made.id) == await office.persons.get(None, "clerk_1") == made


@pytest.mark.parametrize("name", ["O'Neill", 'the "first"', "Ação; drop table", "1", "a" * 100, "李 四", "100%"])
async def test_a_name_may_have_quotes(office: Engine, name: str) -> None:
    person = await office.persons.add(None, name, roles=["clerk"])
    await office.roles.add(None, name)
    await office.roles.put(None, name, [name])
    assert (await office.persons.get(person.id, name)).roles == sorted(["clerk", name])
    assert [each.name for each in await office.persons.page(None, PersonFilter(role=name, search=name))] == [name]
    await office.persons.disable(None, name)
    await office.roles.remove(None, name)


@pytest.mark.parametrize(
    "name", ["", " clerk", "clerk ", "two\nlines", "a" * 101, "tab\t", "zero\x00", "in\u200bvisible"]
)
async def test_a_name_is_one_line_of_printable_letters(office: Engine, name: str) -> None:
    async with refused("wrong_call"):
        await office.persons.add(None, name)
    async with refused("wrong_call"):
        await office.roles.add(None, name)
    assert await office.persons.page(None) == []


async def test_capital_and_small_letters_do_not_tell_persons_apart(office: Engine) -> None:
    await office.persons.add(None, "Clerk_1")
    await office.persons.add(None, "clerk_2")
    async with refused("name_taken", 'there is a person "Clerk_1" already: capital and small letters'):
        await office.persons.add(None, "clerk_1")
    async with refused("name_taken"):
        await office.persons.change(None, "clerk_2", {"name": "CLERK_1"})
    assert (await office.persons.change(None, "Clerk_1", {"name": "clerk_1"})).name == "clerk_1"
    async with refused("database_error", "person_name_lower"):  # nor if somebody writes to the table
        await rows(office, "update mutirao.person set name = 'CLERK_2' where name = 'clerk_1'")


async def test_what_cannot_be_of_a_person_is_refused(office: Engine) -> None:
    await office.persons.add(None, "clerk_1")
    async with refused("name_taken", 'there is a person "clerk_1" already'):
        await office.persons.add(None, "clerk_1")
    async with refused("wrong_call", "something@somewhere"):
        await office.persons.add(None, "clerk_2", email="nowhere")
    async with refused("wrong_call", "full name"):
        await office.persons.add(None, "clerk_2", full_name="two\nlines")
    async with refused("unknown_role", 'the role "clark"'):
        await office.persons.add(None, "clerk_2", roles=["clark"])
    async with refused("unknown_person", 'did you mean "clerk_1"?'):
        await office.persons.get(None, "clerk1")
    async with refused("wrong_call", "name, full_name and email"):
        await office.persons.change(None, "clerk_1", {"id": 3})  # type: ignore[typeddict-unknown-key]
    assert [each.name for each in await office.persons.page(None)] == ["clerk_1"]


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**80])
async def test_a_number_that_nobody_can_have_is_nobodys(office: Engine, number: int) -> None:
    async with refused("unknown_person"):
        await office.persons.get(None, number)
    async with refused("unknown_person"):
        await office.persons.disable(None, number)
    async with refused("unknown_role"):
        await office.roles.get(None, number)
    async with refused("changed_meanwhile"):
        await office.roles.change(None, "clerk", {"name": "king"}, revision=number)


async def test_people_change_their_own_data_and_administrators_everybodys(office: Engine) -> None:
    clerk = await office.persons.add(None, "clerk_1")
    other = await office.persons.add(None, "clerk_2")
    head_clerk = await office.persons.add(None, "head_clerk", roles=["administrator"])
    changed = await office.persons.change(clerk.id, clerk.id, {"full_name": "A Clerk", "email": "a@example.org"})
    assert (changed.full_name, changed.email) == ("A Clerk", "a@example.org")
    await office.persons.away(clerk.id, clerk.id, Away(substitute="clerk_2"))
    async with refused("forbidden"):
        await office.persons.change(clerk.id, clerk.id, {"name": "king"})
    for actor, person in ((other.id, clerk.id), (clerk.id, head_clerk.id)):
        async with refused("forbidden"):
            await office.persons.change(actor, person, {"full_name": "Nobody"})
        async with refused("forbidden"):
            await office.persons.away(actor, person, None)
        async with refused("forbidden"):
            await office.persons.disable(actor, person)
        async with refused("forbidden"):
            await office.persons.enable(actor, person)
    async with refused("forbidden"):
        await office.persons.add(clerk.id, "friend")
    renamed = await office.persons.change(
        head_clerk.id, clerk.id, {"name": "clerk_3", "full_name": None, "email": None}
    )
    assert (renamed.name, renamed.full_name, renamed.email) == ("clerk_3", None, None)
    made = await office.persons.add(head_clerk.id, "clerk_4")
    assert made.made_by == "head_clerk"


async def test_email_and_load_are_seen_by_oneself_and_administrators(office: Engine) -> None:
    clerk = await office.persons.add(None, "clerk_1", full_name="A Clerk", email="a@example.org", roles=["clerk"])
    other = await office.persons.add(None, "clerk_2", email="b@example.org", roles=["clerk"])
    head_clerk = await office.persons.add(None, "head_clerk", roles=["administrator"])
    [job] = await add_requests(office)
    await select(office, clerk.id, job)
    seen = await office.persons.get(other.id, "clerk_1")
    assert (seen.name, seen.full_name, seen.roles) == ("clerk_1", "A Clerk", ["clerk"])
    assert (seen.email, seen.seen_at, seen.holds, seen.offered) == (None, None, None, None)
    for actor in (clerk.id, head_clerk.id, None):
        seen = await office.persons.get(actor, "clerk_1")
        assert (seen.email, seen.holds, seen.offered) == ("a@example.org", 1, 0)


async def test_persons_are_read_page_by_page_and_filtered(office: Engine) -> None:
    for number in range(5):
        await office.persons.add(None, f"clerk_{number}", full_name=f"Number {number}", roles=["clerk"])
    await office.persons.add(None, "head_clerk", roles=["administrator"])
    await office.persons.disable(None, "clerk_4")
    first = await office.persons.page(None, limit=3)
    rest = await office.persons.page(None, after=first[-1].name, limit=3)
    assert [each.name for each in first + rest] == [*(f"clerk_{number}" for number in range(5)), "head_clerk"]
    assert len(await office.persons.page(None, PersonFilter(role="clerk", is_disabled=False))) == 4
    assert [each.name for each in await office.persons.page(None, PersonFilter(search="BER 3"))] == ["clerk_3"]
    assert [each.name for each in await office.persons.page(None, PersonFilter(is_disabled=True))] == ["clerk_4"]


async def test_a_change_for_an_earlier_revision_tells_what_has_changed(office: Engine) -> None:
    seen = await office.persons.add(None, "clerk_1", roles=["clerk"])
    head_clerk = await office.persons.add(None, "head_clerk", roles=["administrator"])
    await office.persons.change(head_clerk.id, "clerk_1", {"email": "a@example.org"})
    await office.roles.put(None, "manager", ["clerk_1"])
    for attempt in (
        office.persons.change(None, "clerk_1", {"full_name": "Late"}, revision=seen.revision),
        office.persons.disable(None, "clerk_1", revision=seen.revision),
        office.persons.away(None, "clerk_1", Away(), revision=seen.revision),
    ):
        async with refused("changed_meanwhile", "email changed by head_clerk, roles changed by operator"):
            await attempt
    now = await office.persons.get(None, "clerk_1")
    assert (now.full_name, now.disabled_at, now.away_from) == (None, None, None)
    changed = await office.persons.change(None, "clerk_1", {"full_name": "In Time"}, revision=now.revision)
    assert changed.revision == now.revision + 1
    same = await office.persons.change(None, "clerk_1", {"full_name": "In Time"}, revision=changed.revision)
    assert same.revision == changed.revision


async def test_a_substitute_is_somebody_who_can_be(office: Engine) -> None:
    for name in ("clerk_1", "clerk_2", "clerk_3"):
        await office.persons.add(None, name)
    await office.persons.away(None, "clerk_1", Away(substitute="clerk_2"))
    await office.persons.away(None, "clerk_2", Away(substitute="clerk_3"))
    async with refused("wrong_substitute", "clerk_3 → clerk_1 → clerk_2 → clerk_3"):
        await office.persons.away(None, "clerk_3", Away(substitute="clerk_1"))
    async with refused("wrong_substitute", "clerk_3 → clerk_3"):
        await office.persons.away(None, "clerk_3", Away(substitute="clerk_3"))
    async with refused("unknown_person"):
        await office.persons.away(None, "clerk_3", Away(substitute=12345))
    async with refused("unknown_person"):
        await office.persons.away(None, "clerk_3", Away(substitute="nobody"))
    await office.persons.away(None, "clerk_1", None)
    await office.persons.disable(None, "clerk_1")
    async with refused("wrong_substitute", '"clerk_1" is disabled'):
        await office.persons.away(None, "clerk_3", Away(substitute="clerk_1"))
    async with refused("wrong_call", "cannot be back"):
        await office.persons.away(None, "clerk_3", Away(from_at=SOON, until_at=SOON))
    assert (await office.persons.get(None, "clerk_3")).away_from is None


async def test_a_substitute_does_the_work_of_whoever_is_away_and_no_longer(office: Engine) -> None:
    await office.persons.add(None, "clerk_1", roles=["clerk"])
    stand_in = await office.persons.add(None, "manager_1")
    now = await one(office, "select mutirao.now()")
    away = Away(now + timedelta(days=1), now + timedelta(days=2), "manager_1")
    said = await office.persons.away(None, "clerk_1", away)
    assert (said.away_from, said.away_until, said.substitute) == (away.from_at, away.until_at, "manager_1")
    job, later = await add_requests(office, number=2)
    async with refused("unknown_job"):
        await select(office, stand_in.id, job)
    await move(office, timedelta(days=1, minutes=1))
    await select(office, stand_in.id, job)
    await move(office, timedelta(days=1))
    async with refused("unknown_job"):
        await select(office, stand_in.id, later)


async def test_whoever_is_back_is_not_away(office: Engine) -> None:
    await office.persons.add(None, "clerk_1")
    away = await office.persons.away(None, "clerk_1", Away())
    assert away.away_from is not None
    back = await office.persons.away(None, "clerk_1", None)
    assert (back.away_from, back.away_until, back.substitute) == (None, None, None)
    assert back.revision == away.revision + 1


async def test_what_a_disabled_person_holds_goes_back_to_the_role(office: Engine) -> None:
    clerk = await office.persons.add(None, "clerk_1", roles=["clerk"])
    other = await office.persons.add(None, "clerk_2", roles=["clerk"])
    jobs = await add_requests(office, number=4)
    attempts = [await select(office, clerk.id, job) for job in jobs[:3]]
    await one(office, "select mutirao.delegate_item(%s, %s, %s)", clerk.id, jobs[2], clerk.id)  # offered to them alone
    disabled = await office.persons.disable(None, "clerk_1")
    assert (disabled.holds, disabled.offered) == (0, 0)
    assert disabled.disabled_at is not None
    found = await rows(office, "select status::text, person, offered_to, attempt from mutirao.job order by id")
    assert found == [("ready", None, None, None)] * 4
    returned = await rows(office, "select job, writer, note from mutirao.trace where kind = 'return' order by job")
    note = {"from": "clerk_1", "reason": "disabled"}
    assert returned == [(job, "operator", note) for job in jobs[:3]]
    async with refused("person_disabled"):
        await select(office, clerk.id, jobs[0])
    async with refused("person_disabled"):
        await one(office, "select outcome from mutirao.finish_item(%s, %s, %s)", clerk.id, jobs[0], attempts[0])
    await select(office, other.id, jobs[0])
    await office.persons.enable(None, "clerk_1")
    await select(office, clerk.id, jobs[1])


@pytest.mark.parametrize("end", ["disabled", "out of the role"])
async def test_what_is_offered_to_whoever_leaves_goes_back_also_while_it_is_interrupted(
    office: Engine, end: str
) -> None:
    clerk = await office.persons.add(None, "clerk_1", roles=["clerk"])
    other = await office.persons.add(None, "clerk_2", roles=["clerk"])
    head_clerk = await office.persons.add(None, "head_clerk", roles=["administrator"])
    [job] = await add_requests(office)
    instance = (await office.job(job)).instance
    await office.worklists.delegate(head_clerk.id, job, clerk.id)
    await office.suspend(instance)
    if end == "disabled":
        await office.persons.disable(None, "clerk_1")
    else:
        await office.roles.take(None, "clerk", ["clerk_1"])
    await office.resume(instance)
    assert [each.job for each in (await office.worklists.page(other.id)).items] == [job]


async def test_an_item_selected_while_its_person_is_disabled_is_given_back_by_a_clock(office: Engine) -> None:
    clerk = await office.persons.add(None, "clerk_1", roles=["clerk"])
    [job] = await add_requests(office)
    await select(office, clerk.id, job)
    # As it is when the selection commits after the disabling looked.
    await rows(office, "update mutirao.person set disabled_at = mutirao.now() where id = %s returning id", clerk.id)
    assert await one(office, "select (done ->> 'access')::int from mutirao.turn_clock(duty => 'access')") == 1
    assert (await office.job(job)).status == "ready"


async def test_the_last_enabled_administrator_stays(office: Engine) -> None:
    await office.persons.add(None, "head_clerk", roles=["administrator"])
    for attempt in (
        office.persons.disable(None, "head_clerk"),
        office.roles.take(None, "administrator", ["head_clerk"]),
    ):
        async with refused("last_administrator"):
            await attempt
    await office.persons.add(None, "deputy", roles=["administrator"])
    await office.persons.disable(None, "deputy")
    async with refused("last_administrator"):
        await office.persons.disable(None, "head_clerk")
    await office.persons.enable(None, "deputy")
    await office.persons.disable(None, "head_clerk")
    assert (await office.persons.get(None, "head_clerk")).disabled_at is not None

"""Deadlines: reminders, the move to the person in charge, more time; and what is told when nobody looked for a while."""

from datetime import timedelta
from typing import Any

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from staff import Office, furnish, offer

REMINDED = ("deadline", "transferred")
BOTH = [("clerk_1", "deadline"), ("manager", "deadline")]


@pytest.fixture(name="office")
async def office_of(engine: Engine) -> Office:
    return await furnish(engine)


async def begin(office: Office, **deadline: float) -> tuple[int, int]:
    """An instance with one item for clerks, to be done within that time; and the number of the item."""
    await office.engine.apply(
        "claim",
        {"approved": False},
        {"approve": {"when": "not approved", "offer": offer(timedelta(**deadline)), "outputs": ["approved"]}},
        final="approved",
        creator="manager",
    )
    instance = await office.create("claim")
    await office.heard()
    return instance, await office.engine.job(instance, "approve")


async def at_each(office: Office, *hours: float) -> dict[float, list[tuple[str, str]]]:
    """Who is told what when so many hours are left, of the deadline that there is."""
    told = {}
    for left in hours:
        ((seconds,),) = await office.engine.rows(
            "select extract(epoch from finish_by - mutirao.now())::float8 from mutirao.job where finish_by is not null"
        )
        await office.engine.advance(seconds=seconds - left * 3600 + 0.01)
        await office.tick()
        told[left] = await office.heard(*REMINDED)
    return told


async def holder(office: Office, job: int) -> tuple[str | None, str | None, bool]:
    """Who holds an item, who alone is offered it, and whether it has moved."""
    ((held, offered, moved),) = await office.engine.rows(
        "select p.name, o.name, coalesce(j.transferred, false) from mutirao.job j left join mutirao.person p on p.id = j.person"
        " left join mutirao.person o on o.id = j.offered_to where j.id = %s",
        job,
    )
    return held, offered, moved


# ------------------------------------------------------------------------------------------------------------ reminders


async def test_an_item_of_two_days_is_reminded_of_four_times_and_moves_a_day_before(office: Office) -> None:
    _, item = await begin(office, hours=48)
    await office.select("clerk_1", item)
    moved = [("clerk_1", "transferred"), ("manager", "transferred")]
    own = [("manager", "deadline")]
    told = await at_each(office, 47, 24.1, 24, 23, 12, 6, 1, 0.5, 0, -5)
    assert told == {47: [], 24.1: [], 24: moved, 23: [], 12: own, 6: own, 1: own, 0.5: [], 0: own, -5: []}
    assert await office.engine.one("select alert_at from mutirao.job where id = %s", item) is None


async def test_an_item_of_three_days_is_reminded_of_before_it_moves(office: Office) -> None:
    _, item = await begin(office, days=3)
    await office.select("clerk_1", item)
    told = await at_each(office, 48, 24)
    assert told == {48: BOTH, 24: [("clerk_1", "transferred"), ("manager", "transferred")]}


async def test_an_item_that_nobody_holds_is_told_of_to_the_person_in_charge_alone(office: Office) -> None:
    await begin(office, days=3)
    assert await at_each(office, 48, 24) == {48: [("manager", "deadline")], 24: [("manager", "transferred")]}


async def test_an_item_that_is_offered_to_one_is_told_of_to_that_one(office: Office) -> None:
    _, item = await begin(office, days=3)
    await office.delegate("manager", item, "clerk_2")
    await office.heard()
    assert await at_each(office, 48) == {48: [("clerk_2", "deadline"), ("manager", "deadline")]}


@pytest.mark.parametrize(
    ("deadline", "told_at", "moves_at"),
    [
        ({"hours": 12}, [6, 1, 0], 6),
        ({"hours": 24}, [12, 6, 1, 0], 12),  # a reminder that is not smaller than the whole deadline is none
        ({"hours": 6}, [1, 0], 1),
        ({"hours": 1}, [0], 0),
        ({"minutes": 30}, [0], 0),
        ({"minutes": 2}, [0], 0),
        ({"days": 30}, [48, 24, 12, 6, 1, 0], 24),
    ],
)
async def test_where_the_transfer_value_is_skipped_the_largest_that_remains_counts(
    office: Office, deadline: dict[str, float], told_at: list[float], moves_at: float
) -> None:
    _, item = await begin(office, **deadline)
    await office.select("clerk_1", item)
    hours = timedelta(**deadline).total_seconds() / 3600
    moments = [left for left in (48, 24, 12, 6, 1, 0) if left < hours]
    told = await at_each(office, *moments)
    assert [left for left in moments if told[left]] == told_at
    assert [left for left in moments if ("clerk_1", "transferred") in told[left]] == [moves_at]


async def test_words_say_which_task_and_how_long(office: Office) -> None:
    instance, item = await begin(office, days=3)
    await office.select("clerk_1", item)
    await office.engine.advance(hours=24)
    await office.tick()
    [told] = await office.messages("clerk_1")
    assert told.text.startswith(f"Task approve of instance {instance}, claim, is to be done within 48 h, by 2")
    assert told.sender == str(instance)
    assert (told.note["seconds_left"], told.note["holder"]) == (pytest.approx(48 * 3600, abs=60), "clerk_1")
    await office.engine.advance(hours=24)
    await office.tick()
    assert 'it was taken from you and went to "manager".' in (await office.messages("clerk_1"))[-1].text
    assert 'it is yours now, taken from "clerk_1".' in (await office.messages("manager"))[-1].text
    await office.engine.advance(hours=24)
    await office.tick()
    assert "cancel the instance, delegate or skip the task, or give it more time" in (await office.messages())[-1].text


async def test_an_item_without_a_deadline_is_never_told_of(office: Office) -> None:
    await office.engine.apply(
        "calm", {"a": 0}, {"do": {"when": "a = 0", "offer": offer()}}, final="a = 1", creator="manager"
    )
    await office.create("calm")
    await office.heard()
    await office.engine.advance(days=1000)
    assert (await office.tick(), await office.heard()) == (0, [])


@pytest.mark.parametrize("is_brought_forward", [False, True])
async def test_a_deadline_counts_from_when_the_item_is_ready(office: Office, is_brought_forward: bool) -> None:
    attributes = {"a": 0, "at": {"type": "timestamp"}}
    tasks = {"do": {"when": "a = 0", "wait": "at", "offer": offer(timedelta(hours=48))}}
    await office.engine.apply("later", attributes, tasks, final="a = 1", creator="manager")
    start = await office.engine.one("select mutirao.now()")
    instance = await office.create("later", at=(start + timedelta(days=5)).isoformat())
    assert await office.engine.rows("select from mutirao.job where finish_by is not null") == []
    if is_brought_forward:
        await office.engine.set(instance, at=start.isoformat())
    else:
        await office.engine.advance(days=5, seconds=1)
        await office.tick("retries")
    await office.heard()
    assert await at_each(office, 25, 24) == {25: [], 24: [("manager", "transferred")]}


# ------------------------------------------------------------------------------------------------------------- the move


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
    assert await at_each(office, 24) == {24: [("admin", "transferred"), ("deputy", "transferred")]}
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


# --------------------------------------------------------------------------------------------- nobody looked for a while


async def test_a_clock_that_was_down_for_days_tells_once_and_still_moves(office: Office) -> None:
    _, item = await begin(office, hours=48)
    await office.select("clerk_1", item)
    await office.engine.advance(days=4)
    assert await office.tick() == 1
    assert await office.heard(*REMINDED) == [("clerk_1", "transferred"), ("manager", "transferred")]
    assert await holder(office, item) == (None, "manager", True)
    assert (await office.tick(), await office.heard()) == (0, [])


async def test_nothing_is_told_while_interrupted_and_only_the_latest_after_it(office: Office) -> None:
    instance, item = await begin(office, days=3)
    attempt = await office.select("clerk_1", item)
    await office.engine.suspend(instance)
    assert await at_each(office, 48, 24, 12) == {48: [], 24: [], 12: []}
    assert await holder(office, item) == ("clerk_1", None, False)
    await office.engine.resume(instance)
    await office.tick()
    assert await office.heard(*REMINDED) == [("clerk_1", "transferred"), ("manager", "transferred")]
    assert await office.finish("clerk_1", item, attempt, approved=True) == "item_moved"
    assert await at_each(office, 6) == {6: [("manager", "deadline")]}


async def test_an_interrupted_item_that_nobody_held_goes_on_where_it_was(office: Office) -> None:
    instance, _ = await begin(office, days=3)
    await office.engine.suspend(instance)
    await office.engine.advance(hours=25)
    assert (await office.tick(), await office.heard()) == (1, [])
    await office.engine.resume(instance)
    assert await at_each(office, 46, 24) == {46: [("manager", "deadline")], 24: [("manager", "transferred")]}


async def test_of_a_cancelled_failed_or_parked_item_nothing_is_told(office: Office) -> None:
    instance, item = await begin(office, hours=48)
    attempt = await office.select("clerk_1", item)
    await office.engine.cancel(instance)
    failed = await office.create("claim")
    other = await office.engine.job(failed, "approve")
    await office.finish("clerk_2", other, await office.select("clerk_2", other), error="no")
    await office.heard()
    await office.engine.advance(days=9)
    await office.tick()
    assert await office.heard() == []
    assert await office.finish("clerk_1", item, attempt, approved=True) == "done"
    assert await office.engine.status(instance) == "closed.aborted"


async def test_many_items_go_by_the_room_of_a_clock(office: Office) -> None:
    await begin(office, hours=48)
    for _ in range(6):
        await office.create("claim")
    await office.heard()
    await office.engine.advance(hours=25)
    done = [
        await office.engine.one("select (done ->> 'deadlines')::int from mutirao.turn_clock(3, 'deadlines')")
        for _ in range(4)
    ]
    assert done == [3, 3, 1, 0]
    assert await office.heard() == [("manager", "transferred")] * 7


# ------------------------------------------------------------------------------------------------------------ more time


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


# ------------------------------------------------------------------------------------------------------------- settings


async def test_new_reminders_hold_for_open_items(office: Office) -> None:
    _, item = await begin(office, days=3)
    await office.select("clerk_1", item)
    await office.remind("admin", [60, 0.5], 0.5)
    await office.tick()
    assert await at_each(office, 60, 48, 24, 1, 0.5) == {
        60: BOTH, 48: [], 24: [], 1: [], 0.5: [("clerk_1", "transferred"), ("manager", "transferred")],
    }  # fmt: skip


async def test_a_new_transfer_value_that_has_passed_moves_the_item_at_once(office: Office) -> None:
    _, item = await begin(office, days=3)
    await office.select("clerk_1", item)
    assert await at_each(office, 30) == {30: BOTH}
    await office.remind("admin", [36, 24], 36)
    await office.tick()
    assert await office.heard(*REMINDED) == [("clerk_1", "transferred"), ("manager", "transferred")]


async def test_items_in_somebodys_hands_follow_new_reminders_later(office: Office) -> None:
    _, item = await begin(office, days=3)
    async with await AsyncConnection.connect(office.engine.url) as session:
        await session.execute("select from mutirao.job where id = %s for update", [item])
        await office.remind("admin", [71], 71)
        assert await office.tick() == 0
    assert await office.tick() == 1
    assert await office.engine.rows("select from mutirao.realert") == []
    assert await at_each(office, 71) == {71: [("manager", "transferred")]}


@pytest.mark.parametrize(
    ("person", "reminders", "code", "says"),
    [
        ("clerk_1", ([24], 24), "forbidden", "only an administrator"),
        ("admin", ([24], 12), "wrong_call", "at one of the reminders, [24], or at 0"),
        ("admin", ([-1], 0), "wrong_call", "each from 0.01 to 8760"),
        ("admin", ([0], 0), "wrong_call", "each from 0.01 to 8760"),
        ("admin", (list(range(1, 30)), 1), "wrong_call", "up to twenty"),
        ("admin", ([9000], 9000), "wrong_call", "each from 0.01 to 8760"),
    ],
)
async def test_reminders_that_cannot_be_are_refused(
    office: Office, person: str, reminders: tuple[list[float], float], code: str, says: str
) -> None:
    async with office.engine.refused(code, says):
        await office.remind(person, *reminders)


async def test_settings_are_set_together_and_recorded(office: Office) -> None:
    await office.remind("admin", [], 0)
    rows = await office.engine.rows("select name, before, after, writer from mutirao.setting_change order by name")
    assert [(name, before, after) for name, before, after, _ in rows] == [
        ("reminders", [48, 24, 12, 6, 1], []),
        ("transfer", 24, 0),
    ]
    assert all("admin" in writer for *_, writer in rows)
    async with office.engine.refused("unknown_setting", "those there are: "):
        await office.engine.rows("select mutirao.set_settings(%s, '{\"colour\": 1}')", office.numbers["admin"])

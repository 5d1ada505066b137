"""Deadlines: what is told, to whom and when; and what is told when nobody looked for a while."""

from datetime import timedelta

import pytest
from claims import BOTH, REMINDED, at_each, begin, holder
from driver import fresh_engine  # noqa: F401 gives the fixture `engine`
from staff import Office, furnished_office, offer  # noqa: F401 gives the fixture `office`


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

"""What a worklist shows: its orders, pages, filters and numbers; one item in full; and the next one to do."""

import asyncio
import base64
import json
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from desk import HOUR, Desk, fresh_desk  # noqa: F401 gives the fixture `desk`
from office import move, one, refused, rows
from psycopg import AsyncConnection

from mutirao.database.charge import Creation
from mutirao.database.item import ItemFilter, Sort
from mutirao.model import Attribute, Definition, Offer, Task


def letters(**how: Any) -> Task:
    return Task(name="answer", when="answer is null", offer=Offer(role="clerk", **how), outputs=("answer",))


async def in_variety(desk: Desk) -> list[int]:
    """Items that differ in priority, deadline and size, so that no two orders agree."""
    await desk.put_letters(letters())
    await desk.put_letters(letters(deadline=HOUR * 3), name="urgent")
    await desk.put_letters(letters(deadline=HOUR * 100), name="later")
    made = []
    for flow, priority, topic in (
        ("letter", 0, "tax"), ("later", 5, "a very long topic"), ("urgent", -1, "x"), ("letter", 5, "tax and more"),
        ("urgent", 0, "roads"), ("later", 0, ""), ("letter", 0, "xx"),
    ):  # fmt: skip
        new = Creation(flow=flow, state={"topic": topic, "pages": 1}, priority=priority)
        made.append(await desk.item_of(await desk.engine.charges.create(desk.manager, new)))
        await move(desk.engine, timedelta(minutes=1))
    return made


def key_of(sort: Sort, item: Any) -> Any:
    match sort:
        case "priority":
            return (-item.priority, item.job)
        case "deadline":
            return (item.finish_by is None, item.finish_by, item.job)
        case "size":
            return (item.size, item.job)
    return item.job


@pytest.mark.parametrize("sort", ["arrival", "priority", "deadline", "size", "hand"])
async def test_every_order_rises_and_falls_and_goes_page_by_page(desk: Desk, sort: Sort) -> None:
    made = await in_variety(desk)
    clerk = desk.clerks[0]
    await desk.engine.worklists.select(clerk, made[3])
    await desk.engine.worklists.delegate(desk.manager, made[4], clerk)
    items = (await desk.engine.worklists.page(clerk, ItemFilter(sort=sort))).items
    assert sorted(each.job for each in items) == made
    keys = [key_of(sort, each) for each in items]
    assert all(first < second for first, second in pairwise(keys))
    wanted = [each.job for each in items]
    for size in (1, 2, 3, 7, 8):
        assert await desk.seen(clerk, ItemFilter(sort=sort), limit=size) == wanted
        assert await desk.seen(clerk, ItemFilter(sort=sort, descending=True), limit=size) == wanted[::-1]


async def test_a_page_goes_on_where_the_last_one_ended_whatever_comes_and_goes(desk: Desk) -> None:
    await desk.put_letters()
    made = await desk.items(6)
    clerk, other, _ = desk.clerks
    first = await desk.engine.worklists.page(clerk, limit=2)
    for gone in made[1:3]:  # also the one at which the page ended
        await desk.engine.worklists.select(other, gone)
    new = await desk.item()
    second = await desk.engine.worklists.page(clerk, after=first.next, limit=2)
    third = await desk.engine.worklists.page(clerk, after=second.next, limit=2)
    assert [[each.job for each in page.items] for page in (first, second, third)] == [
        made[:2],
        made[3:5],
        [made[5], new],
    ]


@pytest.mark.parametrize("after", ["", "nonsense", "WzFd", "bm90IGpzb24", "é", "W10"])
async def test_a_cursor_that_is_none_is_refused(desk: Desk, after: str) -> None:
    await desk.put_letters()
    await desk.items(2)
    page = await desk.engine.worklists.page(desk.clerks[0], limit=1)
    if after:
        async with refused("wrong_call", "a page goes on after the cursor"):
            await desk.engine.worklists.page(desk.clerks[0], after=after)
    async with refused("wrong_call", "in the same order"):
        await desk.engine.worklists.page(desk.clerks[0], ItemFilter(sort="size"), after=page.next)


async def test_filters_choose(desk: Desk) -> None:
    made = await in_variety(desk)
    clerk = desk.clerks[0]
    await desk.engine.worklists.select(clerk, made[0])

    async def chosen(**asked: Any) -> list[int]:
        return await desk.seen(clerk, ItemFilter(**asked))

    instance = (await desk.engine.job(made[2])).instance
    assert await chosen(status="running") == [made[0]]
    assert await chosen(status="ready") == made[1:]
    assert await chosen(flow="urgent") == [made[2], made[4]]
    assert await chosen(task="answer") == made
    assert await chosen(role="clerk") == made
    assert await chosen(role="manager") == []
    assert await chosen(instance=instance) == [made[2]]
    assert await chosen(priority=5) == [made[1], made[3]]
    assert await chosen(overdue=True) == []
    due = (await desk.engine.worklists.show(clerk, made[4])).item.finish_by
    assert await chosen(due_before=due) == [made[2]]
    await move(desk.engine, HOUR * 4)
    assert await chosen(overdue=True) == [made[2], made[4]]
    assert await chosen(overdue=True, flow="later") == []
    assert await chosen(attributes={"topic": "tax"}) == [made[0]]
    assert await chosen(attributes={"topic": "tax"}, flow="urgent") == []
    assert await chosen(text="URG") == [made[2], made[4]]
    assert await chosen(text=str(instance)) == [made[2]]
    assert await chosen(text="100%") == []
    assert await chosen(text="e_t") == []


async def test_text_is_found_in_names_descriptions_and_keys(desk: Desk) -> None:
    task = Task(
        name="answer", when="answer is null", offer=Offer(role="clerk"), description="Reply within 100% of a day"
    )
    await desk.put_letters(task, description="Post from citizens")
    new = Creation(flow="letter", key="file_7/2026")
    job = await desk.item_of(await desk.engine.charges.create(desk.manager, new))
    for text in ("answer", "REPLY", "100%", "citizens", "letter", "file_7", "FILE_7/2", " FILE_7/2026 "):
        assert await desk.seen(desk.clerks[0], ItemFilter(text=text)) == [job], text
    for text in ("file-7", "7/2026", "nothing", "%x", "\\", "'", '"'):
        assert await desk.seen(desk.clerks[0], ItemFilter(text=text)) == [], text
    [shown] = (await desk.engine.worklists.page(desk.clerks[0])).items
    assert (shown.key, shown.description, shown.flow, shown.task) == (
        "file_7/2026",
        task.description,
        "letter",
        "answer",
    )


async def test_keys_that_begin_alike_are_found_however_many_they_are(desk: Desk) -> None:
    await desk.put_letters()
    keys = [f"File {n}" for n in range(1100)]
    await desk.engine.start_named("letter", [{}] * 1101, keys=[*keys, "other"])
    assert len(await desk.seen(desk.clerks[0], ItemFilter(text="file"), limit=1000)) == 1100
    assert len(await desk.seen(desk.clerks[0], ItemFilter(text="file 10"))) == 111


async def test_only_searchable_attributes_are_searched_also_where_many_have_the_value(desk: Desk) -> None:
    await desk.put_letters()
    long = "x" * 300
    await desk.engine.start_named(
        "letter", [{"topic": "common"}] * 1100 + [{"topic": long}, {"topic": long[:-1] + "y"}]
    )
    clerk = desk.clerks[0]
    assert len(await desk.seen(clerk, ItemFilter(attributes={"topic": "common"}), limit=500)) == 1100
    assert len(await desk.seen(clerk, ItemFilter(attributes={"topic": long}))) == 1
    assert await desk.seen(clerk, ItemFilter(attributes={"topic": "rare"})) == []
    async with refused("not_searchable", 'flow "letter" has topic'):
        await desk.engine.worklists.page(clerk, ItemFilter(flow="letter", attributes={"pages": 3}))
    async with refused("not_searchable", "no flow declares it searchable"):
        await desk.engine.worklists.page(clerk, ItemFilter(attributes={"color": "red"}))


@pytest.mark.parametrize("others", [0, 1100], ids=["few", "many"])
async def test_a_number_is_found_however_it_is_written(desk: Desk, others: int) -> None:
    """And a text is a text."""
    attributes = (Attribute("amount", "number", searchable=True), Attribute("code", "text", searchable=True))
    tasks = (Task(name="pay", when="true", fires="once", offer=Offer(role="clerk")),)
    await desk.engine.apply(Definition(name="bill", attributes=attributes, tasks=tasks, creator="manager"))
    text = Attribute("amount", "text", searchable=True)
    await desk.engine.apply(Definition(name="quote", attributes=(text,), tasks=tasks, creator="manager"))
    other = await desk.item("quote", amount="3.0")
    await desk.engine.start_named("bill", [{"amount": 3, "code": "3.0"}] * others)
    one = await desk.item("bill", amount=Decimal("3.00"), code="3.0")
    clerk = desk.clerks[0]
    for asked in (3, 3.0, "3", "3.0", "+3.000", "30e-1"):
        found = await desk.seen(clerk, ItemFilter(flow="bill", attributes={"amount": asked}), limit=1000)
        assert (len(found), one in found) == (others + 1, True)
        instances = await desk.engine.instances("bill", where=("amount", str(asked)), limit=2000)
        assert len(instances) == others + 1
    assert await desk.seen(clerk, ItemFilter(flow="bill", attributes={"amount": "3.01"})) == []
    assert await desk.seen(clerk, ItemFilter(flow="bill", attributes={"code": "3"})) == []
    assert await desk.engine.instances("bill", where=("code", "3")) == []
    in_both = await desk.seen(clerk, ItemFilter(attributes={"amount": "3.0"}), limit=1000)
    assert (len(in_both), other in in_both) == (others + 2, True)
    assert other not in await desk.seen(clerk, ItemFilter(attributes={"amount": "3"}), limit=1000)


async def test_files_are_not_searched(desk: Desk) -> None:
    attributes = (Attribute("plan", "file"), Attribute("topic", "text", searchable=True))
    tasks = (Task(name="draw", when="true", fires="once", offer=Offer(role="clerk")),)
    await desk.engine.apply(Definition(name="house", attributes=attributes, tasks=tasks))
    async with refused("not_searchable", 'flow "house" has topic'):
        await desk.engine.worklists.page(desk.clerks[0], ItemFilter(flow="house", attributes={"plan": "a"}))
    async with refused("not_searchable", "those that are: topic"):
        await desk.engine.instances("house", where=("plan", "a"))


async def test_a_filter_that_asks_nothing_chooses_nothing(desk: Desk) -> None:
    """A term that everything meets still costs an index its use."""
    read = "select jsonb_strip_nulls(to_jsonb(mutirao.read_item_filter('{}')))"
    assert await one(desk.engine, read) == {"sort": "arrival", "descending": False, "status": "all"}


@pytest.mark.parametrize(("priority", "shown"), [(-(2**63), 1), (0, 1), (1, 0), (2**63 - 1, 0)])
async def test_no_priority_is_out_of_range(desk: Desk, priority: int, shown: int) -> None:
    await desk.put_letters()
    await desk.item()
    assert len(await desk.seen(desk.clerks[0], ItemFilter(priority=priority))) == shown


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ('{"sort": "shape"}', "wrong_call"),
        ('{"status": "held"}', "wrong_call"),
        ('{"colour": 1}', "wrong_call"),
        ('{"priority": "high"}', "wrong_call"),
        ('{"priority": 1.5}', "wrong_call"),
        ('{"instance": 1e30}', "wrong_call"),
        ('{"due_before": "soon"}', "wrong_call"),
        ('{"attributes": {"topic": {}}}', "wrong_call"),
        ('{"attributes": []}', "wrong_call"),
        ("[]", "wrong_call"),
        ("null", "wrong_call"),
        ('{"flow": "leter"}', "unknown_flow"),
        ('{"task": "nothing"}', "unknown_task"),
        ('{"role": "nobody"}', "unknown_role"),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused(desk: Desk, given: str, code: str) -> None:
    await desk.put_letters()
    for call in ("worklist(%s, %s::jsonb)", "claim_next(%s, %s::jsonb)"):
        async with refused(code):
            await rows(desk.engine, f"select * from mutirao.{call}", desk.clerks[0], given)


async def test_a_page_has_a_size(desk: Desk) -> None:
    for size in (0, -1, 1001):
        async with refused("wrong_call", "a page has 1 to 1000 items"):
            await desk.engine.worklists.page(desk.clerks[0], limit=size)


async def test_the_list_counts_by_role_and_flow(desk: Desk) -> None:
    made = await in_variety(desk)
    clerk, other, _ = desk.clerks
    await desk.engine.worklists.select(clerk, made[0])
    await desk.engine.worklists.select(other, made[1])
    await desk.engine.worklists.insert(desk.manager, made[2], clerk)  # seen for two reasons, counted once
    await desk.engine.worklists.remove(desk.manager, made[6], clerk)
    await move(desk.engine, HOUR * 4)
    found = [
        (each.role, each.flow, each.ready, each.running, each.overdue)
        for each in await desk.engine.worklists.counts(clerk)
    ]
    assert found == [("clerk", "later", 1, 0, 0), ("clerk", "letter", 1, 1, 0), ("clerk", "urgent", 2, 0, 2)]


async def test_whoever_joins_a_role_later_gets_what_is_still_open(desk: Desk) -> None:
    await desk.put_letters()
    first, second = await desk.items(2)
    await desk.engine.worklists.select(desk.clerks[0], first)
    late = (await desk.engine.persons.add(None, "clerk_9", roles=["clerk"])).id
    assert await desk.seen(late) == [second]
    await desk.engine.roles.take(None, "clerk", [late])
    assert await desk.seen(late) == []


async def test_an_item_in_full(desk: Desk) -> None:
    task = Task(
        name="answer", when="answer is null", description="Reply", inputs=("topic", "pages"), outputs=("answer",),
        offer=Offer(role="clerk", kind="semi_automatic", deadline=HOUR * 30), application="editor",
    )  # fmt: skip
    await desk.put_letters(task)
    instance = await desk.letter(topic="tax", pages=3)
    job = await desk.item_of(instance)
    clerk, other, _ = desk.clerks
    attempt = await desk.engine.worklists.select(clerk, job)
    await desk.engine.worklists.comment(clerk, "who signs this?", job=job)
    view = await desk.engine.worklists.show(clerk, job)
    assert (view.item.holder, view.item.attempt, view.item.comments, view.item.size) == ("clerk_1", attempt, 1, 4)
    assert (view.item.kind, view.item.application, view.item.description) == ("semi_automatic", "editor", "Reply")
    assert view.inputs == {"topic": "tax", "pages": 3}
    assert [(each.name, each.type, each.required) for each in view.outputs] == [("answer", "text", False)]
    assert view.in_charge == "manager"
    assert [(each.author, each.text) for each in view.comments] == [("clerk_1", "who signs this?")]
    assert [(each.kind, each.writer) for each in view.story] == [("select", "clerk_1")]
    due = view.item.finish_by
    assert due is not None
    assert [(due - each) // HOUR for each in view.reminders] == [24, 12, 6, 1]
    await move(desk.engine, HOUR * 20)
    seen_by_other = await desk.engine.worklists.show(other, job)
    assert seen_by_other.item.attempt is None
    assert [(due - each) // HOUR for each in seen_by_other.reminders] == [6, 1]
    await desk.engine.charges.set(desk.manager, instance, {"pages": 9})
    assert (await desk.engine.worklists.show(clerk, job)).inputs["pages"] == 9


@pytest.mark.parametrize(
    ("sort", "parts"),
    [("arrival", ["arrival", "x", "1", 2]), ("hand", ["hand", False, "NaN", 2]), ("hand", ["hand", False, "1e30", 2])],
)
async def test_a_cursor_made_by_hand_is_refused_in_our_words(desk: Desk, sort: Sort, parts: list[object]) -> None:
    await desk.put_letters()
    after = base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")
    async with refused("wrong_call", "a page goes on after the cursor"):
        await desk.engine.worklists.page(desk.clerks[0], ItemFilter(sort=sort), after=after)


async def test_who_asks_for_an_item_to_take_along_locks_none_that_stays(desk: Desk) -> None:
    await desk.put_letters()
    made = await desk.items(5)
    first, second, _ = desk.clerks
    async with desk.engine.together():
        assert await desk.engine.worklists.next(first, lock=True) is None
        async with await AsyncConnection.connect(desk.engine.url) as other:
            found = await other.execute("select job from mutirao.claim_next(%s)", [second])
            assert await found.fetchone() == (made[0],)


async def test_the_next_item_is_taken_in_the_order_asked_for(desk: Desk) -> None:
    made = await in_variety(desk)
    clerk = desk.clerks[0]
    taken = await desk.engine.worklists.next(clerk, ItemFilter(sort="deadline"))
    assert taken is not None
    assert (taken.job, (await desk.engine.worklists.show(clerk, taken.job)).item.attempt) == (made[2], taken.attempt)
    again = await desk.engine.worklists.next(clerk, ItemFilter(sort="priority", descending=True))
    assert again is not None
    assert again.job == made[6]  # the lowest has been taken, and of the equal ones it came last
    only = [await desk.engine.worklists.next(clerk, ItemFilter(flow="urgent")) for _ in range(2)]
    assert [each and each.job for each in only] == [made[4], None]
    assert await desk.engine.worklists.next(desk.manager) is None
    assert await desk.engine.worklists.next(clerk, ItemFilter(flow="letter"), lock=True) is None


async def test_as_many_as_ask_at_once_get_different_items(desk: Desk) -> None:
    await desk.put_letters()
    await desk.engine.start_named("letter", [{}] * 40)
    taken = await asyncio.gather(*(desk.engine.worklists.next(desk.clerks[n % 3]) for n in range(45)))
    got = [each.job for each in taken if each is not None]
    assert (len(got), len(set(got))) == (40, 40)


async def test_what_is_being_taken_is_passed_over(desk: Desk) -> None:
    await desk.put_letters()
    first, second = await desk.items(2)
    async with desk.engine.connection() as other, other.transaction():
        await other.execute("select mutirao.select_item(%s, %s)", [desk.clerks[0], first])
        taken = await asyncio.wait_for(desk.engine.worklists.next(desk.clerks[1]), 10)
        assert taken is not None
        assert taken.job == second
        assert await asyncio.wait_for(desk.engine.worklists.next(desk.clerks[1]), 10) is None


async def test_a_watched_item_is_the_next_only_when_its_instance_is_free(desk: Desk) -> None:
    """Somebody waits for it to run, so taking it writes its instance."""
    attributes = (Attribute("seen", "text"),)
    read = Task(name="read", when="true", fires="once", offer=Offer(role="clerk"))
    note = Task(name="note", when="task_read = 'running'", fires="once", offer=Offer(role="manager"))
    await desk.engine.apply(
        Definition(name="watched", attributes=attributes, tasks=(read, note), ends="quiet", creator="manager")
    )
    busy, free = [await desk.letter("watched") for _ in range(2)]
    async with desk.engine.connection() as other, other.transaction():
        await other.execute("select from mutirao.instance where id = %s for no key update", [busy])
        taken = await asyncio.wait_for(desk.engine.worklists.next(desk.clerks[0]), 10)
        assert taken is not None
        assert taken.job == await desk.item_of(free, "read")
    assert await desk.seen(desk.manager) == [await desk.item_of(free, "note")]


# ------------------------------------------------------------------------------------------------------------- by hand


async def test_items_are_moved_by_hand_in_ones_own_list_alone(desk: Desk) -> None:
    await desk.put_letters()
    a, b, c, d, e = await desk.items(5)
    clerk, other, _ = desk.clerks
    by_hand = ItemFilter(sort="hand")
    lists = desk.engine.worklists
    await lists.move(clerk, e, before=b)
    assert await desk.seen(clerk, by_hand) == [a, e, b, c, d]
    await lists.move(clerk, a, after=c)
    assert await desk.seen(clerk, by_hand) == [e, b, c, a, d]
    await lists.move(clerk, d, before=e)
    await lists.move(clerk, e, after=a)
    assert await desk.seen(clerk, by_hand) == [d, b, c, a, e]
    await lists.exchange(clerk, d, e)
    assert await desk.seen(clerk, by_hand) == [e, b, c, a, d]
    assert await desk.seen(clerk, by_hand, limit=2) == [e, b, c, a, d]
    assert await desk.seen(clerk, ItemFilter(sort="hand", descending=True), limit=2) == [d, a, c, b, e]
    assert await desk.seen(other, by_hand) == [a, b, c, d, e]
    assert await desk.seen(clerk) == [a, b, c, d, e]
    await lists.select(clerk, c)
    await lists.select(other, b)
    new = await desk.item()
    assert await desk.seen(clerk, by_hand) == [e, c, a, d, new]
    assert await desk.seen(clerk, ItemFilter(sort="hand", status="running")) == [c]
    assert await desk.seen(clerk, ItemFilter(sort="hand", status="ready")) == [e, a, d, new]
    await lists.give_back(other, b)
    assert await desk.seen(clerk, by_hand) == [e, b, c, a, d, new]


async def test_between_two_items_there_is_always_room(desk: Desk) -> None:
    await desk.put_letters()
    made = await desk.items(4)
    clerk = desk.clerks[0]
    order = list(made)
    for n in range(120):
        moving, anchor = (order[2], order[1]) if n % 2 else (order[1], order[2])
        await desk.engine.worklists.move(clerk, moving, **({"before": anchor} if n % 2 else {"after": anchor}))
        order[1], order[2] = order[2], order[1]
    assert await desk.seen(clerk, ItemFilter(sort="hand")) == order
    assert await one(desk.engine, "select max(scale(rank)) from mutirao.place") <= 80


async def test_a_move_that_makes_no_sense_is_refused(desk: Desk) -> None:
    await desk.put_letters()
    a, b = await desk.items(2)
    clerk, other, _ = desk.clerks
    for where in ({}, {"before": a, "after": b}, {"before": a}):
        async with refused("wrong_call", "name one of the two"):
            await desk.engine.worklists.move(clerk, a, **where)
    await desk.engine.worklists.select(other, b)
    for act in (desk.engine.worklists.move(clerk, a, before=b), desk.engine.worklists.exchange(clerk, a, b)):
        async with refused("unknown_job", "is not in your list"):
            await act


async def test_clocks_remove_what_is_about_items_that_have_ended(desk: Desk) -> None:
    await desk.put_letters()
    a, b = await desk.items(2)
    clerk = desk.clerks[0]
    await desk.engine.worklists.move(clerk, b, before=a)
    await desk.engine.worklists.move(clerk, a, after=b)
    for job in (a, b):
        await desk.engine.worklists.insert(desk.manager, job, desk.manager)
        await desk.engine.worklists.remove(desk.manager, job, desk.clerks[1])
    await desk.engine.worklists.finish(clerk, a, await desk.engine.worklists.select(clerk, a), {"answer": "yes"})
    assert (await one(desk.engine, "select done from mutirao.turn_clock()"))["items"] == 3
    left = "select array[(select count(*) from mutirao.place), (select count(*) from mutirao.invited), (select count(*) from mutirao.barred)]"
    assert await one(desk.engine, left) == [1, 1, 1]

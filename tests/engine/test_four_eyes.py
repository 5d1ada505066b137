"""Four eyes: whoever does one task may not do another, whatever is open, fires again, is chosen or migrated. And items that are held meanwhile."""

from collections.abc import Mapping

import pytest
from desk import HOUR, Desk, fresh_desk  # noqa: F401 gives the fixture `desk`
from office import refused, rows

from mutirao.database.batch import Migration
from mutirao.database.charge import Creation
from mutirao.model import Offer, Policy, Task

NOT_AS_ASK = Policy("not_as", "ask")


async def migrate(desk: Desk, tasks: Mapping[str, str] | None = None) -> None:
    await desk.engine.migrate(Migration(flow="letter", tasks=tasks or {}))
    await rows(desk.engine, "select mutirao.turn_clock()")


def four_eyes(ask: str = "ask", policy: Policy = NOT_AS_ASK) -> tuple[Task, Task]:
    """Two tasks of clerks, both open from the beginning."""
    return (
        Task(name=ask, when="true", fires="once", offer=Offer(role="clerk")),
        Task(name="ok", when="true", fires="once", offer=Offer(role="clerk", policy=policy)),
    )


async def test_whoever_does_one_of_two_open_tasks_may_not_do_the_other(desk: Desk) -> None:
    await desk.put_letters(*four_eyes(), final=None, ends="quiet")
    lists = desk.engine.worklists
    instance = await desk.letter()
    ask, ok = [await desk.item_of(instance, task) for task in ("ask", "ok")]
    first, second, _ = desk.clerks
    attempt = await lists.select(first, ask)
    async with refused("forbidden", 'whoever did "ask" may not do it, and you hold it'):
        await lists.select(first, ok)
    assert await lists.next(first) is None
    for act in (lists.insert, lists.delegate):
        async with refused("forbidden"):
            await act(desk.manager, ok, first)
    await lists.give_back(first, ask)
    held = await lists.select(first, ok)  # they have done nothing yet
    attempt = await lists.select(first, ask)
    async with refused("forbidden", "return it, so that somebody else does it"):
        await lists.finish(first, ok, held)
    await lists.finish(first, ask, attempt)
    async with refused("forbidden", 'not for whoever does "ask"'):
        await lists.finish(first, ok, held)
    await lists.give_back(first, ok)
    assert [await desk.seen(clerk) for clerk in desk.clerks] == [[], [ok], [ok]]
    async with refused("forbidden", 'whoever did "ask" may not do it, and you did'):
        await lists.select(first, ok)
    await lists.finish(second, ok, await lists.select(second, ok))
    assert (await desk.engine.instance(instance)).status == "closed.completed"


async def test_whom_an_administrator_lets_do_both_may_finish_both(desk: Desk) -> None:
    await desk.put_letters(*four_eyes(), final=None, ends="quiet")
    lists = desk.engine.worklists
    instance = await desk.letter()
    ask, ok = [await desk.item_of(instance, task) for task in ("ask", "ok")]
    first = desk.clerks[0]
    await lists.insert(desk.administrator, ok, first)  # beforehand, it says nothing about four eyes
    await lists.finish(first, ask, await lists.select(first, ask))
    assert await desk.seen(first) == []
    await lists.insert(desk.administrator, ok, first)
    await lists.finish(first, ok, await lists.select(first, ok))
    assert (await desk.engine.instance(instance)).status == "closed.completed"


async def test_all_who_did_a_task_that_fired_twice_are_excluded(desk: Desk) -> None:
    tasks = (
        Task(name="ask", when="pages < 2", offer=Offer(role="clerk")),
        Task(name="ok", when="pages = 2", fires="once", offer=Offer(role="clerk", policy=NOT_AS_ASK)),
    )
    await desk.put_letters(*tasks, final=None, ends="quiet")
    instance = await desk.letter(pages=0)
    for pages, clerk in enumerate(desk.clerks[:2], 1):
        ask = await desk.item_of(instance, "ask")
        attempt = await desk.engine.worklists.select(clerk, ask)
        await desk.engine.worklists.finish(clerk, ask, attempt, {"pages": pages})
    ok = await desk.item_of(instance, "ok")
    assert [await desk.seen(clerk) for clerk in desk.clerks] == [[], [], [ok]]
    for clerk in desk.clerks[:2]:
        async with refused("forbidden", "and you did"):
            await desk.engine.worklists.select(clerk, ok)


@pytest.mark.parametrize("renamed", [False, True])
async def test_four_eyes_that_a_version_brings_count_whatever_was_chosen_before(desk: Desk, renamed: bool) -> None:
    before, free = four_eyes("request" if renamed else "ask", Policy())
    await desk.put_letters(before, free, final=None, ends="quiet")
    new = Creation(flow="letter", policies={"ok": Policy()})
    instance = await desk.engine.charges.create(desk.manager, new)
    first, second, third = desk.clerks
    lists = desk.engine.worklists
    ask, ok = [await desk.item_of(instance, task) for task in (before.name, "ok")]
    await lists.finish(first, ask, await lists.select(first, ask))
    assert ok in await desk.seen(first)
    await desk.put_letters(*four_eyes(), final=None, ends="quiet")
    await migrate(desk, {"request": "ask"} if renamed else {})
    assert [await desk.seen(clerk) for clerk in (first, second, third)] == [[], [ok], [ok]]
    await desk.engine.charges.hand_over(desk.manager, instance, first)
    async with refused("forbidden", "only an administrator"):
        await lists.insert(first, ok, first)
    async with refused("forbidden", "and you did"):
        await lists.select(first, ok)


async def test_what_was_chosen_before_does_not_undo_them_for_items_that_come_later(desk: Desk) -> None:
    ask = Task(name="ask", when="true", fires="once", offer=Offer(role="clerk"), outputs=("topic",))
    free, bound = (
        Task(name="ok", when="topic is not null", fires="once", offer=Offer(role="clerk", policy=policy))
        for policy in (Policy(), NOT_AS_ASK)
    )
    await desk.put_letters(ask, free, final=None, ends="quiet")
    instance = await desk.engine.charges.create(desk.manager, Creation(flow="letter", policies={"ok": Policy()}))
    await desk.put_letters(ask, bound, final=None, ends="quiet")
    await migrate(desk)
    first, second, third = desk.clerks
    item, lists = await desk.item_of(instance), desk.engine.worklists
    await lists.finish(first, item, await lists.select(first, item), {"topic": "roads"})
    ok = await desk.item_of(instance)
    assert [await desk.seen(clerk) for clerk in (first, second, third)] == [[], [ok], [ok]]


async def test_an_item_held_during_a_migration_is_returned_to_whom_the_version_says(desk: Desk) -> None:
    lists = desk.engine.worklists
    first = desk.clerks[0]
    for task, seen in (
        (Task(name="answer", when="answer is null", offer=Offer(role="manager", deadline=3 * HOUR)), True),
        (Task(name="answer", when="answer is null"), False),
    ):
        await desk.put_letters()
        instances = [await desk.letter() for _ in range(3)]
        returned, delegated, left = [await desk.item_of(each) for each in instances]
        for job in (returned, delegated, left):
            await lists.select(first, job)
        await desk.put_letters(task)
        await migrate(desk)
        assert set(await desk.seen(first)) == {returned, delegated, left}
        await lists.give_back(first, returned)
        await lists.delegate(desk.manager, delegated, "clerk_2")
        await desk.engine.roles.take(None, "clerk", ["clerk_1"])
        await desk.engine.roles.put(None, "clerk", ["clerk_1"])
        found = await rows(
            desk.engine,
            "select r.name, j.status::text, j.finish_by is not null, j.size is not null, j.offered_to from mutirao.job j left join mutirao.role r on r.id = j.role where j.id = any (%s) order by j.id",
            [returned, delegated, left],
        )
        if seen:
            assert found == [
                ("manager", "ready", True, True, None),
                ("manager", "ready", True, True, desk.clerks[1]),
                ("manager", "ready", True, True, None),
            ]
            assert await desk.seen(desk.manager) == [returned, left]
            assert (await desk.seen(first), await desk.seen(desk.clerks[1])) == ([], [delegated])
        else:
            assert found == [(None, "ready", False, False, None)] * 3
            assert [await desk.seen(clerk) for clerk in desk.clerks] == [[], [], []]
        for instance in instances:
            await desk.engine.cancel(instance)

"""What persons say about instances and items; and the filters that they save."""

from dataclasses import fields

import pytest
from desk import Desk, fresh_desk  # noqa: F401 gives the fixture `desk`
from office import one, refused

from mutirao.database.item import ItemFilter


async def test_comments_are_kept_with_the_instance_also_when_it_is_closed(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    job = await desk.item_of(instance)
    clerk = desk.clerks[0]
    about_item = await desk.engine.worklists.comment(clerk, "who signs?", job=job)
    await desk.engine.worklists.comment(desk.manager, "I do", instance=instance)
    await desk.engine.worklists.finish(clerk, job, await desk.engine.worklists.select(clerk, job), {"answer": "yes"})
    await desk.engine.worklists.comment(desk.manager, "thanks", instance=instance)
    said = await desk.engine.worklists.comments(clerk, instance)
    assert [(each.author, each.text, each.task) for each in said] == [
        ("clerk_1", "who signs?", "answer"), ("manager", "I do", None), ("manager", "thanks", None),
    ]  # fmt: skip
    assert [each.id for each in await desk.engine.worklists.comments(clerk, instance, job=job)] == [about_item]
    assert [each.text for each in await desk.engine.worklists.comments(clerk, instance, after=said[0].id, limit=1)] == [
        "I do"
    ]
    async with refused("item_finished"):
        await desk.engine.worklists.comment(clerk, "too late", job=job)


async def test_only_the_author_or_an_administrator_removes_a_comment(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    first, second, _ = desk.clerks
    lists = desk.engine.worklists
    mine, other = [await lists.comment(first, text, instance=instance) for text in ("one", "two")]
    async with refused("forbidden", "only whoever wrote"):
        await lists.remove_comment(second, mine)
    async with refused("forbidden"):
        await lists.remove_comment(desk.manager, mine)
    await lists.remove_comment(first, mine)
    await lists.remove_comment(desk.administrator, other)
    async with refused("unknown_comment"):
        await lists.remove_comment(first, mine)
    assert await lists.comments(first, instance) == []


@pytest.mark.parametrize(
    ("text", "code"), [("", "wrong_call"), (" \n", "wrong_call"), ("x" * 10_001, "too_large"), ("a\x00b", "wrong_call")]
)
async def test_a_comment_says_something_and_is_not_too_long(desk: Desk, text: str, code: str) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    async with refused(code):
        await desk.engine.worklists.comment(desk.manager, text, instance=instance)
    await desk.engine.worklists.comment(desk.manager, "x" * 10_000, instance=instance)


async def test_comments_go_with_a_dropped_instance(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    await desk.engine.worklists.comment(desk.manager, "soon gone", instance=instance)
    await desk.engine.charges.cancel(desk.manager, instance)
    await one(desk.engine, "select mutirao.drop_closed(array[%s::bigint])", instance)
    assert await one(desk.engine, "select count(*) from mutirao.comment") == 0


async def test_filters_are_saved_renamed_and_dropped_by_each_person(desk: Desk) -> None:
    await desk.put_letters()
    first, second, _ = desk.clerks
    lists = desk.engine.worklists
    urgent = ItemFilter(flow="letter", sort="deadline", attributes={"topic": "tax"}, overdue=True)
    await lists.save_filter(first, "urgent", ItemFilter())
    await lists.save_filter(first, "urgent", urgent)
    await lists.save_filter(first, "a 'quoted' name", ItemFilter(priority=3))
    await lists.save_filter(second, "urgent", ItemFilter(status="ready"))
    saved = {each.name: each.filter for each in await lists.filters(first)}
    assert saved == {"urgent": urgent, "a 'quoted' name": ItemFilter(priority=3)}
    await lists.page(first, saved["urgent"])
    async with refused("filter_exists"):
        await lists.rename_filter(first, "urgent", "a 'quoted' name")
    await lists.rename_filter(first, "urgent", "hurry")
    await lists.drop_filter(first, "a 'quoted' name")
    assert [each.name for each in await lists.filters(first)] == ["hurry"]
    assert [each.filter for each in await lists.filters(second)] == [ItemFilter(status="ready")]
    for act in (lists.drop_filter(first, "urgent"), lists.rename_filter(first, "urgent", "x")):
        async with refused("unknown_filter"):
            await act
    for name in ("", " x", "two\nlines", "x" * 101):
        async with refused("wrong_call"):
            await lists.save_filter(first, name, urgent)
    for wrong, code in (
        (ItemFilter(attributes={"pages": 3}), "not_searchable"),
        (ItemFilter(flow="lettre"), "unknown_flow"),
    ):
        async with refused(code):
            await lists.save_filter(first, "wrong", wrong)


async def test_sql_and_python_know_the_same_filters(desk: Desk) -> None:
    known = await one(desk.engine, "select array(select jsonb_object_keys(mutirao.item_filter_keys()))")
    assert set(known) == {each.name for each in fields(ItemFilter)}
    assert ItemFilter(priority=0, overdue=False).document() == {"sort": "arrival", "status": "all", "priority": 0}


async def test_a_person_saves_a_hundred_filters(desk: Desk) -> None:
    async with desk.engine.connection() as connection:
        await connection.execute(
            "insert into mutirao.saved_filter select %s, 'f' || n, '{}', mutirao.now() from generate_series(1, 100) n",
            [desk.manager],
        )
    await desk.engine.worklists.save_filter(desk.manager, "f7", ItemFilter(overdue=True))
    async with refused("too_many", "100 saved filters"):
        await desk.engine.worklists.save_filter(desk.manager, "one more", ItemFilter())
    assert len(await desk.engine.worklists.filters(desk.manager)) == 100

"""Attributes of a live flow are added, changed and dropped while its instances are open."""

from typing import Any

import psycopg
import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb


async def live(engine: Engine, **state: Any) -> int:
    await engine.create("f", {"a": "x", "b": "1", "c": None}, {"go": "a = 'x'"}, final="a = 'done'")
    return await engine.start("f", **state)


async def test_a_dropped_attribute_leaves_the_state_and_stays_in_the_trace(engine: Engine) -> None:
    instance = await live(engine, b="7")
    await engine.rows("delete from f.wed_attr where aname = 'b'")
    await engine.tick()
    assert await engine.state(instance) == {"a": "x", "c": None}
    assert (await engine.trace(instance))[0].state == {"a": "x", "b": "7", "c": None}
    assert await engine.rows("select aname from f.wed_attr") == [("a",), ("c",)]
    assert await engine.rows("select * from f.wed_flow") == [(instance, "x", None)]
    async with engine.refused("unknown_attribute", 'no attribute "b"'):
        await engine.set(instance, b="2")


async def test_a_dropped_attribute_leaves_the_state_with_the_next_write_too(engine: Engine) -> None:
    instance = await live(engine, b="7")
    await engine.rows("delete from f.wed_attr where aname = 'b'")
    await engine.do("f", "go", a="done")
    assert await engine.state(instance) == {"a": "done", "c": None}
    assert await engine.status(instance) == "closed.completed"


async def test_an_attribute_that_comes_back_has_its_default(engine: Engine) -> None:
    instance = await live(engine, b="7")
    await engine.rows("delete from f.wed_attr where aname = 'b'")
    await engine.tick()
    await engine.rows("insert into f.wed_attr (aname, adv) values ('b', '3')")
    await engine.tick()
    assert await engine.state(instance) == {"a": "x", "b": "3", "c": None}


async def test_an_attribute_that_came_back_before_anybody_looked_has_what_it_had(engine: Engine) -> None:
    instance = await live(engine, b="7")
    async with await AsyncConnection.connect(engine.url) as session:
        await session.execute("delete from f.wed_attr where aname = 'b'")
        await session.execute("insert into f.wed_attr (aname, adv) values ('b', '3')")
    await engine.tick()
    assert await engine.state(instance) == {"a": "x", "b": "7", "c": None}


async def test_an_attribute_that_a_condition_names_is_not_dropped(engine: Engine) -> None:
    await live(engine)
    await engine.rows("insert into f.wed_trig (trname, cpred, enabled) values ('more', $$b = '2'$$, false)")
    async with engine.refused("flow_invalid", 'attribute "b" is named by the condition of task "more"'):
        await engine.rows("delete from f.wed_attr where aname = 'b'")
    async with engine.refused(
        "flow_invalid", 'attribute "a" is named by the condition of task "go", the final condition'
    ):
        await engine.rows("delete from f.wed_attr where aname = 'a'")


async def test_a_running_job_ends_without_the_attribute_that_was_dropped(engine: Engine) -> None:
    instance = await live(engine)
    job = await engine.take("f", "go")
    await engine.rows("delete from f.wed_attr where aname = 'b'")
    with pytest.raises(psycopg.Error, match=r"^unknown_attribute: "):
        await engine.complete(job, never="2", a="done")
    assert await engine.complete(job, b="2", a="done") == "ok"
    assert (await engine.status(instance), await engine.state(instance)) == (
        "closed.completed",
        {"a": "done", "c": None},
    )
    last = (await engine.trace(instance))[-1]
    assert (last.kind, last.note) == ("finish", {"without": ["b"]})


async def test_a_running_job_writes_a_value_of_the_type_before(engine: Engine) -> None:
    await live(engine)
    await engine.start("f")
    good, bad = await engine.claim("f", "go", room=2)
    await engine.rows("update f.wed_attr set atype = 'integer' where aname = 'b'")
    told, _ = await engine.turn([(good, {"b": "7", "a": "done"}), (bad, {"b": "many", "a": "done"})])
    assert [(each.kind, each.job) for each in told] == [("refused", bad.id)]
    assert (await engine.state(good.instance))["b"] == 7
    assert await engine.jobs(bad.instance) == {"go": "running"}


async def test_a_running_job_of_a_migrated_instance_writes_what_an_attribute_was_renamed_to(engine: Engine) -> None:
    await engine.apply("p", {"a": "x", "b": "1", "c": "1"}, {"go": "a = 'x'"}, final="a = 'done'")
    instance = await engine.start("p")
    job = await engine.take("p", "go")
    await engine.apply("p", {"a": "x", "d": "1"}, {"go": "a = 'x'"}, final="a = 'done'")
    batch = await engine.one("""select mutirao.migrate_flow('p', attributes => '{"b": "d"}')""")
    await engine.rows("select mutirao.step_batch(%s)", batch)
    assert await engine.complete(job, a="done", b="2", c="2") == "ok"
    assert await engine.state(instance) == {"a": "done", "c": "1", "d": "2"}
    assert (await engine.trace(instance))[-1].note == {"without": ["c"]}


async def test_a_parked_change_goes_through_without_the_attribute_that_was_dropped(engine: Engine) -> None:
    await engine.create("f", {"a": "x", "b": "x", "c": "x"}, {"go": "a = 'x'", "other": "b = 'x'"}, final="a = 'done'")
    instance = await engine.start("f")
    await engine.do("f", "go", a="done", c="y")
    assert await engine.jobs(instance) == {"go": "parked", "other": "ready"}
    await engine.rows("delete from f.wed_attr where aname = 'c'")
    await engine.tick()
    await engine.do("f", "other", b="y")
    assert await engine.status(instance) == "closed.completed"
    assert await engine.state(instance) == {"a": "done", "b": "y"}


async def test_a_parked_change_of_another_type_is_converted_or_an_exception(engine: Engine) -> None:
    await engine.create("f", {"a": "x", "b": "x", "c": "1"}, {"go": "a = 'x'", "other": "b = 'x'"}, final="a = 'done'")
    good, bad = await engine.start("f"), await engine.start("f")
    for job in await engine.claim("f", "go", room=2):
        await engine.complete(job, a="done", c="7" if job.instance == good else "many")
    await engine.rows("update f.wed_attr set atype = 'integer' where aname = 'c'")
    await engine.tick()
    for job in await engine.claim("f", "other", room=2):
        await engine.complete(job, b="y")
    assert await engine.state(good) == {"a": "done", "b": "y", "c": 7}
    assert (await engine.status(bad), await engine.codes(bad)) == ("open.exception", ["wrong_type"])
    await engine.skip(await engine.job(bad, "go"), a="done", c=8)
    assert (await engine.status(bad), await engine.state(bad)) == ("closed.completed", {"a": "done", "b": "y", "c": 8})


@pytest.mark.parametrize(
    ("before", "now", "value", "after"),
    [
        ("text", "integer", "12", 12), ("text", "number", "1.5", 1.5), ("text", "boolean", "true", True), ("text", "json", "x", "x"),
        ("text", "date", "2026-02-28", "2026-02-28"), ("integer", "text", 12, "12"), ("integer", "number", 12, 12),
        ("number", "integer", 3.0, 3), ("boolean", "text", False, "false"), ("json", "text", {"k": 1}, '{"k": 1}'), ("json", "integer", 3, 3),
        ("timestamp", "date", "2026-02-28T10:00:00+00:00", "2026-02-28"), ("text", "integer", None, None),
    ],
)  # fmt: skip
async def test_a_value_that_fits_becomes_one_of_the_new_type(
    engine: Engine, before: str, now: str, value: object, after: object
) -> None:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")
    await engine.rows("insert into f.wed_attr (aname, atype) values ('v', %s)", before)
    instance = await engine.start("f", v=value)
    await engine.rows("update f.wed_attr set atype = %s where aname = 'v'", now)
    await engine.tick()
    assert await engine.state(instance) == {"a": "x", "v": after}
    assert await engine.status(instance) == "open.running"
    assert await engine.one("select to_jsonb(w) -> 'v' from f.wed_flow w") == after


@pytest.mark.parametrize(
    ("before", "now", "value"),
    [
        ("text", "integer", "many"), ("text", "integer", "1.5"), ("text", "number", "1,5"), ("text", "boolean", "2"), ("text", "date", "2026-02-30"),
        ("boolean", "number", True), ("json", "integer", [1]), ("text", "integer", "9" * 30),
    ],
)  # fmt: skip
async def test_a_value_that_does_not_fit_makes_an_exception_of_that_instance_alone(
    engine: Engine, before: str, now: str, value: object
) -> None:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")
    await engine.rows("insert into f.wed_attr (aname, atype) values ('v', %s)", before)
    good, bad = await engine.start("f"), await engine.start("f", v=value)
    await engine.rows("update f.wed_attr set atype = %s where aname = 'v'", now)
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('more', 'v is null')")
    await engine.tick()
    assert await engine.jobs(good) == {"go": "ready", "more": "ready"}
    assert await engine.status(bad) == "open.exception"
    (reason,) = await engine.reasons(bad)
    assert (reason["code"], reason["attribute"], reason["value"]) == ("condition_failed", "v", value)
    assert f'attribute "v" is of type {now}' in reason["error"]
    assert await engine.state(bad) == {"a": "x", "v": value}
    assert await engine.rows("select wid, v is null from f.wed_flow order by 1") == [(good, True), (bad, True)]


async def test_an_instance_whose_value_does_not_fit_is_mended_by_setting_it(engine: Engine) -> None:
    instance = await live(engine, b="many")
    job = await engine.take("f", "go")
    await engine.rows("update f.wed_attr set atype = 'integer' where aname = 'b'")
    await engine.tick()
    async with engine.refused("condition_failed", 'attribute "b"'):
        await engine.set(instance, c="y")
    assert await engine.complete(job, a="done") == "parked"
    await engine.set(instance, b=3)
    assert await engine.status(instance) == "closed.completed"
    assert await engine.state(instance) == {"a": "done", "b": 3, "c": None}


async def test_a_change_of_type_that_a_condition_does_not_bear_is_refused(engine: Engine) -> None:
    await live(engine)
    async with engine.refused("condition_type"):
        await engine.rows("update f.wed_attr set atype = 'json', adv = null where aname = 'a'")
    async with engine.refused("wrong_type", "its default cannot be 'x'"):
        await engine.rows("update f.wed_attr set atype = 'integer' where aname = 'a'")
    async with engine.refused("flow_invalid", 'no type "varchar"'):
        await engine.rows("update f.wed_attr set atype = 'varchar' where aname = 'b'")
    async with engine.refused("flow_invalid", "keeps its name"):
        await engine.rows("update f.wed_attr set aname = 'd' where aname = 'b'")


async def test_a_column_under_somebodys_own_view_is_not_taken_away(engine: Engine) -> None:
    await live(engine)
    await engine.rows("create schema report")
    await engine.rows("create view report.open as select wid, a from f.wed_flow")
    for change in (
        "delete from f.wed_attr where aname = 'b'",
        "update f.wed_attr set atype = 'json' where aname = 'b'",
    ):
        async with engine.refused("flow_invalid", "f.wed_flow is used by report.open"):
            await engine.rows(change)
    await engine.rows("insert into f.wed_attr (aname) values ('d')")
    assert await engine.one("select count(d) from f.wed_flow") == 0


async def test_an_attribute_made_searchable_is_found_and_one_dropped_is_not(engine: Engine) -> None:
    instance = await live(engine, b="7")
    await engine.rows("update f.wed_attr set searchable = true where aname in ('a', 'b')")
    await engine.tick()
    assert await engine.rows("select name, value from mutirao.search order by 1") == [("a", "x"), ("b", "7")]
    await engine.rows("delete from f.wed_attr where aname = 'b'")
    await engine.tick()
    assert await engine.rows("select name, value, instance from mutirao.search") == [("a", "x", instance)]
    await engine.rows("update f.wed_attr set searchable = false")
    await engine.tick()
    assert await engine.rows("select from mutirao.search") == []


async def test_a_pinned_flow_is_not_changed_by_sql(engine: Engine) -> None:
    await engine.apply("p", {"a": 0, "b": 0}, {"go": "a = 0"}, final="a = 9")
    for change in (
        "delete from p.wed_attr where aname = 'b'",
        "update p.wed_attr set atype = 'text' where aname = 'b'",
    ):
        async with engine.refused("flow_pinned"):
            await engine.rows(change)


async def test_a_pinned_flow_loses_an_attribute_with_a_version_and_old_instances_keep_it(engine: Engine) -> None:
    await engine.apply("p", {"a": 0, "b": 5}, {"go": "a = 0"}, final="a = 9")
    old = await engine.start("p")
    await engine.one("select mutirao.apply_flow(%s)", Jsonb({"name": "p", "attributes": [{"name": "a", "type": "integer", "default": 0}], "tasks": [{"name": "go", "when": "a = 0"}], "final": "a = 9"}))  # fmt: skip
    new = await engine.start("p")
    await engine.tick()
    for job in await engine.claim("p", "go", room=2):
        await engine.complete(job, a=9)
    assert (await engine.state(old), await engine.state(new)) == ({"a": 9, "b": 5}, {"a": 9})
    assert await engine.rows("select * from p.wed_flow order by 1") == [(old, 9), (new, 9)]

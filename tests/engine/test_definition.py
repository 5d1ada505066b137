"""Definitions: how small and how large a flow may be, what can be searched for, and what is refused."""

from typing import Any

import pytest
from driver import Engine, after, document, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb


async def live(engine: Engine) -> int:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")
    return await engine.start("f")


# ------------------------------------------------------------------------------------------- what is small, and what not


async def test_a_flow_may_have_no_attribute(engine: Engine) -> None:
    await engine.apply("p", {}, {"go": {"when": "true", "fires": "once"}, "then": after("go")}, ends="quiet")
    async with await AsyncConnection.connect(engine.url, autocommit=True) as session:
        await session.execute("insert into p.wed_flow default values")
    await engine.do("p", "go")
    await engine.do("p", "then")
    assert await engine.rows("select status::text, state from mutirao.closed") == [("closed.completed", {})]


async def test_a_flow_may_have_no_task_and_then_nothing_starts(engine: Engine) -> None:
    await engine.apply("p", {"a": 0}, {})
    async with engine.refused("nothing_fires"):
        await engine.start("p")
    await engine.apply("q", {"a": 0}, {}, final="a = 1")
    assert await engine.status(await engine.start("q", a=1)) == "closed.completed"
    await engine.rows("select mutirao.create_flow('r')")
    async with engine.refused("nothing_fires"):
        await engine.rows("insert into r.wed_flow default values")


async def test_a_flow_may_have_two_hundred_tasks_and_a_hundred_attributes(engine: Engine) -> None:
    await engine.apply(
        "p", {f"a{n}": n for n in range(100)}, {f"t{n}": f"a{n % 100} = {n}" for n in range(200)}, final="a0 = -1"
    )
    assert len(await engine.jobs(await engine.start("p"))) == 100


async def test_the_searchable_values_of_open_and_closed_instances_are_kept(engine: Engine) -> None:
    async def found() -> list[Any]:
        return await engine.rows("select name, value, instance from mutirao.search order by 1, 2, 3")

    await engine.apply(
        "p",
        {
            "who": {"type": "text", "searchable": True},
            "n": {"type": "integer", "default": 0, "searchable": True},
            "other": "x",
        },
        {"go": "n = 0", "more": "n = 1"},
        final="n = 9",
    )
    ann, bob = await engine.start_many("p", [{"who": "ann"}, {}])
    assert await found() == [("n", "0", ann), ("n", "0", bob), ("who", "ann", ann)]
    first, second = await engine.claim("p", "go", room=2)
    await engine.turn([(first, {"n": 1, "who": "anna"}), (second, {"n": 9, "who": "b" * 5000})])
    assert await found() == [("n", "1", ann), ("n", "9", bob), ("who", "anna", ann), ("who", "b" * 200, bob)]
    await engine.set(ann, who=None)
    assert await found() == [("n", "1", ann), ("n", "9", bob), ("who", "b" * 200, bob)]
    await engine.cancel(ann)
    assert ("n", "1", ann) in await found()


async def test_an_attribute_that_becomes_searchable_is_so_for_open_instances(engine: Engine) -> None:
    instance = await live(engine)
    await engine.rows("update f.wed_attr set searchable = true")
    await engine.tick()
    assert await engine.rows("select name, value, instance from mutirao.search") == [("a", "x", instance)]


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("task", "code", "says"),
    [
        ({"when": "nope = 1"}, "unknown_attribute", "nope"),
        ({"when": "task_nope = 'failed'"}, "unknown_attribute", 'no task "nope"'),
        ({"when": "a"}, "condition_type", "task"),
        ({"when": "exists (select 1)"}, "condition_refused", ""),
        ({"when": "true; drop table x"}, "condition_refused", "a second statement"),
        ({"when": "pg_sleep(1) is null"}, "condition_refused", ""),
        ({"when": "(a = 1"}, "condition_syntax", ""),
        ({"when": ""}, "condition_syntax", "empty"),
        ({}, "flow_invalid", "either a condition (when) or a dependency rule (depends)"),
        ({"when": "true", "depends": {"task": "go", "state": "failed"}}, "flow_invalid", "either"),
        ({"depends": {"task": "nope", "state": "succeeded"}}, "unknown_task", '"nope"'),
        ({"depends": {"task": "_FINAL", "state": "succeeded"}}, "unknown_task", '"_FINAL"'),
        ({"depends": {"task": "go", "state": "nowhere"}}, "flow_invalid", "ready, running, succeeded or failed"),
        ({"depends": {"task": "go"}}, "flow_invalid", "ready, running, succeeded or failed"),
        ({"depends": {}}, "flow_invalid", "is no dependency"),
        ({"depends": {"all": []}}, "flow_invalid", "is no dependency"),
        ({"depends": {"any": "go"}}, "flow_invalid", "is no dependency"),
        ({"depends": "go"}, "flow_invalid", "is no dependency"),
        ({"depends": {"all": [{"task": "go", "state": "failed"}, "task"]}}, "flow_invalid", "is no dependency"),
        ({"depends": {"task": "t", "state": "succeeded"}}, "flow_invalid", "wait for each other"),
        ({"when": "true", "fires": "twice"}, "flow_invalid", "each or once"),
        ({"when": "true", "timeout": 0}, "flow_invalid", "a timeout is positive"),
        ({"when": "true", "retries": -1}, "flow_invalid", "not negative"),
        ({"when": "true", "retries": "many"}, "flow_invalid", "many"),
        ({"when": "true", "timeout": 1e300}, "flow_invalid", ""),
    ],
)
async def test_a_task_that_is_wrong_is_refused_and_nothing_changes(
    engine: Engine, task: dict[str, Any], code: str, says: str
) -> None:
    await engine.apply("p", {"a": 0}, {"go": "a = 0"}, final="a = 9")
    async with engine.refused(code, says):
        await engine.apply("p", {"a": 0}, {"go": "a = 0", "t": task}, final="a = 9")
    assert await engine.rows("select from pg_namespace where nspname = 'q'") == []


async def test_tasks_that_wait_for_each_other_are_named(engine: Engine) -> None:
    async with engine.refused("flow_invalid", '"one", "two"'):
        await engine.apply("p", {"a": 0}, {"go": "a = 0", "one": after("two"), "two": after("one")})
    # One that has another way to start is no circle.
    either = {"depends": {"any": [{"task": "go", "state": "succeeded"}, {"task": "two", "state": "failed"}]}}
    await engine.apply("p", {"a": 0}, {"go": "a = 0", "one": either, "two": after("one")})


async def test_a_dependency_on_a_task_that_only_an_older_version_had_is_refused(engine: Engine) -> None:
    await engine.apply("p", {"a": 0}, {"go": "a = 0", "old": "a = 1"})
    async with engine.refused("unknown_task", '"old"'):
        await engine.apply("p", {"a": 0}, {"go": "a = 0", "then": after("old")})


@pytest.mark.parametrize(
    ("changed", "code", "says"),
    [
        ({"name": None}, "flow_invalid", "flow"),
        ({"name": "Bad Name"}, "flow_invalid", "Bad Name"),
        ({"name": "public"}, "flow_exists", "public"),
        ({"name": "mutirao"}, "flow_exists", "mutirao"),
        ({"name": "pg_mine"}, "flow_exists", "pg_mine"),
        ({"ends": "never"}, "flow_invalid", "final or quiet"),
        ({"firing_limit": 0}, "flow_invalid", "firing_limit"),
        ({"firing_limit": "x"}, "flow_invalid", "firing_limit"),
        ({"final": "nope"}, "unknown_attribute", "final condition"),
        ({"attributes": {}}, "flow_invalid", "list of objects"),
        ({"tasks": "go"}, "flow_invalid", "list of objects"),
        ({"tasks": ["go"]}, "flow_invalid", "list of objects"),
        ({"tasks": [{"when": "true"}]}, "flow_invalid", "task"),
        ({"tasks": [{"name": "go", "when": "true"}, {"name": "go", "when": "true"}]}, "flow_invalid", "declared twice"),
        ({"attributes": [{"name": "a"}, {"name": "a"}]}, "flow_invalid", "declared twice"),
        ({"attributes": [{"name": "select"}]}, "attribute_reserved", "select"),
        ({"attributes": [{"name": "wid"}]}, "attribute_reserved", "wid"),
        ({"attributes": [{"type": "text"}]}, "attribute_reserved", "attribute"),
        ({"attributes": [{"name": "a", "type": "money"}]}, "flow_invalid", "there is no type"),
        ({"attributes": [{"name": "a", "type": "integer", "default": "x"}]}, "wrong_type", "its default"),
        ({"attributes": [{"name": "a", "type": "date", "default": "soon"}]}, "wrong_type", "its default"),
    ],
)
async def test_a_document_that_is_wrong_is_refused_and_nothing_changes(
    engine: Engine, changed: dict[str, Any], code: str, says: str
) -> None:
    async with engine.refused(code, says):
        await engine.rows("select mutirao.apply_flow(%s)", Jsonb(document("p", {"a": 0}, {"go": "true"}) | changed))


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("insert into f.wed_attr (aname) values ('user')", "attribute_reserved"),
        ("insert into f.wed_attr (aname) values (null)", "attribute_reserved"),
        ("insert into f.wed_attr (aname) values ('a')", "flow_invalid"),
        ("insert into f.wed_attr (aname, atype) values ('b', 'money')", "flow_invalid"),
        (
            "insert into f.wed_attr (aname, atype, adv) values ('b', 'text); drop schema f cascade; --', '1')",
            "flow_invalid",
        ),
        ("insert into f.wed_attr (aname, atype, adv) values ('b', 'integer', 'x')", "wrong_type"),
        ("update f.wed_attr set aname = 'b'", "flow_invalid"),
        ("update f.wed_attr set atype = 'integer'", "wrong_type"),
        ("insert into f.wed_trig (cpred) values ('true')", "flow_invalid"),
        ("insert into f.wed_trig (trname) values ('b')", "flow_invalid"),
        ("insert into f.wed_trig (trname, cpred) values ('Bad', 'true')", "flow_invalid"),
        ("insert into f.wed_trig (trname, cpred) values ('go', 'true')", "flow_invalid"),
        ("insert into f.wed_trig (cpred, cfinal) values ('true', true)", "flow_invalid"),
        ("insert into f.wed_trig (trname, cpred, timeout) values ('b', 'true', '-1 s')", "flow_invalid"),
        ("insert into f.wed_trig (trname, cpred) values ('b', 'nope = 1')", "unknown_attribute"),
        ("update f.wed_trig set trname = 'b' where trname = 'go'", "flow_invalid"),
        ("update f.wed_trig set cpred = null where trname = 'go'", "flow_invalid"),
        ("update f.wed_trig set enabled = null where trname = 'go'", "flow_invalid"),
        ("update f.wed_trig set cpred = 'nope = 1' where trname = 'go'", "unknown_attribute"),
        ("select mutirao.create_flow('f')", "flow_exists"),
        ("select mutirao.create_flow('public')", "flow_exists"),
        ("select mutirao.create_flow(null)", "flow_invalid"),
        ("select mutirao.create_flow('No')", "flow_invalid"),
    ],
)
async def test_a_definition_in_sql_that_is_wrong_is_refused_and_nothing_changes(
    engine: Engine, statement: str, code: str
) -> None:
    await live(engine)
    async with engine.refused(code):
        await engine.rows(statement)


async def test_two_flows_of_one_name_are_refused_whichever_way_they_come(engine: Engine) -> None:
    await live(engine)
    await engine.apply("p", {"a": 0}, {"go": "a = 0"})
    async with engine.refused("flow_live", '"f"'):
        await engine.apply("f", {"a": 0}, {"go": "a = 0"})
    async with engine.refused("flow_exists", '"p"'):
        await engine.rows("select mutirao.create_flow('p')")


@pytest.mark.parametrize("state", ["[]", '"text"', "5", "null", '[{"a": 1}]'])
async def test_a_state_or_a_change_that_is_no_object_is_refused(engine: Engine, state: str) -> None:
    instance = await live(engine)
    job = await engine.take("f", "go")
    for call in (
        "select mutirao.start('f', %s::jsonb)",
        f"select mutirao.set({instance}, %s::jsonb)",
        f"select mutirao.complete({job.id}, {job.attempt}, %s::jsonb)",
    ):
        async with engine.refused("wrong_type", "a JSON object"):
            await engine.rows(call, state)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("text", 5), ("text", {"k": 1}), ("integer", 1.5), ("integer", "1"), ("integer", 10**30), ("number", "0.1"), ("boolean", "true"),
        ("boolean", 1), ("date", "2026-02-30"), ("date", 20260101), ("timestamp", "soon"), ("timestamp", True),
    ],
)  # fmt: skip
async def test_a_value_of_the_wrong_type_is_refused_with_the_attribute_and_its_type(
    engine: Engine, kind: str, value: object
) -> None:
    await engine.apply("p", {"v": {"type": kind}, "a": 0}, {"go": "a = 0"}, final="a = 9")
    async with engine.refused("wrong_type", f'attribute "v" is of type {kind}'):
        await engine.start("p", v=value)
    await engine.start("p", v=None)
    job = await engine.take("p", "go")
    async with engine.refused("wrong_type", f'attribute "v" is of type {kind}'):
        await engine.complete(job, v=value)

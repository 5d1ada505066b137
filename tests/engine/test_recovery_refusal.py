"""Failure actions, undoing, classes and orderings that make no sense: one clear line, and nothing has changed."""

from typing import Any

import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb

GO = {"when": "true", "fires": "once"}
STANDS = {"stands_by": True}


@pytest.mark.parametrize(
    ("tasks", "code", "says"),
    [
        ({"go": GO | {"compensation": "b"}, "b": {"compensation": "c"}, "c": {}}, "flow_invalid", '"b" undoes "go": it has no compensation'),
        ({"go": GO | {"compensation": "b"}, "b": {"critical": True}}, "flow_invalid", '"b" undoes "go"'),
        ({"go": GO | {"compensation": "b"}, "b": {"safe_point": True}}, "flow_invalid", '"b" undoes "go"'),
        ({"go": GO | {"compensation": "b"}, "b": {"on_failure": "release"}}, "flow_invalid", '"b" undoes "go"'),
        ({"go": GO | {"contingency": "b"}, "b": {"contingency": "c"}, "c": {"contingency": "b"}}, "flow_invalid", 'task "b": its contingency leads back to it'),
        ({"go": GO | {"contingency": "c"}, "b": GO | {"contingency": "c"}, "c": {}}, "flow_invalid", 'task "b": its contingency "c" is that of "go"; each has its own'),
        ({"go": GO | {"contingency": "go"}}, "flow_invalid", '"go" cannot be the contingency of "go"'),
        ({"go": GO | {"contingency": "nope"}}, "unknown_task", 'task "go" names the contingency "nope", which the flow does not have'),
        ({"go": GO | {"compensation": "nope"}}, "unknown_task", 'task "go" names the compensation "nope"'),
        ({"go": GO | {"contingency": "b"}, "b": after("go")}, "flow_invalid", "it has a condition of its own"),
        ({"go": GO | {"compensation": "b", "contingency": "b"}, "b": {}}, "flow_invalid", "it is a compensation"),
        ({"go": GO | {"time_to_wait": 60}}, "flow_invalid", "time_to_wait goes with depends"),
        ({"go": GO, "b": after("go", time_to_wait=-60)}, "flow_invalid", "a time to wait are more than zero"),
        ({"go": GO, "b": after("go", time_to_wait=0)}, "flow_invalid", "a time to wait are more than zero"),
        ({"go": GO, "b": after("go", time_to_wait="soon")}, "flow_invalid", "soon"),
        ({"go": GO, "b": after("go", time_to_wait=1e300)}, "flow_invalid", 'task "b"'),
        ({"go": GO | {"force": True, "contingency": "b"}, "b": {}}, "flow_invalid", "tried until it succeeds"),
        ({"go": GO | {"force": True, "on_failure": "release"}}, "flow_invalid", "tried until it succeeds"),
        ({"go": GO | {"contingency": "b", "on_failure": "roll_back"}, "b": {}}, "flow_invalid", "not both"),
        ({"go": GO | {"on_failure": "explode"}}, "flow_invalid", "block, release, roll_back or safe_point"),
        ({"go": GO | {"critical": True, "compensation": "b"}, "b": {}}, "flow_invalid", "cannot be undone"),
        ({"go": GO | {"task_class": "nope"}}, "unknown_class", 'task "go" names the task_class "nope"'),
    ],
)  # fmt: skip
async def test_a_flow_that_makes_no_sense(engine: Engine, tasks: dict[str, Any], code: str, says: str) -> None:
    await engine.apply("p", {"a": 0}, {"go": "a = 0"}, final="a = 9")
    async with engine.refused(code, says):
        await engine.apply("p", {"a": 0}, tasks, final="a = 9")


@pytest.mark.parametrize(
    ("document", "code", "says"),
    [
        ({"pairs": [["go", "went"]]}, "unknown_task", 'ordering of "one" and "two": flow "two" has no task "went"'),
        ({"second": "tow"}, "unknown_flow", 'there is no flow "tow"'),
        ({"on": "site"}, "unknown_attribute", 'flow "two" has no attribute "site"'),
        ({"pairs": [["free", "go"]]}, "flow_invalid", 'task "free" of flow "one" is done by nobody or stands by'),
        ({"pairs": []}, "flow_invalid", "a list of [task of the first, task of the second]"),
        ({"pairs": [["go"]]}, "flow_invalid", "a list of [task of the first, task of the second]"),
    ],
)
async def test_an_ordering_that_makes_no_sense(engine: Engine, document: dict[str, Any], code: str, says: str) -> None:
    await engine.apply("one", {"site": ""}, {"go": GO | {"compensation": "free"}, "free": {}})
    await engine.apply("two", {"n": 0}, {"go": GO})
    right = {"first": "one", "second": "two", "pairs": [["go", "go"]]}
    async with engine.refused(code, says):
        await engine.rows("select mutirao.put_ordering(%s)", Jsonb(right | document))
    await engine.rows("select mutirao.put_ordering(%s)", Jsonb(right))


async def test_a_class_that_conflicts_with_one_that_is_not_there(engine: Engine) -> None:
    await engine.rows("select mutirao.put_class('crane', '{}')")
    for name in ("crane", "ship"):
        async with engine.refused("unknown_class", '"train"'):
            await engine.rows("select mutirao.put_class(%s, '{crane,train}')", name)
    async with engine.refused("unknown_class", '"ship"'):
        await engine.rows("select mutirao.drop_class('ship')")


async def packed(engine: Engine) -> int:
    """What was packed may be undone up to there; what was sent may not."""
    tasks: dict[str, Any] = {
        "free": {},
        "pack": GO | {"compensation": "free", "safe_point": True},
        "weigh": after("pack"),
        "send": after("weigh", critical=True),
        "tell": after("send", on_failure="safe_point", retries=0),
    }
    await engine.apply("parcel", {"n": 0}, tasks, ends="quiet")
    instance = await engine.start("parcel")
    await engine.do("parcel", "pack")
    return instance


async def test_what_cannot_be_rolled_back_started_or_gone_back_to(engine: Engine) -> None:
    instance = await packed(engine)
    async with engine.refused(
        "unknown_safe_point", f'instance {instance} has passed no safe-point "send"; it has passed pack'
    ):
        await engine.rows("select mutirao.roll_back(%s, 'send')", instance)
    async with engine.refused("task_not_done", 'task "send"'):
        await engine.rows("select mutirao.go_back(%s, 'send')", instance)
    for function in ("start_task", "go_back"):
        async with engine.refused("unknown_task", 'has no task "free" to start; it has pack, weigh, send, tell'):
            await engine.rows(f"select mutirao.{function}(%s, 'free')", instance)
        async with engine.refused("unknown_task", 'has no task "nope"'):
            await engine.rows(f"select mutirao.{function}(%s, 'nope')", instance)
        async with engine.refused("unknown_instance", "there is no instance 4711"):
            await engine.rows(f"select mutirao.{function}(4711, 'pack')")


async def test_nothing_is_rolled_back_across_a_critical_task(engine: Engine) -> None:
    """By a person it is refused; where a failure asks for it, a person is asked."""
    instance = await packed(engine)
    await engine.do("parcel", "weigh")
    await engine.do("parcel", "send")
    for call in ("roll_back(%s)", "roll_back(%s, 'pack')"):
        async with engine.refused(
            "critical_task", f'task "send" of instance {instance} is critical and cannot be undone: nothing was'
        ):
            await engine.rows(f"select mutirao.{call}", instance)
    await engine.fail_for_good(await engine.take("parcel", "tell"), "no answer")
    assert sorted(await engine.codes(instance)) == ["critical_task", "task_failed"]
    assert "compensate" not in await engine.kinds(instance)
    assert await engine.status(instance) == "open.exception"


async def test_an_instance_that_has_ended_takes_none_of_it(engine: Engine) -> None:
    instance = await packed(engine)
    await engine.cancel(instance)
    for call in ("roll_back(%s)", "start_task(%s, 'pack')", "go_back(%s, 'pack')"):
        async with engine.refused("instance_closed", f"instance {instance} has ended"):
            await engine.rows(f"select mutirao.{call}", instance)


async def test_of_two_who_repair_one_instance_the_second_is_told(engine: Engine) -> None:
    await engine.apply("p", {"a": 0}, {"go": GO | {"retries": 0}}, final="a = 9")
    first, second = await engine.start("p"), await engine.start("p")
    for _ in range(2):
        await engine.fail_for_good(await engine.take("p", "go"))
    await engine.repair(first)
    async with engine.refused("not_an_exception", f"instance {first} is open.running"):
        await engine.repair(first, a=1)
    failed = await engine.job(second, "go")
    await engine.skip(failed, a=9)
    for call in (engine.retry, engine.skip):
        async with engine.refused("unknown_job", f"there is no job {failed}; it may have ended"):
            await call(failed)


async def test_a_task_may_stand_by_for_one_that_is_disabled(engine: Engine) -> None:
    waiting = {"depends": {"task": "a", "state": "succeeded"}, "enabled": False}
    await engine.apply("f", {}, {"a": waiting | {"contingency": "b"}, "b": {}, "c": {"when": "true"}}, ends="quiet")

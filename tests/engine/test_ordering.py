"""The order of two flows: whoever goes first with one pair of tasks goes first with the others."""

from typing import Any

import pytest
from batch_driver import drive
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb

ONCE: dict[str, Any] = {"when": "true", "fires": "once", "retries": 0}


@pytest.fixture(name="pair")
async def two_flows(engine: Engine) -> Engine:
    """The example of the seed: T11 before T12, T21 before T22."""
    for p in (1, 2):
        tasks = {f"t_{p}1": ONCE, f"t_{p}2": after(f"t_{p}1")}
        await engine.apply(f"p_{p}", {"site": "a"}, tasks, ends="quiet")
    return engine


async def order(engine: Engine, on: str | None = None) -> None:
    document = {"first": "p_1", "second": "p_2", "pairs": [["t_11", "t_21"], ["t_12", "t_22"]], "on": on}
    await engine.rows("select mutirao.put_ordering(%s)", Jsonb(document))


async def gates(engine: Engine, instance: int) -> dict[str, str]:
    return dict(
        await engine.rows(
            "select t.name, j.gate from mutirao.job j join mutirao.task t on t.id = j.task where instance = %s",
            instance,
        )
    )


async def test_the_crossing_of_the_seed(pair: Engine) -> None:
    await order(pair)
    one = await pair.start("p_1")
    two = await pair.start("p_2")
    assert await gates(pair, one) == {"t_11": "holds"}
    assert await gates(pair, two) == {"t_21": "waits"}
    await pair.do("p_1", "t_11")
    assert await gates(pair, one) == {"t_12": "holds"}
    assert await gates(pair, two) == {"t_21": "holds"}
    await pair.do("p_2", "t_21")
    assert await gates(pair, two) == {"t_22": "waits"}
    await pair.do("p_1", "t_12")
    assert await pair.status(one) == "closed.completed"
    assert await gates(pair, two) == {"t_22": "holds"}
    await pair.do("p_2", "t_22")
    assert await pair.status(two) == "closed.completed"
    assert not await pair.rows("select from mutirao.stamp")
    assert not await pair.rows("select from mutirao.owed")


async def test_very_many_that_wait_for_one_go_on_by_the_clock(pair: Engine) -> None:
    await order(pair)
    await pair.start("p_1")
    await pair.rows("select mutirao.start('p_2', '{}') from generate_series(1, 450)")
    waiting = "select count(*) from mutirao.job where gate = 'waits'"
    assert await pair.one(waiting) == 450
    await pair.do("p_1", "t_11")
    assert 0 < await pair.one(waiting) < 450
    while await pair.one("select done from mutirao.clock_gates(100)"):
        pass
    assert await pair.one(waiting) == 0
    assert not await pair.rows("select from mutirao.order_left")


async def test_a_cancel_of_the_first_releases_the_other(pair: Engine) -> None:
    await order(pair)
    one, two = await pair.start("p_1"), await pair.start("p_2")
    await pair.cancel(one)
    assert await gates(pair, two) == {"t_21": "holds"}


async def test_a_failure_of_the_first_releases_the_other(pair: Engine) -> None:
    await order(pair)
    one, two = await pair.start("p_1"), await pair.start("p_2")
    await pair.fail(await pair.take("p_1", "t_11"), "no")
    assert await pair.status(one) == "open.exception"
    assert await gates(pair, two) == {"t_21": "holds"}
    await pair.do("p_2", "t_21")
    assert await gates(pair, two) == {"t_22": "holds"}


async def test_only_instances_with_equal_values_are_ordered(pair: Engine) -> None:
    await order(pair, on="site")
    await pair.start("p_1", site="a")
    other = await pair.start("p_2", site="b")
    same = await pair.start("p_2", site="a")
    assert await gates(pair, other) == {"t_21": "holds"}
    assert await gates(pair, same) == {"t_21": "waits"}


async def test_a_dropped_ordering_orders_nobody(pair: Engine) -> None:
    await order(pair)
    await pair.start("p_1")
    two = await pair.start("p_2")
    await pair.rows("select mutirao.drop_ordering('p_1', 'p_2')")
    assert await pair.jobs(two) == {"t_21": "ready"}


async def test_a_circle_of_waits_goes_to_a_person(pair: Engine) -> None:
    """By one ordering the one goes first, by another the other."""
    for p in (1, 2):
        tasks = {f"t_{p}1": {"when": "true", "fires": "once"}, f"t_{p}2": after(f"t_{p}1")}
        await pair.apply(f"p_{p}", {"site": "a"}, tasks | {f"s_{p}1": {"when": "true", "fires": "once"}}, ends="quiet")
    for pairs, flows in (
        ([["t_11", "t_22"], ["t_12", "t_22"]], ("p_1", "p_2")),
        ([["t_21", "t_12"], ["t_22", "t_12"]], ("p_2", "p_1")),
    ):
        await pair.rows(
            "select mutirao.put_ordering(%s)", Jsonb({"first": flows[0], "second": flows[1], "pairs": pairs})
        )
    one, two = await pair.start("p_1"), await pair.start("p_2")
    await pair.do("p_1", "t_11")
    await pair.do("p_2", "t_21")
    assert (await gates(pair, one))["t_12"] == "waits"
    assert (await gates(pair, two))["t_22"] == "waits"
    assert "open.exception" in {await pair.status(one), await pair.status(two)}
    [reason] = [*await pair.reasons(one), *await pair.reasons(two)]
    assert (reason["code"], set(reason["instances"])) == ("wait_circle", {one, two})


async def test_values_of_any_length_are_ordered_and_not_kept(pair: Engine) -> None:
    await order(pair, on="site")
    long = "x" * 100_000
    one, two, other = (
        await pair.start("p_1", site=long),
        await pair.start("p_2", site=long),
        await pair.start("p_2", site=long + "y"),
    )
    assert [await gates(pair, each) for each in (one, two, other)] == [
        {"t_11": "holds"},
        {"t_21": "waits"},
        {"t_21": "holds"},
    ]
    assert not await pair.rows("select from mutirao.stamp s where s.key like '%%xx%%'")


async def test_numbers_are_equal_by_value(engine: Engine) -> None:
    for p in (1, 2):
        tasks = {f"t_{p}": {"when": "true", "fires": "once"}}
        await engine.apply(f"p_{p}", {"n": {"type": "number"}, "j": {"type": "json"}}, tasks, ends="quiet")
    for on in ("n", "j"):
        document = {"first": "p_1", "second": "p_2", "pairs": [["t_1", "t_2"]], "on": on}
        await engine.rows("select mutirao.put_ordering(%s)", Jsonb(document))
        one, two, other = [
            await engine.one("select mutirao.start(%s, %s::jsonb)", flow, state)
            for flow, state in (
                ("p_1", '{"n": 1, "j": [1]}'),
                ("p_2", '{"n": 1.0, "j": [1.0]}'),
                ("p_2", '{"n": 1.5, "j": ["1"]}'),
            )
        ]
        assert [await gates(engine, each) for each in (one, two, other)] == [
            {"t_1": "holds"},
            {"t_2": "waits"},
            {"t_2": "holds"},
        ]
        for each in (one, two, other):
            await engine.cancel(each)


async def test_instances_without_a_value_are_not_ordered(pair: Engine) -> None:
    await order(pair, on="site")
    one, two = [
        await pair.one("select mutirao.start(%s, %s::jsonb)", flow, '{"site": null}') for flow in ("p_1", "p_2")
    ]
    assert await gates(pair, one) == {"t_11": "holds"}
    assert await gates(pair, two) == {"t_21": "holds"}


async def test_an_ordering_on_an_attribute_that_there_is_not_is_refused(pair: Engine) -> None:
    async with pair.refused("unknown_attribute", 'flow "p_1" has no attribute "nonsense"'):
        await order(pair, on="nonsense")
    await pair.apply("p_2", {"place": "a"}, {"t_21": "true", "t_22": after("t_21")}, ends="quiet")
    async with pair.refused("unknown_attribute", 'flow "p_2" has no attribute "site"'):
        await order(pair, on="site")


async def test_a_listed_task_that_another_one_blocks_is_not_waited_for(engine: Engine) -> None:
    once = {"when": "true", "fires": "once"}
    tasks = {"t_11": once, "mid": after("t_11", retries=0), "t_12": after("mid")}
    await engine.apply("p_1", {}, tasks, ends="quiet")
    await engine.apply("p_2", {}, {"t_21": once, "t_22": after("t_21")}, ends="quiet")
    await order(engine)
    await engine.start("p_1")
    two = await engine.start("p_2")
    await engine.do("p_1", "t_11")
    await engine.do("p_2", "t_21")
    assert await gates(engine, two) == {"t_22": "waits"}
    await engine.fail(await engine.take("p_1", "mid"))
    assert await gates(engine, two) == {"t_22": "holds"}


async def test_instances_of_one_flow_keep_an_order(engine: Engine) -> None:
    await engine.apply("p", {}, {"t1": {"when": "true", "fires": "once"}, "t2": after("t1")}, ends="quiet")
    document = {"first": "p", "second": "p", "pairs": [["t1", "t1"], ["t2", "t2"]]}
    await engine.rows("select mutirao.put_ordering(%s)", Jsonb(document))
    one, two, three = [await engine.start("p") for _ in range(3)]
    for task in ("t1", "t2"):
        for each in (one, two, three):
            (job,) = await engine.claim("p", task, room=3)
            assert job.instance == each
            await engine.complete(job)
    assert {await engine.status(each) for each in (one, two, three)} == {"closed.completed"}
    assert not await engine.rows("select from mutirao.owed")


async def test_an_ordering_that_is_changed_orders_from_then_on(engine: Engine) -> None:
    for p in (1, 2):
        tasks = {f"a_{p}": {"when": "true", "fires": "once"}, f"b_{p}": {"when": "x = 1", "fires": "once"}}
        await engine.apply(f"p_{p}", {"x": 0}, tasks, final="x = 9")

    async def put(*pairs: list[str]) -> None:
        document = {"first": "p_1", "second": "p_2", "pairs": pairs}
        await engine.rows("select mutirao.put_ordering(%s)", Jsonb(document))

    await put(["a_1", "a_2"], ["b_1", "b_2"])
    await engine.start("p_1")
    waits = await engine.start("p_2")
    assert await gates(engine, waits) == {"a_2": "waits"}
    await put(["a_1", "a_2"], ["b_1", "b_2"])
    assert await gates(engine, waits) == {"a_2": "waits"}
    await put(["b_1", "b_2"])
    assert await gates(engine, waits) == {"a_2": "holds"}
    await engine.do("p_2", "a_2", x=1)
    assert await gates(engine, waits) == {"b_2": "holds"}
    assert [row for (row,) in await engine.rows("select pair from mutirao.owed")] == [1]


async def test_who_goes_first_is_shown_as_it_is_by_now(pair: Engine) -> None:
    await order(pair)
    first, second = await pair.start("p_1"), await pair.start("p_1")
    last = await pair.start("p_2")
    shown = "select holder_instance from mutirao.gate_waits() where instance = %s"
    assert await pair.one(shown, last) == first
    await pair.cancel(first)
    assert await pair.one(shown, last) == second
    [(why,)] = await pair.rows("select (e).job from mutirao.why(%s, 't_21') e", last)
    assert why["instance"] == second


async def ordered_behind(engine: Engine, tasks: dict[str, Any]) -> tuple[int, int]:
    """The one has these tasks and has done t_11; the other has done t_21, and waits with t_22 for t_12."""
    await engine.apply("p_1", {}, {"t_11": ONCE} | tasks, ends="quiet")
    await engine.apply("p_2", {}, {"t_21": ONCE, "t_22": after("t_21")}, ends="quiet")
    await order(engine)
    one, two = await engine.start("p_1"), await engine.start("p_2")
    await engine.do("p_1", "t_11")
    await engine.do("p_2", "t_21")
    assert await gates(engine, two) == {"t_22": "waits"}
    return one, two


async def test_going_back_keeps_the_order(engine: Engine) -> None:
    one, two = await ordered_behind(engine, {"mid": after("t_11"), "t_12": after("mid")})
    await engine.do("p_1", "mid")
    await engine.rows("select mutirao.go_back(%s, 'mid')", one)
    assert await engine.jobs(one) == {"mid": "ready"}
    assert await gates(engine, two) == {"t_22": "waits"}
    await engine.do("p_1", "mid")
    await engine.do("p_1", "t_12")
    assert await gates(engine, two) == {"t_22": "holds"}


async def test_rolling_back_to_a_safe_point_keeps_the_order(engine: Engine) -> None:
    tasks = {"mid": after("t_11", compensation="unmid", safe_point=True), "t_12": after("mid"), "unmid": {}}
    tasks |= {"next": after("mid", compensation="back"), "back": {}}
    one, two = await ordered_behind(engine, tasks)
    await engine.do("p_1", "mid")
    await engine.do("p_1", "next")
    await engine.rows("select mutirao.roll_back(%s, 'mid')", one)
    assert await engine.jobs(one) == {"back": "ready"}
    assert await gates(engine, two) == {"t_22": "waits"}
    await engine.do("p_1", "back")
    assert await engine.jobs(one) == {"next": "ready", "t_12": "ready"}
    assert await gates(engine, two) == {"t_22": "waits"}


async def test_who_is_rolled_back_as_a_whole_is_not_waited_for(engine: Engine) -> None:
    tasks = {"mid": after("t_11", compensation="unmid"), "t_12": after("mid"), "unmid": {}}
    one, two = await ordered_behind(engine, tasks)
    await engine.do("p_1", "mid")
    await engine.rows("select mutirao.roll_back(%s)", one)
    assert await engine.jobs(one) == {"unmid": "ready"}
    assert await gates(engine, two) == {"t_22": "holds"}


async def test_who_is_cancelled_is_waited_for_only_with_what_runs(engine: Engine) -> None:
    one, two = await ordered_behind(engine, {"long": ONCE, "t_12": after("t_11")})
    three = await engine.start("p_2")
    await engine.take("p_1", "long")
    t_12 = await engine.take("p_1", "t_12")
    await engine.do("p_2", "t_21")
    await engine.cancel(one)
    assert await gates(engine, two) == await gates(engine, three) == {"t_22": "waits"}
    await engine.complete(t_12)
    assert await engine.jobs(one) == {"long": "running"}
    assert await gates(engine, two) == await gates(engine, three) == {"t_22": "holds"}


async def test_a_cancel_of_the_first_releases_the_other_though_something_runs(engine: Engine) -> None:
    one, two = await ordered_behind(engine, {"long": ONCE, "t_12": after("long")})
    await engine.take("p_1", "long")
    await engine.cancel(one)
    assert await gates(engine, two) == {"t_22": "holds"}


async def test_a_branch_that_was_not_taken_is_not_waited_for(engine: Engine) -> None:
    """t_12 is for when mid fails, and mid succeeds."""
    tasks = {"mid": ONCE, "t_12": after("mid", "failed"), "long": after("mid")}
    _, two = await ordered_behind(engine, tasks)
    await engine.do("p_1", "mid")
    assert await gates(engine, two) == {"t_22": "holds"}


async def test_what_was_blocked_before_its_instance_took_its_place_is_not_waited_for(engine: Engine) -> None:
    tasks = {"mid": ONCE, "t_12": after("mid"), "go": ONCE, "t_11": after("go")}
    await engine.apply("p_1", {}, tasks, ends="quiet")
    await engine.apply("p_2", {}, {"t_21": ONCE, "t_22": ONCE}, ends="quiet")
    await order(engine)
    one = await engine.start("p_1")
    await engine.fail(await engine.take("p_1", "mid"))
    await engine.do("p_1", "go")
    two = await engine.start("p_2")
    assert await gates(engine, two) == {"t_21": "waits", "t_22": "holds"}
    await engine.retry(await engine.job(one, "mid"))
    three = await engine.start("p_2")
    assert (await gates(engine, three))["t_22"] == "waits"


async def test_a_task_that_its_version_has_no_more_is_not_waited_for(engine: Engine) -> None:
    _, two = await ordered_behind(engine, {"mid": after("t_11"), "t_12": after("mid")})
    await engine.apply("p_1", {}, {"t_11": ONCE, "mid": after("t_11"), "other": after("mid")}, ends="quiet")
    await drive(engine, await engine.one("select mutirao.migrate_flow('p_1')"))
    assert await gates(engine, two) == {"t_22": "holds"}


async def test_what_becomes_a_task_that_is_not_listed_waits_no_more(engine: Engine) -> None:
    """And leaves nothing behind that others would be kept back by: more of them than are looked at at once."""
    await engine.apply("p_1", {}, {"t_11": ONCE, "t_12": after("t_11")}, ends="quiet")
    await engine.apply("p_2", {}, {"t_21": ONCE, "t_22": after("t_21")}, ends="quiet")
    await order(engine)
    await engine.start("p_1")
    await engine.start_many("p_2", [{}] * 300)
    await engine.apply("p_2", {}, {"free": ONCE, "t_21": after("free"), "t_22": after("t_21")}, ends="quiet")
    moved = "select mutirao.migrate_flow('p_2', tasks => %s)"
    await drive(engine, await engine.one(moved, Jsonb({"t_21": "free"})))
    assert not await engine.rows("select from mutirao.order_wait")
    assert not await engine.rows("select from mutirao.job where waits_for is not null")
    assert len(await engine.claim("p_2", "free", room=500)) == 300


async def test_a_live_flow_that_is_redefined_keeps_its_ordering(engine: Engine) -> None:
    for p in (1, 2):
        await engine.create(f"p_{p}", {"x": ""}, {f"t_{p}1": "x = ''", f"t_{p}2": "x = 'next'"}, "x = 'done'")
    await order(engine)
    for p in (1, 2):
        await engine.rows(f"insert into p_{p}.wed_attr (aname, adv) values ('more', 'y')")
        await engine.rows(f"delete from p_{p}.wed_trig where trname = 't_{p}2'")
        await engine.rows(f"insert into p_{p}.wed_trig (trname, cpred) values (%s, %s)", f"t_{p}2", "more = 'y'")
    await engine.until_caught_up()
    await engine.start("p_1")
    two = await engine.start("p_2")
    assert await gates(engine, two) == {"t_21": "waits", "t_22": "waits"}


async def test_two_turns_of_one_transaction_let_on_whoever_waited(pair: Engine) -> None:
    await pair.rows("select mutirao.put_class('any', '{}')")
    await order(pair)
    await pair.start_many("p_1", [{}] * 2)
    two = await pair.start("p_2")
    turn = (
        "select * from mutirao.turn('w', %s::bigint[], %s::bigint[], '{\"{}\"}'::jsonb[], '{null}'::jsonb[], '{}', 0)"
    )
    jobs = await pair.claim("p_1", "t_11", room=2)
    async with pair.session() as session, session.transaction():
        for job in jobs:
            await session.execute(turn.encode(), [[job.id], [job.attempt]])
    assert await gates(pair, two) == {"t_21": "holds"}


@pytest.mark.parametrize("task_class", [None, "crane"])
async def test_whoever_has_no_place_yet_follows_the_value_of_its_attribute(
    engine: Engine, task_class: str | None
) -> None:
    await engine.rows("select mutirao.put_class('crane', '{}')")
    for p in (1, 2):
        tasks = {f"t_{p}1": ONCE | {"task_class": task_class}, f"t_{p}2": after(f"t_{p}1")}
        await engine.apply(f"p_{p}", {"site": "a"}, tasks, ends="quiet")
    await order(engine, on="site")
    await engine.start("p_1", site="a")
    other = await engine.start("p_1", site="b")
    two = await engine.start("p_2", site="a")
    await engine.set(two, site="b")
    shown = "select holder_instance from mutirao.gate_waits() where instance = %s"
    assert await engine.one(shown, two) == other
    await engine.set(two, site="c")
    assert await gates(engine, two) == {"t_21": "holds"}
    assert not await engine.rows("select from mutirao.order_wait")


async def test_whoever_has_its_place_keeps_it_whatever_becomes_of_its_attribute(pair: Engine) -> None:
    await order(pair, on="site")
    one, two = await pair.start("p_1"), await pair.start("p_2")
    await pair.set(one, site="b")
    assert await gates(pair, two) == {"t_21": "waits"}
    await pair.do("p_1", "t_11")
    await pair.do("p_2", "t_21")
    await pair.set(two, site="b")
    assert await gates(pair, two) == {"t_22": "waits"}
    await pair.do("p_1", "t_12")
    assert await gates(pair, two) == {"t_22": "holds"}


async def test_by_which_ordering_a_job_waits_is_told(pair: Engine) -> None:
    await order(pair)
    one, two = await pair.start("p_1"), await pair.start("p_2")
    answer = await pair.one("select answer from mutirao.why(%s, 't_21')", two)
    assert answer.endswith(f": instance {one} goes first by the ordering of p_1 and p_2")
    assert await pair.rows("select kind, holder_instance, ordering from mutirao.gate_waits()") == [
        ("ordering", one, "p_1: p_2")
    ]

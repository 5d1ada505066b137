"""Circles of waits, across orderings, classes and children: who is in one is an exception, and nobody else."""

from typing import Any

import psycopg
import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb
from staff import Office

ONCE: dict[str, Any] = {"when": "true", "fires": "once", "retries": 0}


async def order(engine: Engine, first: str, second: str, *pairs: list[str]) -> None:
    await engine.rows("select mutirao.put_ordering(%s)", Jsonb({"first": first, "second": second, "pairs": pairs}))


async def exclusive(engine: Engine, name: str) -> None:
    await engine.rows("select mutirao.put_class(%s, '{}')", name)
    await engine.rows("select mutirao.put_class(%s, %s)", name, [name])


async def cross(engine: Engine, **more: Any) -> None:
    """By one ordering the one goes first, by another the other."""
    for p in (1, 2):
        tasks = {f"t_{p}1": ONCE, f"t_{p}2": after(f"t_{p}1", retries=0, **more)}
        await engine.apply(f"p_{p}", {}, tasks, ends="quiet")
    await order(engine, "p_1", "p_2", ["t_11", "t_22"], ["t_12", "t_22"])
    await order(engine, "p_2", "p_1", ["t_21", "t_12"], ["t_22", "t_12"])


@pytest.fixture(name="crossed")
async def crossed_flows(engine: Engine) -> tuple[Engine, int, int]:
    """The second one to wait closes the circle."""
    await cross(engine)
    one, two = await engine.start("p_1"), await engine.start("p_2")
    await engine.do("p_1", "t_11")
    await engine.do("p_2", "t_21")
    return engine, one, two


async def test_a_circle_is_an_exception_with_its_reason(crossed: tuple[Engine, int, int]) -> None:
    engine, one, two = crossed
    assert [await engine.status(each) for each in (one, two)] == ["open.running", "open.exception"]
    [reason] = await engine.reasons(two)
    assert reason["code"] == "wait_circle"
    assert reason["job"] == await engine.job(two, "t_22")
    assert reason["instances"] == [two, one, two]
    assert reason["error"] == f"instances wait for each other: {two} → {one} → {two}"
    assert await engine.jobs(two) == {"t_22": "waiting", "_EXCPT": "ready"}


async def test_a_repair_that_leaves_the_circle_leaves_the_exception(crossed: tuple[Engine, int, int]) -> None:
    engine, _, two = crossed
    await engine.repair(two)
    assert await engine.codes(two) == ["wait_circle"]
    assert await engine.status(two) == "open.exception"


async def test_skipping_the_job_that_waits_gets_both_out(crossed: tuple[Engine, int, int]) -> None:
    engine, one, two = crossed
    await engine.skip(await engine.job(two, "t_22"))
    assert await engine.status(two) == "closed.completed"
    await engine.do("p_1", "t_12")
    assert await engine.status(one) == "closed.completed"
    assert not await engine.rows("select from mutirao.wait_circle")


async def test_the_exception_ends_with_the_circle(crossed: tuple[Engine, int, int]) -> None:
    engine, one, two = crossed
    await engine.cancel(one)
    assert await engine.status(two) == "open.running"
    assert await engine.jobs(two) == {"t_22": "ready"}
    assert not await engine.rows("select from mutirao.wait_circle")


async def test_the_exception_ends_with_the_ordering(crossed: tuple[Engine, int, int]) -> None:
    engine, _, two = crossed
    await engine.rows("select mutirao.drop_ordering('p_1', 'p_2')")
    assert await engine.status(two) == "open.running"
    assert await engine.jobs(two) == {"t_22": "ready"}


async def test_who_rests_waits_for_nobody(crossed: tuple[Engine, int, int]) -> None:
    engine, _, two = crossed
    await engine.suspend(two)
    assert await engine.reasons(two) == []
    await engine.resume(two)
    assert await engine.codes(two) == ["wait_circle"]
    assert await engine.status(two) == "open.exception"


async def test_a_busy_instance_is_told_by_a_clock(crossed: tuple[Engine, int, int]) -> None:
    """Whoever lets others through never waits, so the reason goes when whoever writes the instance is done."""
    engine, one, two = crossed
    async with engine.session() as other:
        await other.execute("begin")
        await other.execute("select from mutirao.instance where id = %s for no key update", [two])
        await engine.cancel(one)
        assert await engine.codes(two) == ["wait_circle"]
        await other.execute("commit")
    await engine.tick()
    assert await engine.status(two) == "open.running"
    assert "_EXCPT" not in await engine.jobs(two)


async def test_a_child_that_waits_for_its_parents_class(engine: Engine) -> None:
    await exclusive(engine, "crane")
    await engine.apply("kid", {}, {"a": ONCE | {"task_class": "crane"}}, ends="quiet")
    await engine.apply("parent", {}, {"p": ONCE | {"child": "kid", "task_class": "crane"}}, ends="quiet")
    parent = await engine.start("parent")
    await engine.tick()
    kid = await engine.one("select instance from mutirao.child where parent = %s", parent)
    [reason] = await engine.reasons(kid)
    assert (reason["code"], reason["instances"]) == ("wait_circle", [kid, parent, kid])
    await engine.rows("select mutirao.drop_class('crane')")
    assert await engine.status(kid) == "open.running"
    await engine.do("kid", "a")
    await engine.tick()
    assert await engine.status(parent) == "closed.completed"


@pytest.fixture(name="busy")
async def circle_that_a_running_job_breaks(engine: Engine) -> tuple[Engine, int, int]:
    """The one waits for the other by an ordering, and the other for a class that a running job of the one has."""
    await exclusive(engine, "crane")
    await engine.apply("p_1", {}, {"a": ONCE | {"task_class": "crane"}, "z": ONCE, "t_11": after("z")}, ends="quiet")
    await engine.apply("p_2", {}, {"t_20": ONCE, "t_21": after("t_20", task_class="crane")}, ends="quiet")
    await order(engine, "p_1", "p_2", ["t_11", "t_21"], ["t_11", "t_20"])
    two = await engine.start("p_2")
    return engine, await engine.start("p_1"), two


async def test_a_job_that_runs_closes_no_circle(busy: tuple[Engine, int, int]) -> None:
    engine, one, two = busy
    a = await engine.take("p_1", "a")
    await engine.do("p_2", "t_20")
    await engine.do("p_1", "z")
    assert (await engine.jobs(one))["t_11"] == (await engine.jobs(two))["t_21"] == "waiting"
    assert await engine.status(one) == await engine.status(two) == "open.running"
    await engine.complete(a)
    await engine.do("p_2", "t_21")
    await engine.do("p_1", "t_11")
    assert await engine.status(one) == await engine.status(two) == "closed.completed"
    assert not await engine.rows("select from mutirao.wait_circle")


async def test_a_circle_that_closes_when_another_job_ends(engine: Engine) -> None:
    """Nobody begins to wait: the one job ends that could have led to what the other waits for."""
    await engine.apply(
        "p_1", {}, {"t_11": ONCE, "r": after("t_11"), "s_1": after("t_11"), "t_12": after("s_1")}, ends="quiet"
    )
    await engine.apply("p_2", {}, {"s_2": ONCE, "u_2": ONCE, "t_22": after("s_2")}, ends="quiet")
    await order(engine, "p_1", "p_2", ["t_11", "u_2"], ["t_12", "t_22"])
    await order(engine, "p_2", "p_1", ["s_2", "r"], ["t_22", "s_1"])
    one, two = await engine.start("p_1"), await engine.start("p_2")
    s_2 = await engine.take("p_2", "s_2")
    await engine.do("p_1", "t_11")
    await engine.complete(s_2)
    r = await engine.take("p_1", "r")
    assert (await engine.jobs(one))["s_1"] == (await engine.jobs(two))["t_22"] == "waiting"
    await engine.tick()
    assert await engine.status(one) == await engine.status(two) == "open.running"
    await engine.complete(r)
    await engine.tick()
    assert "open.exception" in {await engine.status(one), await engine.status(two)}


async def test_a_circle_that_a_changed_class_closes(engine: Engine) -> None:
    for name in ("a", "b"):
        await exclusive(engine, name)
    await engine.apply("kid", {}, {"k": ONCE | {"task_class": "b"}}, ends="quiet")
    await engine.apply("parent", {}, {"p": ONCE | {"child": "kid", "task_class": "a"}}, ends="quiet")
    await engine.apply("other", {}, {"o": ONCE | {"task_class": "b"}}, ends="quiet")
    await engine.start("other")
    parent = await engine.start("parent")
    await engine.tick()
    kid = await engine.one("select instance from mutirao.child where parent = %s", parent)
    assert await engine.status(kid) == "open.running"
    await engine.rows("select mutirao.put_class('b', '{a,b}')")
    [reason] = await engine.reasons(kid)
    assert reason["instances"] == [kid, parent, kid]
    await engine.rows("select mutirao.put_class('b', '{b}')")
    await engine.tick()
    assert await engine.status(kid) == "open.running"


async def test_a_circle_behind_very_many_is_found(engine: Engine) -> None:
    """The last of those that go first is the one that waits in turn; the others can go on."""
    await engine.apply("p_1", {}, {"t_11": ONCE, "go": after("t_11"), "t_12": after("go")}, ends="quiet")
    await engine.apply("p_2", {}, {"t_21": ONCE, "t_22": after("t_21", retries=0)}, ends="quiet")
    await order(engine, "p_1", "p_2", ["t_11", "t_22"], ["t_12", "t_22"])
    await order(engine, "p_2", "p_1", ["t_21", "t_12"], ["t_22", "t_12"])
    *_, last = await engine.start_many("p_1", [{}] * 250)
    two = await engine.start("p_2")
    await engine.turn([(job, {}) for job in await engine.claim("p_1", "t_11", room=250)])
    for job in await engine.claim("p_1", "go", room=250):
        await (engine.complete if job.instance == last else engine.release)(job)
    await engine.do("p_2", "t_21")
    [reason] = await engine.reasons(two)
    assert reason["instances"] == [two, last, two]


async def test_the_circle_that_is_told_is_the_one_there_is(engine: Engine) -> None:
    """Two are in a circle with the same one, and one of them is cancelled."""
    await cross(engine)
    ones = await engine.start_many("p_1", [{}] * 2)
    two = await engine.start("p_2")
    await engine.turn([(job, {}) for job in await engine.claim("p_1", "t_11", room=2)])
    await engine.do("p_2", "t_21")
    [reason] = await engine.reasons(two)
    gone = reason["instances"][1]
    await engine.cancel(gone)
    await engine.tick()
    [left] = [each for each in ones if each != gone]
    [reason] = await engine.reasons(two)
    assert reason["instances"] == [two, left, two]


async def test_a_job_that_is_parked_waits_for_the_others_of_its_instance(engine: Engine) -> None:
    await engine.apply("p_1", {"done": False}, {"x": ONCE, "y": ONCE}, final="done")
    await engine.apply("p_2", {}, {"c": ONCE, "b": after("c"), "d": after("b")}, ends="quiet")
    await order(engine, "p_1", "p_2", ["x", "b"])
    await order(engine, "p_2", "p_1", ["c", "y"], ["d", "y"])
    two, one = await engine.start("p_2"), await engine.start("p_1")
    await engine.do("p_2", "c")
    assert await engine.status(one) == await engine.status(two) == "open.running"
    assert await engine.do("p_1", "x", done=True) == "parked"
    [reason] = await engine.reasons(one)
    assert reason["instances"] == [one, one, two, one]


@pytest.fixture(name="office")
async def clerks(engine: Engine) -> Office:
    office = Office(engine)
    await office.hire("clerk_1", "clerk")
    await office.hire("manager", "administrator")
    return office


async def test_work_items_that_nobody_can_take_are_in_a_circle(engine: Engine, office: Office) -> None:
    await cross(engine, offer={"role": "clerk"})
    one, two = await engine.start("p_1"), await engine.start("p_2")
    await engine.do("p_1", "t_11")
    assert await engine.status(one) == "open.running"
    await engine.do("p_2", "t_21")
    [reason] = await engine.reasons(two)
    assert reason["instances"] == [two, one, two]
    for instance, task in ((one, "t_12"), (two, "t_22")):
        with pytest.raises(psycopg.Error, match="class_held"):
            await office.select("clerk_1", await engine.job(instance, task))
    await engine.suspend(two)
    await engine.tick()
    assert await engine.reasons(two) == []
    await engine.resume(two)
    assert await engine.codes(two) == ["wait_circle"]
    await engine.skip(await engine.job(one, "t_12"))
    await engine.tick()
    assert await engine.status(two) == "open.running"
    await office.select("clerk_1", await engine.job(two, "t_22"))


async def test_a_work_item_of_a_child_whose_parent_has_its_class(engine: Engine, office: Office) -> None:
    await exclusive(engine, "crane")
    await engine.apply("kid", {}, {"a": ONCE | {"task_class": "crane", "offer": {"role": "clerk"}}}, ends="quiet")
    await engine.apply("parent", {}, {"p": ONCE | {"child": "kid", "task_class": "crane"}}, ends="quiet")
    parent = await engine.start("parent")
    await engine.tick()
    kid = await engine.one("select instance from mutirao.child where parent = %s", parent)
    assert await engine.codes(kid) == ["wait_circle"]
    await engine.rows("select mutirao.drop_class('crane')")
    await engine.tick()
    await office.select("clerk_1", await engine.job(kid, "a"))


async def test_many_ways_are_not_all_walked(engine: Engine) -> None:
    """Twelve layers of eight that all wait for the layer before: 8 ** 12 ways, and each job is visited once."""
    await engine.rows(
        """insert into mutirao.order_wait (job, instance, ordering, pair, side, key, stamp)
        select l * 10 + k, l * 10 + k, l, 1, 1, '', 100 from generate_series(1, 12) l, generate_series(0, 7) k"""
    )
    await engine.rows(
        """insert into mutirao.owed (ordering, pair, side, key, stamp, instance, task)
        select l, 1, 2, '', k, l %% 12 * 10 + 10 + k, 1 from generate_series(1, 12) l, generate_series(0, 7) k"""
    )
    await engine.apply("f", {}, {"a": ONCE}, ends="quiet")
    await engine.rows(
        """insert into mutirao.instance (id, flow, version, status, state, pending, started_at)
        select l * 10 + k, f.id, f.version, 'open.running', '{}', '{1}', mutirao.now()
        from mutirao.flow f, generate_series(1, 12) l, generate_series(0, 7) k"""
    )
    await engine.rows(
        """insert into mutirao.job (id, instance, flow, task, status, due_at, gate, cause, created_at)
        select i.id, i.id, i.flow, 1, 'waiting', 'infinity', 'waits', 0, mutirao.now() from mutirao.instance i"""
    )
    async with engine.session() as session:
        await session.execute("set statement_timeout = '5s'")
        found = await session.execute("select cardinality(circle) from mutirao.find_circle(10, 1000)")
        assert await found.fetchone() == (13,)

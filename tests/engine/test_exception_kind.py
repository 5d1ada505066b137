"""Exceptions by what is wrong: how many of each kind, since when, one of them, and the batch that repairs them all."""

from typing import Any

import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb

ASK = "select code, task, error, instances, example, repair, chosen from mutirao.exceptions(%s)"


async def order(engine: Engine) -> None:
    """It is charged, or runs into a dead end; to free what was packed fails as often as one likes."""
    tasks: dict[str, Any] = {
        "free": {"stands_by": True},
        "pack": {"when": "n = 1", "fires": "once", "compensation": "free"},
        "charge": after("pack", retries=0),
        "send": after("charge", critical=True),
        "tell": after("send", on_failure="roll_back", retries=0),
        "halve": {"when": "n = 2", "fires": "once"},
        "quarter": {"when": "n = 3 and 6 / part > 0"},
    }
    await engine.apply("order", {"n": 1, "part": 1}, tasks, final="n = 9")


async def kinds(engine: Engine, flow: str | None = None) -> list[Any]:
    return await engine.rows(ASK, flow)


async def repair_all(engine: Engine, kind: Any, **arguments: Any) -> tuple[int, int]:
    """How many it was done to, and refused to."""
    batch = await engine.one(
        "select mutirao.make_batch(%s, %s, %s, 'seen to', 'operator_1')", kind[5], Jsonb(kind[6]), Jsonb(arguments)
    )
    while await engine.one("select mutirao.step_batch(%s)", batch) is not None:
        pass
    [counts] = await engine.rows("select done, refused from mutirao.batch where id = %s", batch)
    return (counts[0], counts[1])


async def fail_charge(engine: Engine, error: str) -> int:
    instance = await engine.start("order")
    await engine.do("order", "pack")
    await engine.fail_for_good(await engine.take("order", "charge"), error)
    return instance


async def test_alike_are_counted_together_and_the_most_frequent_comes_first(engine: Engine) -> None:
    await order(engine)
    gone = [await fail_charge(engine, f"order {n} is not there") for n in (4711, 17, 9)]
    down = await fail_charge(engine, 'KeyError: "card"')
    stuck = await engine.start("order", n=2)
    await engine.do("order", "halve", n=5)
    charge = {"flow": "order", "task": "charge"}
    assert await kinds(engine) == [
        ("task_failed", "charge", "order…", 3, gone[0], "retry", {**charge, "error": "order"}),
        ("task_failed", "charge", 'KeyError: "card"', 1, down, "retry", {**charge, "error": "KeyError:"}),
        (
            "nothing_fires",
            None,
            None,
            1,
            stuck,
            "repair",
            {"flow": "order", "exception": "nothing_fires"},
        ),
    ]


async def test_a_batch_repairs_all_of_a_kind_and_no_others(engine: Engine) -> None:
    await order(engine)
    gone = [await fail_charge(engine, f"order {n} is not there") for n in range(3)]
    down = await fail_charge(engine, "no network")
    stuck = await engine.start("order", n=2)
    await engine.do("order", "halve", n=5)
    first, second, third = await kinds(engine, "order")
    assert await repair_all(engine, first) == (3, 0)
    assert [(await engine.jobs(each))["charge"] for each in (*gone, down)] == ["ready"] * 3 + ["failed"]
    steps = [(await engine.trace(each))[-1] for each in gone]
    assert {(step.kind, step.writer, (step.note or {})["reason"]) for step in steps} == {
        ("retry", "operator_1", "seen to")
    }
    dead_end = third if third[0] == "nothing_fires" else second
    assert await repair_all(engine, dead_end, change={"n": 9}) == (1, 0)
    assert await engine.status(stuck) == "closed.completed"
    last = (await engine.trace(stuck))[-1]
    assert (last.kind, last.writer, last.note) == ("repair", "operator_1", {"reason": "seen to"})
    assert [kind[:2] for kind in await kinds(engine)] == [("task_failed", "charge")]


async def test_a_compensation_that_failed_is_among_them(engine: Engine) -> None:
    await order(engine)
    instance = await engine.start("order")
    await engine.do("order", "pack")
    await engine.rows("select mutirao.roll_back(%s)", instance)
    await engine.fail_for_good(await engine.take("order", "free"), "no hands")
    [kind] = await kinds(engine)
    assert kind[:5] == ("compensation_failed", "free", "no hands", 1, instance)
    assert await repair_all(engine, kind) == (1, 0)
    assert await kinds(engine) == []
    await engine.do("order", "free")
    assert await engine.status(instance) == "closed.terminated"


async def test_what_a_critical_task_keeps_from_being_undone_is_tried_again(engine: Engine) -> None:
    await order(engine)
    instance = await engine.start("order")
    for task in ("pack", "charge", "send"):
        await engine.do("order", task)
    await engine.fail_for_good(await engine.take("order", "tell"), "no answer")
    assert await engine.codes(instance) == ["task_failed", "critical_task"]
    [kind] = await kinds(engine)
    assert kind[:4] == ("task_failed", "tell", "no answer", 1)
    assert await repair_all(engine, kind) == (1, 0)
    assert await engine.jobs(instance) == {"tell": "ready"}


async def test_who_is_interrupted_or_taken_by_a_person_to_be_repaired(engine: Engine) -> None:
    """An instance that is interrupted is no exception now; one that somebody repairs still is."""
    await order(engine)
    taken, interrupted = await fail_charge(engine, "no"), await fail_charge(engine, "no")
    await engine.suspend(interrupted)
    await engine.take("order", "_EXCPT")
    [kind] = await kinds(engine)
    assert (kind[3], kind[4]) == (1, taken)


async def test_what_somebody_could_not_repair_is_still_among_them(engine: Engine) -> None:
    await order(engine)
    await fail_charge(engine, "no")
    await engine.fail(await engine.take("order", "_EXCPT"), "I do not know")
    [kind] = await kinds(engine)
    assert kind[:4] == ("task_failed", "charge", "no", 1)


async def stuck_in_all_ways(engine: Engine) -> list[int]:
    """Untouched, tried in vain, in somebody's hands, and one whose rolling back has failed; a fifth is interrupted, so it is none now."""
    rolled_back = await engine.start("order")
    await engine.do("order", "pack")
    await engine.rows("select mutirao.roll_back(%s)", rolled_back)
    await engine.fail_for_good(await engine.take("order", "free"), "no hands")
    tried = await fail_charge(engine, "no")
    await engine.fail(await engine.take("order", "_EXCPT"), "I do not know")
    taken = await fail_charge(engine, "no")
    await engine.take("order", "_EXCPT")
    await engine.suspend(await fail_charge(engine, "no"))
    return [await fail_charge(engine, "no"), taken, tried, rolled_back]


async def test_whoever_asks_in_whatever_way_is_told_of_the_same_exceptions(engine: Engine) -> None:
    await order(engine)
    stuck = await stuck_in_all_ways(engine)
    boss = await engine.one("select mutirao.add_person(null, 'boss', roles => '{administrator}')")
    one_by_one = "select instance from mutirao.exceptional(%s, %s, before => %s, room => %s)"
    assert [number for (number,) in await engine.rows(one_by_one, boss, None, None, 50)] == stuck
    assert [number for (number,) in await engine.rows(one_by_one, boss, "order", stuck[0], 2)] == stuck[1:3]
    assert await engine.one("select mutirao.count_exceptional(%s)", boss) == 4
    by_filter = """select ids from mutirao.find_instances(null, '{"status": "open.exception"}', null, 50)"""
    assert await engine.one(by_filter) == stuck
    assert sum(kind[3] for kind in await kinds(engine)) == 4
    assert await engine.one("select exceptions from mutirao.instance_counts()") == 4


async def test_among_too_many_to_be_counted_each_exception_is(engine: Engine) -> None:
    """Of 2,000 instances some pages are read as a sample; of more exceptions than ten that many are known to be there."""
    await order(engine)
    await engine.apply("calm", {"n": 1}, {"go": "n = 1"}, final="n = 9")
    await stuck_in_all_ways(engine)
    await engine.start_many("calm", [{}] * 2000)
    tally = (
        "select t.count, t.is_exact from mutirao.instance_tally(100000, 1) t join mutirao.flow f on f.id = t.flow"
        " where f.name = %s and t.status = %s::mutirao.instance_status"
    )
    assert await engine.rows(tally, "order", "open.exception") == [(4, True)]
    assert await engine.rows(tally, "calm", "open.exception") == []
    [(about, is_exact)] = await engine.rows(tally, "calm", "open.running")
    assert 1_000 < about < 4_000
    assert not is_exact
    for _ in range(8):
        await fail_charge(engine, "no")
    [(about, is_exact)] = await engine.rows(tally, "order", "open.exception")
    assert about >= 10
    assert not is_exact


async def test_an_error_that_begins_with_a_number_is_a_kind_of_its_own(engine: Engine) -> None:
    await order(engine)
    missing, down = await fail_charge(engine, "404 not found"), await fail_charge(engine, "bank is down")
    [kind] = [kind for kind in await kinds(engine) if kind[4] == missing]
    assert kind[2:4] == ("404 not found", 1)
    assert await repair_all(engine, kind) == (1, 0)
    assert [kind[4] for kind in await kinds(engine)] == [down]


async def test_a_change_on_which_a_condition_raises_is_given_anew(engine: Engine) -> None:
    await order(engine)
    instance = await engine.start("order", n=2)
    await engine.do("order", "halve", n=3, part=0)
    [kind] = await kinds(engine)
    assert kind[:6] == ("condition_failed", "quarter", "division by zero", 1, instance, "skip")
    assert await repair_all(engine, kind, change={"n": 3, "part": 1}) == (1, 0)
    assert await engine.jobs(instance) == {"quarter": "ready"}


async def test_it_tells_since_when(engine: Engine) -> None:
    await order(engine)
    await fail_charge(engine, "no")
    await engine.advance(hours=3)
    await fail_charge(engine, "no")
    assert await engine.one("select latest - since >= interval '3 hours' from mutirao.exceptions()")


async def test_a_flow_or_an_exception_that_is_not_there(engine: Engine) -> None:
    await order(engine)
    async with engine.refused("unknown_flow", 'there is no flow "ordre"'):
        await kinds(engine, "ordre")
    async with engine.refused("wrong_call", 'there is no exception "stuck"; there are task_failed, nothing_fires'):
        await engine.rows('select mutirao.make_batch(\'cancel\', \'{"flow": "order", "exception": "stuck"}\')')


@pytest.mark.parametrize(
    ("kind", "arguments", "traced"),
    [
        ("set", {"change": {"part": 2}}, "set"),
        ("repair", {"change": {"part": 2}}, "repair"),
        ("retry", {}, "retry"),
        ("skip", {"change": {"part": 2}}, "skip"),
        ("start_task", {"task": "halve"}, "start_task"),
        ("go_back", {"task": "pack"}, "go_back"),
        ("roll_back", {}, "roll_back"),
        ("cancel", {}, "cancel"),
        ("suspend", {}, "suspend"),
    ],
)
async def test_whatever_is_done_to_many_is_recorded_of_each_with_person_and_reason(
    engine: Engine, kind: str, arguments: dict[str, Any], traced: str
) -> None:
    await order(engine)
    instances = [await fail_charge(engine, "no network") for _ in range(3)]
    chosen = (*range(5), kind, {"flow": "order", "exception": "task_failed"})
    assert await repair_all(engine, chosen, **arguments) == (3, 0)
    for instance in instances:
        [step] = [step for step in await engine.trace(instance) if step.kind == traced and step.writer == "operator_1"]
        assert (step.note or {})["reason"] == "seen to"

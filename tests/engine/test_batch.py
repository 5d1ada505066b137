"""Batches: one thing done to all instances that a filter chooses, step by step, by whoever is there."""

from typing import Any

import pytest
from batch_driver import Count, count, drive, make_batch, refusals, run_batch, step
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb


async def orders(engine: Engine, number: int = 10) -> list[int]:
    """Instances that wait for the task `pack`; `n` counts them from 0."""
    await engine.apply(
        "order",
        {"stage": "new", "n": 0, "paid": False},
        {"pack": "stage = 'new'", "send": "stage = 'packed'"},
        final="stage = 'sent'",
    )
    return await engine.start_many("order", [{"n": n} for n in range(number)])


async def fail_all(engine: Engine, error: str = "no luck") -> None:
    jobs = await engine.claim("order", "pack", room=1000)
    for job in jobs:
        await engine.fail(job, error, final=True)


# ------------------------------------------------------------------------------------------------------------- kinds


async def test_cancel_ends_all_instances_of_a_flow_and_no_other(engine: Engine) -> None:
    chosen = await orders(engine)
    await engine.apply("other", {"a": 1}, {"go": "a = 1"})
    other = await engine.start("other")
    assert await run_batch(engine, "cancel", flow="order") == Count("finished", 10, 10, 0, 0)
    assert {await engine.status(each) for each in chosen} == {"closed.aborted"}
    assert await engine.status(other) == "open.running"
    assert (await engine.trace(chosen[0]))[-1][:2] == ("cancel", None)
    assert (await engine.trace(chosen[0]))[-1].note == {"reason": "a test"}


async def test_what_runs_may_finish_when_its_instance_is_cancelled(engine: Engine) -> None:
    chosen = await orders(engine, 2)
    job = await engine.take("order", "pack")
    await run_batch(engine, "cancel", flow="order")
    assert await engine.jobs(chosen[0]) == {"pack": "running"}
    await engine.complete(job, stage="packed")
    assert [await engine.status(each) for each in chosen] == ["closed.aborted"] * 2
    assert await engine.jobs(chosen[0]) == {}


async def test_set_writes_a_change_to_each_and_looks(engine: Engine) -> None:
    chosen = await orders(engine, 3)
    await run_batch(engine, "set", flow="order", change={"paid": True, "stage": "packed"})
    assert await engine.state(chosen[2]) == {"stage": "packed", "n": 2, "paid": True}
    assert await engine.jobs(chosen[2]) == {"pack": "ready", "send": "ready"}


async def test_set_tells_those_it_was_refused_for(engine: Engine) -> None:
    chosen = await orders(engine, 5)
    job = await engine.take("order", "pack")
    await engine.complete(job, stage="odd")  # nothing fires and nothing is pending: it may become final
    batch = await make_batch(engine, "set", flow="order", change={"stage": "sent"})
    assert await drive(engine, batch) == Count("finished", 5, 1, 0, 4)
    assert await engine.status(chosen[0]) == "closed.completed"
    assert await refusals(engine, batch) == [(each, "final_blocked") for each in chosen[1:]]
    assert await engine.state(chosen[1]) == {"stage": "new", "n": 1, "paid": False}


async def test_suspend_and_resume(engine: Engine) -> None:
    chosen = await orders(engine, 3)
    await engine.suspend(chosen[0])
    assert await run_batch(engine, "suspend", flow="order") == Count("finished", 3, 2, 1, 0)
    assert {await engine.status(each) for each in chosen} == {"open.notrunning.suspended"}
    await engine.resume(chosen[1])
    assert await run_batch(engine, "resume", flow="order") == Count("finished", 3, 2, 1, 0)
    assert len(await engine.claim("order", "pack", room=10)) == 3


async def test_retry_makes_failed_jobs_ready_by_task_and_error(engine: Engine) -> None:
    chosen = await orders(engine, 4)
    jobs = await engine.claim("order", "pack", room=3)
    await engine.fail(jobs[0], "ConnectionError: refused", final=True)
    await engine.fail(jobs[1], "ConnectionError: reset", final=True)
    await engine.fail(jobs[2], "ValueError: nonsense", final=True)
    assert await run_batch(engine, "retry", flow="order", task="pack", error="ConnectionError") == Count(
        "finished", 2, 2, 0, 0
    )
    assert [await engine.jobs(each) for each in chosen[:2]] == [{"pack": "ready"}] * 2
    assert await engine.status(chosen[0]) == "open.running"
    assert await engine.codes(chosen[2]) == ["task_failed"]
    assert (await engine.trace(chosen[0]))[-1].job == jobs[0].id


async def test_retry_takes_all_failed_jobs_of_an_instance(engine: Engine) -> None:
    await engine.apply("twin", {"a": 1}, {"left": "a = 1", "right": "a = 1"}, final="a = 2")
    instance = await engine.start("twin")
    for job in await engine.claim("twin", "left", "right", room=2):
        await engine.fail_for_good(job)
    assert await run_batch(engine, "retry", flow="twin") == Count("finished", 1, 1, 0, 0)
    assert await engine.jobs(instance) == {"left": "ready", "right": "ready"}
    assert await engine.status(instance) == "open.running"


async def test_repair_and_skip(engine: Engine) -> None:
    chosen = await orders(engine, 4)
    await fail_all(engine)
    assert await run_batch(engine, "repair", ids=chosen[:2], change={"stage": "packed"}) == Count(
        "finished", 2, 2, 0, 0
    )
    assert await engine.jobs(chosen[0]) == {"send": "ready"}
    done = await run_batch(engine, "skip", flow="order", change={"stage": "packed"}, status="open.exception")
    assert done == Count("finished", 2, 2, 0, 0)
    assert await engine.jobs(chosen[3]) == {"send": "ready"}


async def test_a_live_flow_is_written_in_its_newest_version(engine: Engine) -> None:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")
    chosen = await engine.start_many("f", [{}, {}])
    await engine.rows("insert into f.wed_attr (aname, adv) values ('b', '1')")
    await run_batch(engine, "set", flow="f", change={"a": "y"})
    assert await engine.state(chosen[1]) == {"a": "y", "b": "1"}


# ----------------------------------------------------------------------------------------------------------- filters


@pytest.mark.parametrize(
    ("chosen_by", "chosen"),
    [
        ({"where": "n > 6"}, [7, 8, 9]),
        ({"where": "n < 3 and stage = 'new'"}, [0, 1, 2]),
        ({"where": "task_pack = 'running'"}, [0]),
        ({"status": "open.running", "where": "n >= 8"}, [8, 9]),
        ({"status": "open.exception"}, []),
        ({"version": 1, "where": "not paid and n = 4"}, [4]),
        ({"started_before": "2001-01-01"}, []),
        ({"started_after": "2001-01-01", "where": "n = 4"}, [4]),
    ],
)
async def test_a_filter_chooses(engine: Engine, chosen_by: dict[str, Any], chosen: list[int]) -> None:
    instances = await orders(engine)
    await engine.take("order", "pack")
    before = await engine.everything()
    counted = await engine.one("select mutirao.count_batch('set', %s, %s)", *_set(chosen_by))
    assert counted == len(chosen)
    assert await engine.everything() == before
    assert await run_batch(engine, "set", flow="order", change={"paid": True}, **chosen_by) == Count(
        "finished", len(chosen), len(chosen), 0, 0
    )
    paid = [n for n, each in enumerate(instances) if (await engine.state(each))["paid"]]
    assert paid == chosen


async def test_whoever_has_no_patience_is_told_how_many_there_are_at_least(engine: Engine) -> None:
    await orders(engine)
    await engine.apply("other", {"a": 1}, {"go": "a = 1"})
    await engine.start("other")
    ask = "select total, is_exact from mutirao.count_batch_within(%s, 'cancel', %s)"
    assert await engine.rows(ask, None, Jsonb({"flow": "order"})) == [(10, True)]
    assert await engine.rows(ask, "0", Jsonb({"flow": "order"})) == [(10, False)]
    assert await engine.rows(ask, "0", Jsonb({"flow": "order", "key": "of nobody"})) == [(0, True)]


def _set(chosen_by: dict[str, Any]) -> tuple[Jsonb, Jsonb]:
    return Jsonb({"flow": "order", **chosen_by}), Jsonb({"change": {"paid": True}})


async def test_a_condition_typed_once_leaves_no_function_behind(engine: Engine) -> None:
    await orders(engine)
    before = (await engine.everything())["generated"]
    batch = await make_batch(engine, "cancel", flow="order", where="n = 3")
    assert len((await engine.everything())["generated"]) == len(before) + 1
    await drive(engine, batch)
    assert (await engine.everything())["generated"] == before
    # One that a task has as well is the task's.
    await run_batch(engine, "cancel", flow="order", where="stage = 'new'")
    assert (await engine.everything())["generated"] == before


async def test_a_condition_that_raises_concerns_that_instance_alone(engine: Engine) -> None:
    chosen = await orders(engine, 4)
    batch = await make_batch(engine, "cancel", flow="order", where="6 / (n - 2) <> 0")
    assert await drive(engine, batch) == Count("finished", 4, 3, 0, 1)
    assert await refusals(engine, batch) == [(chosen[2], "condition_failed")]


@pytest.mark.parametrize(
    ("chosen_by", "code", "says"),
    [
        ({}, "wrong_call", "it must name a flow"),
        ({"flow": "nope"}, "unknown_flow", '"nope"'),
        ({"flow": "order", "colour": "red"}, "wrong_call", 'there is no "colour"'),
        ({"flow": "order", "status": "opne"}, "wrong_call", 'no status "opne"'),
        ({"flow": "order", "version": 7}, "unknown_version", "its newest is 1"),
        ({"flow": "order", "version": "x"}, "wrong_call", "filter: "),
        ({"flow": "order", "task": "nope"}, "unknown_task", 'no task "nope"'),
        ({"flow": "order", "started_before": "soon"}, "wrong_call", "soon"),
        ({"flow": "order", "where": "colour = 'red'"}, "unknown_attribute", "filter, where"),
        ({"flow": "order", "where": "now() > 'x'"}, "condition_refused", "clock"),
        ({"flow": "order", "where": "true; drop table x"}, "condition_refused", "filter, where"),
        ({"where": "n = 1", "ids": [1]}, "wrong_call", "belong to a flow"),
        ({"ids": [99]}, "unknown_instance", "99"),
        ({"ids": "all"}, "wrong_call", "filter: "),
    ],
)
async def test_a_bad_filter_is_refused_and_nothing_is_made(
    engine: Engine, chosen_by: dict[str, Any], code: str, says: str
) -> None:
    await orders(engine, 1)
    async with engine.refused(code, says):
        await make_batch(engine, "cancel", **chosen_by)


@pytest.mark.parametrize(
    ("kind", "change", "code", "says"),
    [
        ("explode", None, "wrong_call", "there are cancel, suspend"),
        ("cancel", {"n": 1}, "wrong_call", 'takes no "change"'),
        ("set", None, "wrong_call", "nothing to set"),
        ("set", {"colour": "red"}, "unknown_attribute", '"colour"'),
    ],
)
async def test_bad_arguments_are_refused_and_nothing_is_made(
    engine: Engine, kind: str, change: dict[str, Any] | None, code: str, says: str
) -> None:
    await orders(engine, 1)
    async with engine.refused(code, says):
        await make_batch(engine, kind, flow="order", change=change)


# ---------------------------------------------------------------------------------------------------- step by step


async def test_a_batch_is_stopped_and_taken_up_where_it_was(engine: Engine) -> None:
    await orders(engine)
    batch = await make_batch(engine, "cancel", flow="order", where="n >= 2")
    assert await step(engine, batch, room=3) == 3
    await engine.rows("select mutirao.stop_batch(%s)", batch)
    assert await step(engine, batch) is None
    assert await count(engine, batch) == Count("stopped", 8, 3, 0, 0)
    async with engine.refused("wrong_call", "only a running one"):
        await engine.rows("select mutirao.stop_batch(%s)", batch)
    await engine.rows("select mutirao.resume_batch(%s)", batch)
    assert await drive(engine, batch) == Count("finished", 8, 8, 0, 0)
    async with engine.refused("wrong_call", "is finished"):
        await engine.rows("select mutirao.resume_batch(%s)", batch)
    async with engine.refused("unknown_batch"):
        await engine.rows("select mutirao.stop_batch(99)")


async def test_what_starts_later_is_not_touched(engine: Engine) -> None:
    await orders(engine, 2)
    batch = await make_batch(engine, "cancel", flow="order")
    later = await engine.start("order")
    assert await drive(engine, batch) == Count("finished", 2, 2, 0, 0)
    assert await engine.status(later) == "open.running"


async def test_what_no_longer_fits_when_its_turn_comes_is_left_alone(engine: Engine) -> None:
    chosen = await orders(engine, 3)
    batch = await make_batch(engine, "cancel", flow="order", where="not paid")
    await engine.set(chosen[1], paid=True)
    await engine.cancel(chosen[2])
    assert await drive(engine, batch) == Count("finished", 3, 1, 0, 0)
    assert await engine.status(chosen[1]) == "open.running"


async def test_a_busy_instance_is_neither_waited_for_nor_forgotten(engine: Engine) -> None:
    chosen = await orders(engine, 4)
    batch = await make_batch(engine, "cancel", flow="order")
    async with await AsyncConnection.connect(engine.url) as writing:
        await writing.execute("select mutirao.set(%s, %s)", [chosen[1], Jsonb({"paid": True})])
        assert await step(engine, batch) == 3
        assert await step(engine, batch) == 0
        assert await count(engine, batch) == Count("running", 4, 3, 0, 0)
    assert await step(engine, batch) == 1
    assert await count(engine, batch) == Count("finished", 4, 4, 0, 0)


async def test_two_drivers_share_a_batch_without_waiting(engine: Engine) -> None:
    await orders(engine)
    batch = await make_batch(engine, "cancel", flow="order")
    async with await AsyncConnection.connect(engine.url) as first:
        await first.execute("select mutirao.step_batch(%s, 4)", [batch])
        assert await step(engine, batch) is None
        await first.rollback()  # killed in the middle: nothing of its step is left
    assert await count(engine, batch) == Count("running", 10, 0, 0, 0)
    assert await drive(engine, batch) == Count("finished", 10, 10, 0, 0)


async def test_clocks_go_on_with_it_when_its_maker_is_gone(engine: Engine) -> None:
    chosen = await orders(engine)
    first = await make_batch(engine, "set", ids=chosen[:5], change={"paid": True})
    second = await make_batch(engine, "cancel", ids=chosen[5:])
    next_in = "select extract(epoch from next_at - mutirao.now())::float8 from mutirao.turn_clock(2, 'batches')"
    assert await engine.one(next_in) <= 0.05
    for _ in range(5):
        await engine.one(next_in)
    assert [(await count(engine, each)).status for each in (first, second)] == ["finished", "finished"]
    assert await engine.one(next_in) is None


async def test_an_error_that_is_no_refusal_fails_the_batch_which_can_be_resumed(engine: Engine) -> None:
    await orders(engine)
    batch = await make_batch(engine, "cancel", flow="order")
    await engine.rows("alter table mutirao.trace add constraint broken check (kind <> 'cancel') not valid")
    assert await step(engine, batch) == 0
    assert (await count(engine, batch)) == Count("failed", 10, 0, 0, 0)
    assert "broken" in await engine.one("select note from mutirao.batch where id = %s", batch)
    await engine.rows("alter table mutirao.trace drop constraint broken")
    await engine.rows("select mutirao.resume_batch(%s)", batch)
    assert await drive(engine, batch) == Count("finished", 10, 10, 0, 0)


async def test_an_error_of_a_value_concerns_that_instance_alone(engine: Engine) -> None:
    chosen = await orders(engine)
    broken = f"check (kind <> 'cancel' or 1 / (instance - {chosen[3]}) is not null)"
    await engine.rows(f"alter table mutirao.trace add constraint broken {broken} not valid")
    batch = await make_batch(engine, "cancel", flow="order")
    assert await drive(engine, batch) == Count("finished", 10, 9, 0, 1)
    assert await refusals(engine, batch) == [(chosen[3], "condition_failed")]
    assert await engine.status(chosen[3]) == "open.running"


async def test_who_did_what_when_and_why_is_kept(engine: Engine) -> None:
    await orders(engine)
    await run_batch(engine, "cancel", flow="order", where="n = 1")
    [row] = await engine.rows(
        "select kind, filter, reason, made_by = session_user, ended_at >= made_at from mutirao.batch"
    )
    assert row == ("cancel", {"flow": "order", "where": "n = 1"}, "a test", True, True)


async def test_only_the_first_thousand_refusals_are_told_and_all_are_counted(engine: Engine) -> None:
    await orders(engine, 1100)
    batch = await make_batch(engine, "set", flow="order", change={"stage": "sent"})
    assert await drive(engine, batch) == Count("finished", 1100, 0, 0, 1100)
    assert len(await refusals(engine, batch)) == 1000

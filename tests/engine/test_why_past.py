"""Why a task fired, or did not, at a row of the trace: how the instance stood then is told by the rows up to it."""

import random
from typing import Any

import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import Error
from test_migrate_flow import migrate
from test_why import one, why


async def rows_of(engine: Engine, instance: int) -> list[int]:
    found = await engine.rows("select id from mutirao.trace where instance = %s order by id", instance)
    return [row for (row,) in found]


async def an_order(engine: Engine) -> int:
    await engine.apply(
        "f",
        {"stage": "new", "amount": 40},
        {"check": "stage = 'new'", "charge": "stage = 'checked' and amount > 100", "look": "amount = 40"},
        final="stage = 'done'",
    )
    return await engine.start("f")


async def test_a_firing_is_told_with_who_wrote_what(engine: Engine) -> None:
    instance = await an_order(engine)
    await engine.do("f", "check", stage="checked")
    await engine.rows("select mutirao.set(%s, '{\"amount\": 120}', 'by phone', 'the desk')", instance)
    row = (await rows_of(engine, instance))[-1]
    charge = await one(engine, instance, "charge", row)
    assert charge.answer.startswith(f"charge fired at row {row} of the trace, after a change from outside, by the desk")
    assert charge.answer.endswith(": amount 40 → 120")
    assert (charge.stands, charge.holds) == ("fired", True)
    assert charge.fired is not None
    assert charge.fired["changes"] == {"amount": {"before": 40, "after": 120}}
    assert charge.condition is not None
    assert [(part["text"], part["values"]) for part in charge.condition["parts"]] == [
        ("stage = 'checked'", {"stage": "checked"}),
        ("amount > 100", {"amount": 120}),
    ]


async def test_that_it_did_not_fire_is_told_with_the_state_of_then(engine: Engine) -> None:
    instance = await an_order(engine)
    await engine.do("f", "check", stage="checked")
    await engine.set(instance, amount=120)
    first, second, _ = await rows_of(engine, instance)
    assert (await one(engine, instance, "charge", first)).answer == (
        "charge did not fire: stage = 'checked' is false (stage = new); amount > 100 is false (amount = 40)"
    )
    assert (
        await one(engine, instance, "charge", second)
    ).answer == "charge did not fire: amount > 100 is false (amount = 40)"
    look = await one(engine, instance, "look", second)
    assert (look.stands, look.answer) == ("pending", f"look had a job already; it last fired at row {first}")


async def test_a_pending_or_ended_task_says_what_fired_it_last(engine: Engine) -> None:
    instance = await an_order(engine)
    await engine.do("f", "check", stage="checked", amount=200)
    row = (await rows_of(engine, instance))[-1]
    charge = await one(engine, instance, "charge")
    assert charge.fired is not None
    assert (charge.stands, charge.fired["row"], charge.fired["times"]) == ("ready", row, 1)
    assert charge.fired["condition"]["holds"] is True
    assert charge.fired["changes"] == {
        "stage": {"before": "new", "after": "checked"},
        "amount": {"before": 40, "after": 200},
    }
    await engine.do("f", "charge", amount=0)
    charge = await one(engine, instance, "charge")
    assert charge.answer == f"charge does not fire now: amount > 100 is false (amount = 0); it last fired at row {row}"


async def test_the_row_itself_is_told_and_one_that_is_not_there_refused(engine: Engine) -> None:
    instance = await an_order(engine)
    await engine.do("f", "check", stage="checked")
    first, second = await rows_of(engine, instance)
    whole, *_ = await why(engine, instance, at=second)
    assert whole.answer.startswith(f"row {second} of instance {instance}: check done, by ")
    assert whole.answer.endswith("; it fired nothing")
    async with engine.refused(
        "wrong_call", f"instance {instance} has no trace row {second + 7}; it has 2 from {first} to {second}"
    ):
        await why(engine, instance, at=second + 7)


async def test_a_row_that_wrote_nothing_shows_the_state_as_it_stood(engine: Engine) -> None:
    instance = await an_order(engine)
    await engine.fail(await engine.take("f", "check"), "no")
    row = (await rows_of(engine, instance))[-1]
    whole, *_ = await why(engine, instance, at=row)
    assert ", which wrote nothing; it fired nothing" in whole.answer
    check = await one(engine, instance, "check", row)
    assert (check.stands, check.holds) == ("pending", True)


async def test_a_task_that_fired_because_another_became_ready_in_the_same_look(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0}, {"one": {"when": "a = 0", "fires": "once"}, "two": after("one", "ready"), "three": after("two", "ready")}, ends="quiet"
    )  # fmt: skip
    instance = await engine.start("f")
    (row,) = await rows_of(engine, instance)
    assert [(each.stands, each.holds) for each in await why(engine, instance, at=row)][1:4] == [("fired", True)] * 3


async def test_a_job_that_went_with_its_task_was_not_pending_any_more(engine: Engine) -> None:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'", "off": "a = 'x'"}, final="a = 'z'")
    instance = await engine.start("f")
    await engine.rows("update f.wed_trig set enabled = false where trname = 'off'")
    await engine.until_caught_up()
    await engine.set(instance, a="y")
    first, removed, last = await rows_of(engine, instance)
    whole, *_ = await why(engine, instance, at=removed)
    assert (
        whole.answer
        == f"row {removed} of instance {instance}: the job of off removed, which wrote nothing; it fired nothing"
    )
    off = await one(engine, instance, "off", last)
    assert off.answer == f"off is disabled; it last fired at row {first}"


async def test_a_task_that_fired_because_the_instance_moved_to_another_version(engine: Engine) -> None:
    old = {"pack": "stage = 'new'", "send": "stage = 'packed'"}
    await engine.apply("f", {"stage": "new"}, old, final="stage = 'sent'")
    instance = await engine.start("f")
    await engine.do("f", "pack", stage="packed")
    new = {"wrap": "stage = 'new'", "send": "stage = 'packed'", "thank": after("wrap"), "post": after("send")}
    await engine.apply("f", {"stage": "new"}, new, final="stage = 'sent'")
    await migrate(engine, tasks={"pack": "wrap"})
    row = (await rows_of(engine, instance))[-1]
    thank = await one(engine, instance, "thank", row)
    assert (thank.stands, thank.holds) == ("fired", True)
    assert thank.answer.startswith(f"thank fired at row {row} of the trace, after the move to another version")
    assert (await one(engine, instance, "send", row)).stands == "pending"
    assert (await one(engine, instance, "post", row)).answer == "post did not fire: send has not succeeded: it is ready"


async def test_a_task_that_a_migration_took_away_can_still_be_asked_for(engine: Engine) -> None:
    await engine.apply("f", {"a": 1}, {"go": "a = 1", "ask": "a = 1"}, final="a = 2")
    instance = await engine.start("f")
    job = await engine.job(instance, "ask")
    await engine.apply("f", {"a": 1}, {"go": "a = 1"}, final="a = 2")
    await migrate(engine)
    first, moved = await rows_of(engine, instance)
    ask = await one(engine, instance, "ask", moved)
    assert ask.stands == "absent"
    assert ask.answer.startswith(
        f"ask is no task of the flow; row {moved} removed its job {job}; it fired at row {first} "
    )
    async with engine.refused("unknown_task"):
        await one(engine, instance, "nobody", moved)


# ------------------------------------------------------------------------------------------------------- any history

TASKS: dict[str, Any] = {
    "one": "a % 3 = 0",
    "two": {"when": "a > 2 and task_one = 'succeeded'", "fires": "once"},
    "three": {"when": "b and not task_two in ('ready', 'running')", "retries": 0},
    "four": after("one"),
    "five": {"depends": {"any": [{"task": "three", "state": "failed"}, {"all": [{"task": "two", "state": "succeeded"}, {"task": "four", "state": "succeeded"}]}]}},
    "six": after("one", "running"),
    "seven": "a = 4 and task_six = 'ready'",
}  # fmt: skip


async def live_on(engine: Engine, instance: int, source: random.Random) -> None:  # noqa: C901 a ladder of what can happen
    """Something happens to the instance, or is refused."""
    change = {"a": source.randint(0, 6), "b": source.random() < 0.5}
    jobs = await engine.rows(
        "select j.id, j.status::text, t.name from mutirao.job j join mutirao.task t on t.id = j.task where j.instance = %s",
        instance,
    )
    job, status, task = source.choice(jobs) if jobs else (0, "", "")
    try:
        match source.randint(0, 9):
            case 0 | 1 | 2 | 3 if status == "ready" and task != "_EXCPT":
                taken = await engine.take("f", task)
                if source.random() < 0.6:
                    await engine.complete(taken, **change)
                else:
                    await engine.fail(taken, final=source.random() < 0.5)
            case 4:
                await engine.claim("f", room=2)
            case 5:
                await engine.skip(job, **change)
            case 6:
                await engine.retry(job)
            case 7:
                await engine.repair(instance, **change)
            case 8:
                await (engine.suspend(instance) if source.random() < 0.4 else engine.resume(instance))
            case _:
                await engine.set(instance, **change)
        if source.random() < 0.3:
            await engine.advance(minutes=3)
            await engine.tick()
    except Error as refusal:
        if not (refusal.sqlstate or "").startswith("MU"):
            raise


@pytest.mark.parametrize("seed", range(2))
async def test_every_firing_of_any_history_is_explained_and_every_silence_has_a_reason(
    engine: Engine, seed: int
) -> None:
    source = random.Random(seed)
    await engine.apply("f", {"a": 0, "b": False}, TASKS, final="a = 99")
    instance = await engine.start("f")
    for _ in range(30):
        await live_on(engine, instance, source)
    trace = await engine.rows(
        "select r.id, r.kind, r.state is not null, array(select t.name from mutirao.task t where t.id = any (r.fired)), r.status::text, "
        "(select t.name from mutirao.task t where t.id = r.task) from mutirao.trace r where r.instance = %s order by r.id",
        instance,
    )
    assert len(trace) > 10
    firings = 0
    for row, kind, is_write, fired, status, ended in trace:
        _, *tasks, _ = await why(engine, instance, at=row)
        for each in tasks:
            about = (row, kind, status, each)
            assert (each.stands == "fired") == (each.task in fired), about
            if each.task in fired:
                firings += 1
                assert each.holds is True, about
            elif is_write and not (kind == "skip" and each.task == ended):
                assert each.stands != "next_look", about
    assert firings > 4


@pytest.mark.parametrize("seed", range(2))
async def test_what_the_trace_tells_of_the_last_row_is_how_the_instance_stands(engine: Engine, seed: int) -> None:
    source = random.Random(100 + seed)
    await engine.apply("f", {"a": 0, "b": False}, TASKS, final="a = 99")
    instance = await engine.start("f")
    for _ in range(25):
        await live_on(engine, instance, source)
        told = await engine.rows(
            "select m.state, m.hold, array(select unnest(m.pending) order by 1), array(select unnest(m.failed) order by 1), array(select distinct unnest(m.fired) order by 1), "
            "array(select unnest(m.reached) order by 1), v.number "
            "from (select max(id) as id from mutirao.trace where instance = %s) l, mutirao.trace r, mutirao.version v, "
            "mutirao.moment_with(mutirao.moment_at(r.instance, r.id), array_remove(r.fired, (select exception_task from mutirao.flow)), v) m "
            "where r.instance = %s and r.id = l.id and v.id = r.version",
            instance, instance,
        )  # fmt: skip
        stands = await engine.rows(
            "select i.state, i.hold, array(select unnest(i.pending) order by 1), array(select unnest(i.failed) order by 1), array(select distinct unnest(i.fired) order by 1), "
            "array(select unnest(i.reached) order by 1), v.number from mutirao.instance i join mutirao.version v on v.id = i.version where i.id = %s",
            instance,
        )  # fmt: skip
        assert told == stands

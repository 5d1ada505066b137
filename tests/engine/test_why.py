"""Why an instance moves or does not: what each task waits for, now."""

from typing import Any, NamedTuple

from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection

ORDER = {
    "check": "stage = 'new'",
    "charge": "stage = 'checked' and amount > 100",
    "ship": after("charge"),
}
STATE = {"stage": "new", "amount": 40}


class Answer(NamedTuple):
    task: str | None
    answer: str
    stands: str
    holds: bool | None
    condition: dict[str, Any] | None
    job: dict[str, Any] | None
    fired: dict[str, Any] | None


async def why(engine: Engine, instance: int, task: str | None = None, at: int | None = None) -> list[Answer]:
    return [Answer._make(row) for row in await engine.rows("select * from mutirao.why(%s, %s, %s)", instance, task, at)]


async def one(engine: Engine, instance: int, task: str, at: int | None = None) -> Answer:
    (found,) = await why(engine, instance, task, at)
    return found


async def an_order(engine: Engine, **more: Any) -> int:
    await engine.apply("f", STATE, ORDER, final="stage = 'done'")
    return await engine.start("f", **more)


# ---------------------------------------------------------------------------------------------------------- conditions


async def test_a_condition_that_does_not_hold_is_told_by_the_part_that_does_not(engine: Engine) -> None:
    instance = await an_order(engine)
    await engine.do("f", "check", stage="checked")
    charge = await one(engine, instance, "charge")
    assert charge.answer == "charge has not fired: amount > 100 is false (amount = 40)"
    assert (charge.stands, charge.holds, charge.job, charge.fired) == ("condition", False, None, None)
    assert charge.condition is not None
    assert [(p["text"], p["holds"], p["values"]) for p in charge.condition["parts"]] == [
        ("stage = 'checked'", True, {"stage": "checked"}),
        ("amount > 100", False, {"amount": 40}),
    ]


async def test_what_is_unknown_is_told_with_what_is_null(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0, "n": {"type": "integer"}, "m": {"type": "integer"}}, {"go": "a = 0", "sum": "n + m > 3"}
    )
    instance = await engine.start("f")
    assert (
        await one(engine, instance, "sum")
    ).answer == "sum has not fired: n + m > 3 is unknown because m and n are null"
    await engine.set(instance, n=1)
    found = await one(engine, instance, "sum")
    assert (found.answer, found.holds) == ("sum has not fired: n + m > 3 is unknown because m is null", None)


async def test_alternatives_are_told_as_such(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0, "b": 0}, {"go": "a = 0", "one": "a = 1 or b = 1 and a = 0", "two": "a = 0 and (b = 1 or b = 2)"}
    )
    instance = await engine.start("f")
    assert (await one(engine, instance, "one")).answer == (
        "one has not fired: none of its 2 alternatives holds: a = 1 is false (a = 0); b = 1 is false (b = 0)"
    )
    assert (await one(engine, instance, "two")).answer == "two has not fired: (b = 1 or b = 2) is false (b = 0)"


async def test_a_condition_that_raises_is_told_and_does_not_raise_here(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "d": 1}, {"go": "a = 0", "check": "a = 1 and 10 / d > 1"}, final="a = 9")
    instance = await engine.start("f")
    await engine.suspend(instance)
    await engine.set(instance, a=1, d=0)
    check = await one(engine, instance, "check")
    assert check.answer == 'check has not fired: 10 / d > 1 raises "division by zero" (d = 0)'
    assert check.condition is not None
    assert (check.holds, check.condition["error"]) == (None, "division by zero")
    await engine.resume(instance)
    whole, *_ = await why(engine, instance)
    assert whole.answer == f'instance {instance} is an exception: the condition of check raises "division by zero"'


async def test_a_part_that_raises_but_was_not_asked_is_not_to_blame(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "d": 0}, {"go": "a = 0", "check": "a = 1 and 10 / d > 1"}, final="a = 9")
    check = await one(engine, await engine.start("f"), "check")
    assert check.answer == "check has not fired: a = 1 is false (a = 0)"
    assert check.condition is not None
    assert check.condition["parts"][1]["error"] == "division by zero"


async def test_dependencies_are_told_term_by_term_with_how_the_task_stands(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0},
        {
            "one": {"when": "a = 0", "fires": "once"}, "two": {"when": "a = 0", "fires": "once"},
            "both": {"depends": {"all": [{"task": "one", "state": "succeeded"}, {"task": "two", "state": "succeeded"}]}},
        },
        ends="quiet",
    )  # fmt: skip
    instance = await engine.start("f")
    await engine.take("f", "two")
    both = await one(engine, instance, "both")
    assert both.answer == "both has not fired: one has not succeeded: it is ready; two has not succeeded: it is running"
    await engine.do("f", "one")
    both = await one(engine, instance, "both")
    assert both.answer == "both has not fired: two has not succeeded: it is running"
    assert both.condition is not None
    assert [part["holds"] for part in both.condition["parts"]] == [True, False]


# ------------------------------------------------------------------------------------ a condition that holds is not enough


async def test_what_keeps_a_task_from_firing_though_its_condition_holds(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0}, {"go": {"when": "a < 2", "fires": "once"}, "more": "a = 1", "last": "a = 1"}, final="a = 9"
    )
    instance = await engine.start("f")
    await engine.do("f", "go")
    assert (await one(engine, instance, "go")).stands == "fired_once"
    assert "fires once, and has; it last fired at row" in (await one(engine, instance, "go")).answer
    await engine.suspend(instance)
    await engine.set(instance, a=1)
    more = await one(engine, instance, "more")
    assert (more.stands, more.holds, more.answer) == (
        "suspended",
        True,
        "more would fire, but the instance is suspended",
    )
    await engine.resume(instance)
    await engine.skip(await engine.job(instance, "more"))
    assert (await one(engine, instance, "more")).stands == "next_look"


async def test_a_disabled_task_is_told_as_such(engine: Engine) -> None:
    await engine.create("f", {"a": "x", "b": None}, {"go": "a = 'x'", "off": "a = 'x'"}, final="b is not null")
    await engine.rows("update f.wed_trig set enabled = false where trname = 'off'")
    instance = await engine.start("f")
    assert (await one(engine, instance, "off"))[1:4] == ("off is disabled", "disabled", True)


async def test_the_final_condition_that_holds_waits_for_what_is_pending(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": "a = 0", "two": "a = 0"}, final="a = 1")
    instance = await engine.start("f")
    assert (await one(engine, instance, "final")).answer == "the final condition does not hold: a = 1 is false (a = 0)"
    assert await engine.do("f", "one", a=1) == "parked"
    assert (
        await one(engine, instance, "one")
    ).answer == "one is done, but its change would end the instance while two is pending"
    await engine.suspend(instance)
    await engine.rows("update mutirao.instance set state = '{\"a\": 1}' where id = %s", instance)
    final = await one(engine, instance, "final")
    assert (final.stands, final.answer) == ("final_blocked", "the final condition holds, but there is still one, two")


async def test_a_flow_that_ends_quiet_says_what_is_left_to_do(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": {"when": "a = 0", "fires": "once"}}, ends="quiet")
    instance = await engine.start("f")
    assert (await one(engine, instance, "final")).answer == "it ends when nothing is left to do: there is still go"


# ---------------------------------------------------------------------------------------------------------------- jobs


async def announce(engine: Engine, worker: str, flow: str = "f") -> None:
    await engine.rows("select mutirao.announce(%s, array(select id from mutirao.task_ids(%s)))", worker, flow)


async def test_a_ready_job_says_whether_anybody_is_there_to_do_it(engine: Engine) -> None:
    instance = await an_order(engine)
    check = await one(engine, instance, "check")
    assert check.answer.endswith(": no worker that does it is alive")
    assert check.job is not None
    assert (check.stands, check.job["waits_for"], check.job["workers"]) == ("ready", "worker", [])
    await announce(engine, "ann")
    check = await one(engine, instance, "check")
    assert check.answer.endswith(": nothing is ahead of it, and ann does it")
    assert check.job is not None
    assert (check.job["waits_for"], check.job["workers"], check.job["ahead"]) == ("turn", ["ann"], 0)
    await engine.advance(minutes=5)
    assert (await one(engine, instance, "check")).answer == (
        "check has been ready for 5 min: no worker that does it is alive; the last one, ann, was seen 5 min ago"
    )
    await announce(engine, "ann")
    await engine.rows("select mutirao.leave('ann')")
    assert (
        ": no worker that does it is alive; the last one, ann, stopped" in (await one(engine, instance, "check")).answer
    )


async def test_a_worker_that_never_announced_itself_is_known_by_what_it_has(engine: Engine) -> None:
    instances = [await an_order(engine), await engine.start("f")]
    job = await engine.take("f", "check", worker="a psql session")
    (other,) = {*instances} - {job.instance}
    assert (await one(engine, other, "check")).answer.endswith("nothing is ahead of it, and a psql session does it")


async def test_a_ready_job_counts_those_ahead_of_it_by_priority_and_age_up_to_a_thousand(engine: Engine) -> None:
    await an_order(engine)
    await announce(engine, "ann")
    instance = await engine.start("f")
    await engine.start("f")
    await engine.start("f", priority=5)
    assert "2 jobs are ahead of it" in (await one(engine, instance, "check")).answer
    await engine.start_many("f", [{}] * 1100)
    assert "2 jobs are ahead of it" in (await one(engine, instance, "check")).answer
    last = await engine.start("f")
    check = await one(engine, last, "check")
    assert "more than 1000 jobs are ahead of it" in check.answer
    assert check.job is not None
    assert (check.job["ahead"], check.job["ahead_is_more"]) == (1000, True)


async def test_a_running_job_says_where_and_for_how_long(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": {"when": "a = 0", "timeout": 600}}, final="a = 1")
    instance = await engine.start("f")
    job = await engine.take("f", "go", worker="ann")
    go = await one(engine, instance, "go")
    assert go.answer.startswith(
        f"go is running at ann, attempt {job.attempt}, to end within 10 min; leased for another "
    )
    assert go.job is not None
    assert go.job["waits_for"] == "end"
    await engine.advance(minutes=2)
    go = await one(engine, instance, "go")
    assert go.answer.startswith("go was running at ann, whose lease ended ")
    assert go.job is not None
    assert go.job["waits_for"] == "lease"


async def test_a_job_that_waits_for_another_try_says_when_and_after_what(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": {"when": "a = 0", "backoff": 60, "retries": 1}}, final="a = 1")
    instance = await engine.start("f")
    await engine.fail(await engine.take("f", "go"), "Traceback\n  many lines\nConnectionError: no route")
    go = await one(engine, instance, "go")
    assert go.answer.startswith("go is tried again in ")
    assert go.answer.endswith(", try 2 of 2, after: ConnectionError: no route")
    await engine.advance(minutes=10)
    assert ": a clock must be running, try 2 of 2, after:" in (await one(engine, instance, "go")).answer
    await engine.tick()
    await engine.fail(await engine.take("f", "go"), "again")
    go = await one(engine, instance, "go")
    assert go.answer == "go has failed for good after 2 tries: again; retry or skip it, or repair the instance"
    whole, first, *_ = await why(engine, instance)
    assert whole.answer == f"instance {instance} is an exception: go has failed for good: again"
    assert first.task == "go"


async def test_a_job_that_a_limit_keeps_back_says_which_one(engine: Engine) -> None:
    limits = {"all": {"at_once": 1}, "each": {"per": "customer", "each": 1}, "rate": {"per_second": 1}}
    tasks = {name: {"when": "n = 0", "limit": limit} for name, limit in limits.items()}
    await engine.apply("f", {"n": 0, "customer": "the library"}, tasks, final="n = 1")
    _, second = await engine.start_many("f", [{}, {}])
    await engine.claim("f", room=3)
    said = {task: (await one(engine, second, task)) for task in limits}
    assert {task: each.job["waits_for"] for task, each in said.items() if each.job} == dict.fromkeys(limits, "limit")
    assert said["all"].answer.endswith(": one of it runs already, and no more may at once")
    assert said["each"].answer.endswith(": one of it runs already for customer = the library, and no more may at once")
    assert ": no more than 1 of it may begin in a second; the next in " in said["rate"].answer


async def test_a_job_that_waits_for_a_time_in_the_state_says_which(engine: Engine) -> None:
    due = {"type": "timestamp"}
    await engine.apply("f", {"n": 0, "due": due}, {"remind": {"when": "n = 0", "wait": "due"}}, final="n = 1")
    instance = await engine.start("f")
    assert (await one(engine, instance, "remind")).answer == "remind waits for a time in due, which is null"
    later = await engine.one("select mutirao.now() + interval '3 days'")
    await engine.set(instance, due=later.isoformat())
    remind = await one(engine, instance, "remind")
    assert remind.answer == f"remind waits until due = {later.isoformat()}, in 3 d"
    assert remind.job is not None
    assert (remind.stands, remind.job["waits_for"], remind.job["attribute"]) == ("waiting", "time", "due")
    await engine.advance(days=3, hours=1)
    assert ": a clock must be running" in (await one(engine, instance, "remind")).answer


async def test_a_held_job_says_that_its_instance_is_suspended_and_by_whom(engine: Engine) -> None:
    instance = await an_order(engine)
    await engine.rows("select mutirao.suspend(%s, 'the customer called', 'the desk')", instance)
    whole, check, *_ = await why(engine, instance)
    assert whole.answer.startswith(f"instance {instance} is suspended by the desk")
    assert "(the customer called): nothing starts until it is resumed" in whole.answer
    assert check.answer == "check is held: the instance is suspended"


async def test_a_parked_job_on_whose_change_a_condition_raises_says_so(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "d": 1}, {"go": "a = 0", "check": "a = 1 and 10 / d > 1"}, final="a = 9")
    instance = await engine.start("f")
    await engine.do("f", "go", a=1, d=0)
    go = await one(engine, instance, "go")
    assert go.answer == (
        "go is done, but its change cannot be written: the condition of check raises division by zero; "
        "skip it with another change, or repair the instance"
    )
    assert go.job is not None
    assert go.job["change"] == {"a": 1, "d": 0}


async def test_a_failure_that_another_task_handles_is_told_as_such(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a = 0", "sorry": after("go", "failed")}, final="a = 9")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "go"), "no")
    assert (
        await one(engine, instance, "go")
    ).answer == "go has failed for good after 1 try: no; another task handles that"


async def test_an_instance_that_is_being_cancelled_says_what_it_waits_for(engine: Engine) -> None:
    instance = await an_order(engine)
    await engine.take("f", "check")
    await engine.cancel(instance)
    whole, *_ = await why(engine, instance)
    assert whole.answer.startswith(f"instance {instance} is being cancelled by ")
    assert whole.answer.endswith(": it closes when check has ended")


async def test_an_instance_that_starts_later_says_when(engine: Engine) -> None:
    await an_order(engine)
    later = await engine.one("select mutirao.now() + interval '3 hours'")
    instance = await engine.one("select mutirao.start('f', '{}', at => %s)", later)
    whole, check, *_ = await why(engine, instance)
    assert whole.answer == f"instance {instance} starts in 3 h"
    assert (check.stands, check.answer) == ("delayed", "check would fire, but the instance starts later")
    await engine.advance(hours=4)
    assert (await why(engine, instance))[0].answer.endswith(": a clock must be running")
    await engine.tick()
    assert (await one(engine, instance, "check")).stands == "ready"
    first, second = [
        row for (row,) in await engine.rows("select id from mutirao.trace where instance = %s order by id", instance)
    ]
    assert (await one(engine, instance, "check", first)).stands == "delayed"
    assert (await one(engine, instance, "check", second)).answer.startswith(
        f"check fired at row {second} of the trace, after its time to start"
    )


# ----------------------------------------------------------------------------------------------------------- the whole


async def test_without_a_task_the_most_urgent_comes_first_and_the_end_last(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0},
        {"never": "a = 5", "ready": "a = 0", "busy": "a = 0", "broken": "a = 0", "again": {"when": "a = 0", "backoff": 60}}, final="a = 9",
    )  # fmt: skip
    instance = await engine.start("f")
    await engine.take("f", "busy")
    await engine.fail_for_good(await engine.take("f", "broken"))
    await engine.fail(await engine.take("f", "again"))
    answers = await why(engine, instance)
    assert [(each.task, each.stands) for each in answers] == [
        (None, "open.exception"), ("broken", "failed"), ("again", "waiting"), ("ready", "ready"), ("busy", "running"), ("never", "condition"),
        ("_FINAL", "condition"),
    ]  # fmt: skip


async def test_a_closed_instance_says_what_fired_and_what_never_did(engine: Engine) -> None:
    instance = await an_order(engine, amount=200)
    await engine.do("f", "check", stage="checked")
    await engine.do("f", "charge", stage="done")
    whole, *tasks, final = await why(engine, instance)
    assert whole.answer.startswith(f"instance {instance} is closed.completed, since ")
    assert {each.stands for each in (*tasks, final)} == {"closed"}
    charge = await one(engine, instance, "charge")
    assert "charge has ended: it fired at row" in charge.answer
    assert "after check done, by" in charge.answer
    assert charge.answer.endswith(": stage new → checked")
    assert (await one(engine, instance, "ship")).answer == "ship never fired: nothing fires once an instance is final"
    assert final.answer == "the final condition holds"


async def test_an_instance_of_a_live_flow_is_told_by_the_version_that_its_next_write_goes_by(engine: Engine) -> None:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'z'")
    instance = await engine.start("f")
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('more', 'a = ''x''')")
    more = await one(engine, instance, "more")
    assert (more.stands, more.holds) == ("next_look", True)
    assert more.answer == "more holds, and fires when the instance is written or looked at next"
    await engine.until_caught_up()
    assert (await one(engine, instance, "more")).stands == "ready"


async def test_a_job_that_outlived_its_task_is_told_as_such(engine: Engine) -> None:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'", "old": "a = 'x'"}, final="a = 'z'")
    instance = await engine.start("f")
    await engine.take("f", "old")
    await engine.rows("delete from f.wed_trig where trname = 'old'")
    (old,) = [each for each in await why(engine, instance) if each.task == "old"]
    assert old.answer.startswith("old, which the flow has no more, is running at ann, attempt ")
    assert (old.stands, old.condition) == ("running", None)


async def test_an_unknown_task_or_instance_is_refused_with_what_was_probably_meant(engine: Engine) -> None:
    instance = await an_order(engine)
    async with engine.refused("unknown_task", 'has no task "chrage"; did you mean "charge"?'):
        await why(engine, instance, "chrage")
    async with engine.refused("unknown_task", "it has check, charge, ship"):
        await why(engine, instance, "something_else")
    async with engine.refused("unknown_instance", f"there is no instance {instance + 1}"):
        await why(engine, instance + 1)
    async with engine.refused("unknown_instance", "there is no instance 999"):
        await why(engine, 999, None, 1)


async def test_it_writes_nothing_and_may_be_asked_of_a_standby(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0, "d": 0}, {"go": "a = 0", "check": "a = 1 and 10 / d > 1", "then": after("go")}, final="a = 9"
    )
    instance = await engine.start("f")
    (row,) = await engine.rows("select min(id) from mutirao.trace")
    before = await engine.everything()
    async with await AsyncConnection.connect(engine.url, autocommit=True) as session:
        await session.execute("set default_transaction_read_only = on")
        assert len(await (await session.execute("select * from mutirao.why(%s)", [instance])).fetchall()) == 5
        assert (
            len(await (await session.execute("select * from mutirao.why(%s, null, %s)", [instance, *row])).fetchall())
            == 5
        )
    assert await engine.everything() == before


# -------------------------------------------------------------------------------------------------------------- people


async def test_a_work_item_is_told_by_who_may_take_it_and_who_has_it(engine: Engine) -> None:
    await engine.rows("insert into mutirao.role (name, made_at) values ('clerk', mutirao.now())")
    await engine.apply(
        "f", {"a": 0}, {"check": {"when": "a = 0", "offer": {"role": "clerk", "deadline": 7200}}}, final="a = 1"
    )
    instance = await engine.start("f")
    check = await one(engine, instance, "check")
    assert check.answer.startswith("check has been on offer for ")
    assert check.answer.endswith('nobody has taken it: the role "clerk" has nobody; it is due in 2 h')
    clerk = await engine.one(
        "insert into mutirao.person (name, made_by, made_at) values ('clerk_1', 'test', mutirao.now()) returning id"
    )
    await engine.rows("insert into mutirao.member select r.id, %s from mutirao.role r where r.name = 'clerk'", clerk)
    check = await one(engine, instance, "check")
    assert check.answer.endswith('the role "clerk" has 1 person; it is due in 2 h')
    assert check.job is not None
    await engine.rows("select mutirao.select_item(%s, %s)", clerk, check.job["id"])
    assert (await one(engine, instance, "check")).answer == 'check is with "clerk_1"; it is due in 2 h'
    await engine.advance(hours=3)
    assert (await one(engine, instance, "check")).answer == 'check is with "clerk_1"; it has been due for 1 h'


# ---------------------------------------------------------------------------------------------------------- recovery

TRIP: dict[str, Any] = {
    "book": {"when": "a = 0", "fires": "once", "compensation": "free"},
    "fly": after("book", compensation="stay", contingency="drive", retries=0),
    "free": {},
    "stay": {},
    "drive": {},
}


async def stands(engine: Engine, instance: int, at: int | None = None) -> dict[str | None, tuple[str, str]]:
    return {found.task: (found.stands, found.answer) for found in await why(engine, instance, at=at)}


async def test_what_is_to_be_undone_and_what_undid_it_are_told_while_it_is_rolled_back_and_afterwards(
    engine: Engine,
) -> None:
    await engine.apply("trip", {"a": 0}, TRIP, ends="quiet")
    instance = await engine.start("trip")
    await engine.do("trip", "book")
    found = await stands(engine, instance)
    assert found["free"] == ("condition", "free has not fired: book is not to be undone")
    assert found["drive"] == ("condition", "drive has not fired: fly has not failed for good")
    await engine.do("trip", "fly")
    instance = await engine.start("trip")
    await engine.do("trip", "book")
    fly = await engine.take("trip", "fly")
    await engine.rows("select mutirao.roll_back(%s)", instance)
    await engine.complete(fly)
    found = await stands(engine, instance)
    assert found["free"] == ("undoing", "free is to undo book, once what follows is undone")
    assert found["book"] == ("undoing", "book is to be undone by free")
    assert found["stay"][0] == "ready"
    await engine.do("trip", "stay")
    row = await engine.one("select max(id) from mutirao.trace where instance = %s", instance)
    undone = {
        "fly": f"fly has been undone by stay at row {row} of the trace",
        "stay": f"stay undid fly at row {row} of the trace",
    }
    found = await stands(engine, instance)
    assert {name: found[name] for name in undone} == {name: ("undone", said) for name, said in undone.items()}
    await engine.do("trip", "free")
    found, then = await stands(engine, instance), await stands(engine, instance, row)
    assert {name: found[name] for name in undone} == {name: ("closed", said) for name, said in undone.items()}
    assert found["drive"] == ("closed", "drive never fired: fly has not failed for good")
    assert then["free"] == ("undoing", "free is to undo book, once what follows is undone")
    assert then["stay"] == ("undone", undone["stay"])


async def test_what_was_undone_and_does_not_happen_again_is_told_by_its_condition(engine: Engine) -> None:
    tasks = {
        "pack": {"when": "a = 0", "fires": "once", "safe_point": True},
        "send": {"when": "a = 1", "fires": "once", "compensation": "fetch"},
        "wait": after("pack"),
        "fetch": {},
    }
    await engine.apply("f", {"a": 0}, tasks, ends="quiet")
    instance = await engine.start("f")
    await engine.do("f", "pack", a=1)
    await engine.do("f", "send")
    await engine.rows("select mutirao.roll_back(%s, 'pack')", instance)
    await engine.do("f", "fetch", a=2)
    found = await stands(engine, instance)
    assert found["send"][0] == "condition"
    assert found["send"][1].startswith("send does not fire now: a = 1 is false (a = 2); it last fired at row ")
    assert ", and has been undone by fetch at row " in found["send"][1]


async def test_a_task_that_does_not_wait_for_ever_says_when_it_starts(engine: Engine) -> None:
    tasks = {
        "first": {"when": "a = 0", "fires": "once", "retries": 0},
        "second": {"depends": {"task": "first", "state": "failed"}, "time_to_wait": 3600},
    }
    await engine.apply("rescue", {"a": 0}, tasks, ends="quiet")
    instance = await engine.start("rescue")
    await engine.take("rescue", "first")
    await engine.advance(minutes=2)
    whole, *found = await why(engine, instance)
    second = next(each for each in found if each.task == "second")
    assert (second.stands, second.answer) == (
        "alarm",
        "second has not fired, and starts in 58 min whatever they do: first has not failed: it is running",
    )
    assert second.answer in whole.answer
    await engine.advance(hours=1)
    second = await one(engine, instance, "second")
    assert "has been due for 2 min, for which a clock must be running, whatever they do" in second.answer
    await engine.suspend(instance)
    assert (await one(engine, instance, "second")).stands == "condition"


async def test_a_forced_task_is_tried_until_it_succeeds(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": {"when": "a = 0", "force": True, "retries": 0}}, final="a = 1")
    instance = await engine.start("f")
    await engine.fail(await engine.take("f", "go"), "no")
    await engine.advance(minutes=1)
    assert "another try for" in (await one(engine, instance, "go")).answer
    assert ", try 2, until it succeeds, after: no" in (await one(engine, instance, "go")).answer

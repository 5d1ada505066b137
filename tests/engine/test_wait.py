"""Tasks that wait for a time in the state: their jobs sleep until then, and follow the state when the time is changed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`

TIME = {"type": "timestamp"}


async def in_hours(engine: Engine, hours: float) -> str:
    now: datetime = await engine.one("select mutirao.now()")
    return (now + timedelta(hours=hours)).astimezone(UTC).isoformat()


async def reminder(engine: Engine, **remind: Any) -> None:
    """An order is reminded of at a time; then somebody writes to the customer."""
    tasks = {
        "remind": {"when": "stage = 'ordered'", "wait": "remind_at", "by_clock": True, **remind},
        "write": after("remind"),
    }
    await engine.apply("f", {"stage": "ordered", "remind_at": TIME}, tasks, final="stage = 'written'")


async def test_a_clock_ends_a_wait_when_its_time_has_come(engine: Engine) -> None:
    await reminder(engine)
    order = await engine.start("f", remind_at=await in_hours(engine, 24))
    assert await engine.jobs(order) == {"remind": "waiting"}
    await engine.advance(hours=23)
    await engine.tick()
    assert await engine.jobs(order) == {"remind": "waiting"}
    await engine.advance(hours=1)
    await engine.tick()
    assert await engine.jobs(order) == {"write": "ready"}
    await engine.do("f", "write", stage="written")
    assert await engine.status(order) == "closed.completed"
    assert [(step.kind, step.task, step.writer) for step in await engine.trace(order)][1] == (
        "finish",
        "remind",
        "clock",
    )


async def test_a_task_with_a_function_is_claimed_only_when_its_time_has_come(engine: Engine) -> None:
    await engine.apply("f", {"n": 0, "at": TIME}, {"step": {"when": "n = 0", "wait": "at"}}, final="n = 1")
    later = await engine.start("f", at=await in_hours(engine, 1))
    past = await engine.start("f", at=await in_hours(engine, -1))
    (job,) = await engine.claim("f", room=9)
    assert job.instance == past
    await engine.complete(job, n=1)
    await engine.advance(hours=1, seconds=1)
    assert await engine.claim("f", room=9) == []
    await engine.tick()
    (job,) = await engine.claim("f", room=9)
    assert job.instance == later
    await engine.complete(job, n=1)
    assert await engine.status(later) == "closed.completed"


async def test_a_wait_follows_the_state(engine: Engine) -> None:
    await reminder(engine)
    order = await engine.start("f", remind_at=await in_hours(engine, 24))
    await engine.set(order, remind_at=await in_hours(engine, 1))
    await engine.advance(hours=2)
    await engine.tick()
    assert await engine.jobs(order) == {"write": "ready"}


async def test_a_wait_that_is_put_off_does_not_end_at_the_old_time(engine: Engine) -> None:
    await reminder(engine)
    order = await engine.start("f", remind_at=await in_hours(engine, 1))
    await engine.set(order, remind_at=await in_hours(engine, 24))
    await engine.advance(hours=2)
    await engine.tick()
    assert await engine.jobs(order) == {"remind": "waiting"}


async def test_without_a_time_a_wait_sleeps_until_there_is_one(engine: Engine) -> None:
    await reminder(engine)
    order = await engine.start("f")
    await engine.advance(hours=24 * 365 * 100)
    await engine.tick()
    assert await engine.jobs(order) == {"remind": "waiting"}
    assert await engine.one("select next_at from mutirao.turn_clock(duty => 'waits')") is None
    await engine.set(order, remind_at=await in_hours(engine, -1))
    await engine.tick()
    assert await engine.jobs(order) == {"write": "ready"}


async def test_a_function_that_became_ready_and_is_put_off_sleeps_again(engine: Engine) -> None:
    await engine.apply("f", {"n": 0, "at": TIME}, {"step": {"when": "n = 0", "wait": "at"}}, final="n = 1")
    order = await engine.start("f", at=await in_hours(engine, -1))
    await engine.set(order, at=await in_hours(engine, 1))
    assert await engine.claim("f", room=9) == []
    await engine.set(order, at=await in_hours(engine, -1))
    assert len(await engine.claim("f", room=9)) == 1


async def test_a_date_is_the_beginning_of_that_day_in_utc(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"day": {"type": "date"}, "n": 0},
        {"step": {"when": "n = 0", "wait": "day", "by_clock": True}},
        ends="quiet",
    )
    tomorrow = await engine.one("select ((mutirao.now() at time zone 'UTC')::date + 1)::text")
    instance = await engine.start("f", day=tomorrow)
    due = await engine.one("select due_at from mutirao.job where instance = %s", instance)
    assert due == datetime.fromisoformat(tomorrow).replace(tzinfo=UTC)


async def test_a_suspended_wait_goes_on_sleeping_when_it_is_resumed(engine: Engine) -> None:
    await reminder(engine)
    order = await engine.start("f", remind_at=await in_hours(engine, 5))
    await engine.suspend(order)
    assert await engine.jobs(order) == {"remind": "held"}
    await engine.resume(order)
    assert await engine.jobs(order) == {"remind": "waiting"}
    await engine.suspend(order)
    await engine.advance(hours=6)
    await engine.tick()
    assert await engine.jobs(order) == {"remind": "held"}
    await engine.resume(order)
    await engine.tick()
    assert await engine.jobs(order) == {"write": "ready"}


async def test_a_wait_can_be_skipped_and_dies_with_its_instance(engine: Engine) -> None:
    await reminder(engine)
    hours = await in_hours(engine, 5)
    skipped, cancelled = await engine.start_many("f", [{"remind_at": hours}, {"remind_at": hours}])
    await engine.skip(await engine.job(skipped, "remind"))
    assert await engine.jobs(skipped) == {"write": "ready"}
    await engine.cancel(cancelled)
    assert await engine.status(cancelled) == "closed.aborted"
    assert await engine.one("select count(*) from mutirao.job") == 1


async def test_a_wait_that_would_make_the_state_final_while_others_work_is_parked(engine: Engine) -> None:
    tasks = {"pause": {"when": "true", "wait": "at", "by_clock": True}, "work": "n = 0"}
    await engine.apply("f", {"n": 0, "at": TIME}, tasks, final="task_pause = 'succeeded'")
    instance = await engine.start("f", at=await in_hours(engine, -1))
    await engine.tick()
    assert await engine.jobs(instance) == {"pause": "parked", "work": "ready"}
    await engine.do("f", "work", n=1)
    assert await engine.status(instance) == "closed.completed"


async def test_a_wait_fires_once_unless_it_says_otherwise(engine: Engine) -> None:
    await reminder(engine)
    order = await engine.start("f", remind_at=await in_hours(engine, -1))
    await engine.tick()
    await engine.tick()
    assert [step.task for step in await engine.trace(order)] == [None, "remind"]


async def test_waits_of_one_instance_end_one_after_another(engine: Engine) -> None:
    tasks = {name: {"when": "n = 0", "wait": "at", "by_clock": True} for name in ("a", "b", "c")}
    await engine.apply(
        "f",
        {"n": 0, "at": TIME},
        {**tasks, "end": {"depends": {"all": [{"task": t, "state": "succeeded"} for t in tasks]}}},
        ends="quiet",
    )
    instance = await engine.start("f", at=await in_hours(engine, 1))
    await engine.advance(hours=2)
    await engine.tick()
    assert await engine.jobs(instance) == {"end": "ready"}
    assert [step.fired for step in await engine.trace(instance)] == [["a", "b", "c"], [], [], ["end"]]


async def test_many_waits_that_fall_due_at_once_go_in_batches(engine: Engine) -> None:
    await reminder(engine)
    await engine.start_many("f", [{"remind_at": await in_hours(engine, 1)}] * 30)
    await engine.advance(hours=2)
    done = [await engine.one("select (done ->> 'waits')::int from mutirao.turn_clock(12)") for _ in range(4)]
    assert done == [12, 12, 6, 0]


async def test_a_live_flow_follows_a_wait_that_it_is_given(engine: Engine) -> None:
    """What its jobs do is decided by the newest version."""
    await engine.apply(
        "f", {"stage": "a", "at": TIME}, {"step": {"when": "stage = 'a'", "wait": "at"}}, final="stage = 'b'"
    )
    instance = await engine.start("f", at=await in_hours(engine, 1))
    due = await engine.one("select due_at from mutirao.job where instance = %s", instance)
    assert due == datetime.fromisoformat((await engine.state(instance))["at"])


@pytest.mark.parametrize(
    ("task", "code", "says"),
    [
        (
            {"wait": "n"},
            "flow_invalid",
            '"n", which is of type integer: it must be an attribute of type timestamp or date',
        ),
        ({"wait": "m"}, "unknown_attribute", '"m", which is no attribute of the flow'),
        ({"by_clock": True}, "flow_invalid", "by_clock with wait"),
    ],
)
async def test_a_wait_on_what_is_no_time_is_refused(engine: Engine, task: dict[str, Any], code: str, says: str) -> None:
    async with engine.refused(code, says):
        await engine.apply("f", {"n": 0}, {"step": {"when": "n = 0", **task}})


async def test_a_flow_in_sql_waits_and_is_limited_too(engine: Engine) -> None:
    await engine.create("f", {"stage": "a"}, {"go": "stage = 'a'"}, "stage = 'b'")
    await engine.rows("insert into f.wed_attr (aname, atype) values ('due', 'timestamp')")
    await engine.until_caught_up()
    sleeping = await engine.start("f", due=await in_hours(engine, 1))
    assert await engine.jobs(sleeping) == {"go": "ready"}
    await engine.rows("update f.wed_trig set wait = 'due', at_once = 1 where trname = 'go'")
    await engine.until_caught_up()
    assert await engine.jobs(sleeping) == {"go": "waiting"}
    other = await engine.start("f", due=await in_hours(engine, -1))
    await engine.advance(hours=2)
    await engine.tick()
    assert [job.instance for job in await engine.claim("f", room=9)] == [sleeping]
    assert await engine.jobs(other) == {"go": "ready"}
    async with engine.refused("flow_invalid", "which is of type text"):
        await engine.rows("update f.wed_trig set wait = 'stage' where trname = 'go'")
    async with engine.refused("flow_invalid", "limits are more than zero"):
        await engine.rows("update f.wed_trig set at_once = 0 where trname = 'go'")


async def live(engine: Engine, **go: Any) -> int:
    """A live flow with one instance whose task `go` waits for `due`, in an hour, as the columns of wed_trig say."""
    await engine.create("f", {"stage": "a"}, {"go": "stage = 'a'"}, "stage = 'b'")
    await engine.rows("insert into f.wed_attr (aname, atype) values ('due', 'timestamp')")
    await become(engine, **go)
    return await engine.start("f", due=await in_hours(engine, 1))


async def become(engine: Engine, **go: Any) -> None:
    columns = ", ".join(f"{name} = %s" for name in go)
    if go:
        await engine.rows(f"update f.wed_trig set {columns} where trname = 'go'", *go.values())
    await engine.until_caught_up()


async def test_what_a_clock_was_to_end_becomes_a_worker_s(engine: Engine) -> None:
    instance = await live(engine, wait="due", by_clock=True, fires="once")
    await become(engine, wait=None, by_clock=False)
    assert await engine.jobs(instance) == {"go": "ready"}
    await engine.do("f", "go", stage="b")
    assert await engine.status(instance) == "closed.completed"


async def test_what_was_a_worker_s_becomes_a_clock_s(engine: Engine) -> None:
    instance = await live(engine)
    await become(engine, wait="due", by_clock=True, fires="once")
    assert await engine.jobs(instance) == {"go": "waiting"}
    await engine.advance(hours=2)
    await engine.tick()
    assert [step.task for step in await engine.trace(instance) if step.kind == "finish"] == ["go"]


async def test_a_value_that_is_no_time_concerns_its_instance_alone(engine: Engine) -> None:
    await engine.create("f", {"stage": "a", "due": None}, {"go": "stage = 'a'"}, "stage = 'b'")
    bad, good = await engine.start_many("f", [{"due": "soon"}, {"due": await in_hours(engine, 1)}])
    await engine.rows("update f.wed_attr set atype = 'timestamp' where aname = 'due'")
    await become(engine, wait="due")
    assert await engine.jobs(good) == {"go": "waiting"}
    assert await engine.status(bad) == "open.exception"
    await engine.set(bad, due=await in_hours(engine, -1))
    await engine.do("f", "go", stage="b")
    assert await engine.status(bad) == "closed.completed"


async def test_a_date_beyond_all_times_is_waited_for_and_stops_nobody(engine: Engine) -> None:
    tasks = {
        "first": {"when": "n = 0", "wait": "at", "by_clock": True},
        "next": {"depends": {"task": "first", "state": "succeeded"}, "wait": "day", "by_clock": True},
    }
    await engine.apply("f", {"n": 0, "at": TIME, "day": {"type": "date"}}, tasks, ends="quiet")
    past = await in_hours(engine, -1)
    far, near = await engine.start_many("f", [{"at": past}, {"at": past, "day": "2001-01-01"}])
    # No change may bring it, but a state from before that was so may have it.
    await engine.rows('update mutirao.instance set state = state || \'{"day": "300000-01-01"}\' where id = %s', far)
    await engine.tick()
    await engine.tick()
    assert await engine.jobs(far) == {"next": "waiting"}
    assert await engine.status(near) == "closed.completed"


async def test_a_job_that_waited_is_as_old_as_its_readiness(engine: Engine) -> None:
    await engine.apply("f", {"n": 0, "at": TIME}, {"step": {"when": "n = 0", "wait": "at"}}, final="n = 1")
    by_clock = await engine.start("f", at=await in_hours(engine, 720))
    by_hand = await engine.start("f", at=await in_hours(engine, 900))
    await engine.advance(hours=720)
    await engine.tick()
    await engine.advance(minutes=5)
    await engine.set(by_hand, at=await in_hours(engine, -1))
    await engine.advance(minutes=5)
    answers = [await engine.one("select answer from mutirao.why(%s, 'step')", each) for each in (by_clock, by_hand)]
    assert [answer.split(":")[0] for answer in answers] == [f"step has been ready for {n} min" for n in (10, 5)]

"""The life of an instance: conditions that raise, and conditions over the states of tasks."""

import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb


async def divider(engine: Engine) -> int:
    """A flow that cannot bear a zero in `d`."""
    await engine.apply(
        "f", {"d": 1, "a": 0}, {"go": "a = 0", "other": "a < 2", "check": "a = 1 and 10 / d > 1"}, final="a = 9"
    )
    return await engine.start("f")


async def test_a_condition_that_raises_is_an_exception_with_condition_error_and_the_write_kept(engine: Engine) -> None:
    instance = await divider(engine)
    job = await engine.take("f", "go")
    assert await engine.complete(job, a=1, d=0) == "parked"
    assert await engine.status(instance) == "open.exception"
    assert await engine.reasons(instance) == [
        {
            "code": "condition_failed",
            "task": "check",
            "condition": "a = 1 and 10 / d > 1",
            "error": "division by zero",
            "job": job.id,
        }
    ]
    assert await engine.state(instance) == {"d": 1, "a": 0}
    assert await engine.one("select change from mutirao.job where id = %s", job.id) == {"a": 1, "d": 0}
    assert await engine.jobs(instance) == {"go": "parked", "other": "ready", "_EXCPT": "ready"}


async def test_it_concerns_that_instance_alone(engine: Engine) -> None:
    poisoned = await divider(engine)
    others = await engine.start_many("f", [{}] * 20)
    jobs = await engine.claim("f", "go", room=50)
    told, _ = await engine.turn([(job, {"a": 1, "d": 0 if job.instance == poisoned else 2}) for job in jobs])
    assert [(t.kind, (t.note or {})["code"]) for t in told] == [("parked", "condition_failed")]
    assert await engine.status(poisoned) == "open.exception"
    for other in others:
        assert await engine.jobs(other) == {"other": "ready", "check": "ready"}


async def test_the_refused_write_is_tried_again_when_another_job_ends_or_after_a_repair(engine: Engine) -> None:
    instance = await divider(engine)
    await engine.do("f", "go", a=1, d=0)
    await engine.do("f", "other")
    assert await engine.codes(instance) == ["condition_failed"]  # still: the change itself sets d
    await engine.skip(await engine.job(instance, "go"), a=1, d=5)
    assert await engine.status(instance) == "open.running"
    assert "check" in await engine.jobs(instance)


async def test_a_condition_that_raises_no_more_lets_the_kept_write_through(engine: Engine) -> None:
    await engine.apply(
        "f", {"d": 0, "a": 0}, {"go": "a = 0", "other": "a < 2", "check": "a = 1 and 10 / d > 1"}, final="a = 9"
    )
    instance = await engine.start("f")
    await engine.do("f", "go", a=1)
    assert await engine.codes(instance) == ["condition_failed"]
    await engine.repair(instance, d=5)
    assert await engine.state(instance) == {"d": 5, "a": 1}
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"other": "ready", "check": "ready"}


async def test_the_exception_ends_when_another_job_makes_room_for_the_kept_write(engine: Engine) -> None:
    await engine.apply(
        "f", {"d": 0, "a": 0, "b": 0}, {"go": "a = 0", "mend": "b = 0", "check": "a = 1 and 10 / d > 1"}, final="a = 9"
    )
    instance = await engine.start("f")
    await engine.do("f", "go", a=1)
    assert await engine.jobs(instance) == {"go": "parked", "mend": "ready", "_EXCPT": "ready"}
    await engine.do("f", "mend", d=5, b=1)
    assert await engine.state(instance) == {"d": 5, "a": 1, "b": 1}
    assert await engine.jobs(instance) == {"check": "ready"}
    assert await engine.status(instance) == "open.running"


async def test_a_final_condition_that_raises_is_told_as_such(engine: Engine) -> None:
    await engine.apply("f", {"d": 1}, {"go": "d = 1"}, final="10 / d > 100")
    instance = await engine.start("f")
    await engine.do("f", "go", d=0)
    assert [(r["code"], r["task"]) for r in await engine.reasons(instance)] == [("condition_failed", "_FINAL")]


async def test_a_start_or_a_correction_on_which_a_condition_raises_is_refused(engine: Engine) -> None:
    instance = await divider(engine)
    async with engine.refused("condition_failed", "check: division by zero"):
        await engine.start("f", a=1, d=0)
    async with engine.refused("condition_failed", "check: division by zero"):
        await engine.set(instance, a=1, d=0)


async def test_a_condition_is_not_asked_while_its_job_is_pending(engine: Engine) -> None:
    await engine.apply("f", {"d": 1, "a": 0}, {"check": "10 / d > 1", "zero": "a = 0"}, final="a = 9")
    instance = await engine.start("f")
    assert await engine.do("f", "zero", d=0, a=1) == "ok"
    assert await engine.status(instance) == "open.running"


async def test_while_suspended_or_cancelled_no_condition_has_a_say(engine: Engine) -> None:
    suspended = await divider(engine)
    cancelled = await engine.start("f")
    jobs = {job.instance: job for job in await engine.claim("f", "go", room=2)}
    await engine.suspend(suspended)
    await engine.cancel(cancelled)
    assert await engine.complete(jobs[cancelled], a=1, d=0) == "ok"
    assert await engine.status(cancelled) == "closed.aborted"
    assert await engine.complete(jobs[suspended], a=1, d=0) == "ok"
    assert await engine.state(suspended) == {"d": 0, "a": 1}
    await engine.resume(suspended)
    assert await engine.status(suspended) == "open.exception"
    (reason,) = await engine.reasons(suspended)
    assert (reason["code"], reason["task"], "job" in reason) == ("condition_failed", "check", False)
    await engine.set(suspended, d=5)
    assert await engine.status(suspended) == "open.running"
    assert await engine.jobs(suspended) == {"other": "ready", "check": "ready"}


async def test_a_condition_that_raises_when_a_job_fails_leaves_nothing_half_done(engine: Engine) -> None:
    await engine.apply("f", {"d": 0}, {"go": "d = 0", "sorry": "task_go = 'failed' and 1 / d = 1"}, final="d = 9")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "go"))
    assert await engine.codes(instance) == ["condition_failed"]
    assert await engine.jobs(instance) == {"go": "failed", "_EXCPT": "ready"}
    assert await engine.one("select pending from mutirao.instance") == []
    await engine.set(instance, d=1)
    assert await engine.jobs(instance) == {"go": "failed", "sorry": "ready"}


async def test_a_condition_that_takes_too_long_is_parked_by_its_worker(engine: Engine) -> None:
    instance = await divider(engine)
    job = await engine.take("f", "go")
    problem = {"code": "condition_failed", "error": "a condition took longer than 10 s"}
    await engine.rows(
        "select mutirao.park_attempt(%s, %s, %s, %s)", job.id, job.attempt, Jsonb({"a": 1}), Jsonb(problem)
    )
    assert await engine.status(instance) == "open.exception"
    assert await engine.reasons(instance) == [problem | {"job": job.id}]
    assert await engine.one("select change from mutirao.job where id = %s", job.id) == {"a": 1}
    async with engine.refused("lease_lost"):
        await engine.rows("select mutirao.park_attempt(%s, %s, null, %s)", job.id, job.attempt, Jsonb(problem))


async def test_a_transactional_task_whose_condition_raises_runs_again_when_another_job_ends(engine: Engine) -> None:
    instance = await divider(engine)
    job = await engine.take("f", "go")
    async with engine.refused("condition_failed"):
        await engine.rows("select mutirao.complete_here(%s, %s, %s)", job.id, job.attempt, Jsonb({"a": 1, "d": 0}))
    problem = Jsonb({"code": "condition_failed", "error": "division by zero"})
    await engine.rows("select mutirao.park_attempt(%s, %s, null, %s)", job.id, job.attempt, problem)
    assert await engine.jobs(instance) == {"go": "parked", "other": "ready", "_EXCPT": "ready"}
    await engine.do("f", "other")
    assert await engine.jobs(instance) == {"go": "ready", "other": "ready"}
    assert await engine.status(instance) == "open.running"


# ----------------------------------------------------------------------------------------------------- states of tasks


async def test_a_condition_names_the_latest_state_of_a_task(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"a": 0},
        {
            "go": {"when": "a = 0", "fires": "once"},
            "good": {"when": "task_go = 'succeeded'", "fires": "once"},
            "bad": {"when": "task_go = 'failed'", "fires": "once"},
            "early": {"when": "task_go = 'not_ready'", "fires": "once"},
        },
        final="a = 9",
    )
    good, bad = await engine.start_many("f", [{}, {}])
    assert await engine.jobs(good) == {"go": "ready", "early": "ready"}
    jobs = {job.instance: job for job in await engine.claim("f", "go", room=2)}
    await engine.complete(jobs[good])
    assert await engine.jobs(good) == {"early": "ready", "good": "ready"}
    await engine.fail_for_good(jobs[bad])
    assert await engine.jobs(bad) == {"early": "ready", "go": "failed", "bad": "ready"}


async def test_states_of_tasks_live_beside_the_attributes_not_among_them(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a = 0", "then": "task_go = 'succeeded'"}, final="a = 9")
    instance = await engine.start("f")
    await engine.do("f", "go", a=1)
    assert await engine.state(instance) == {"a": 1}
    async with engine.refused("attribute_reserved", "task_go"):
        await engine.apply("g", {"task_go": 0}, {"go": "true"})


async def test_where_a_rule_names_running_reaching_it_is_looked_at(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"a": 0},
        {
            "slow": {"when": "a = 0", "fires": "once"},
            "watch": after("slow", "running"),
            "other": {"when": "a = 0", "fires": "once"},
        },
        ends="quiet",
    )
    instance = await engine.start("f")
    assert await engine.jobs(instance) == {"slow": "ready", "other": "ready"}
    await engine.take("f", "slow")
    assert await engine.jobs(instance) == {"slow": "running", "other": "ready", "watch": "ready"}
    assert (await engine.trace(instance))[-1][:3] == ("reach", "slow", ["watch"])
    before = await engine.trace(instance)
    await engine.take("f", "other")
    assert await engine.trace(instance) == before  # nobody names its running


async def test_two_watched_jobs_of_one_instance_claimed_together_are_both_looked_at(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"a": 0},
        {
            "one": {"when": "a = 0", "fires": "once"},
            "two": {"when": "a = 0", "fires": "once"},
            "see_one": after("one", "running"),
            "see_two": after("two", "running"),
        },
        ends="quiet",
    )
    instance = await engine.start("f")
    assert len(await engine.claim("f", "one", "two", room=2)) == 2
    assert await engine.jobs(instance) == {"one": "running", "two": "running", "see_one": "ready", "see_two": "ready"}
    assert sorted(await engine.one("select array(select name from mutirao.task where id = any (pending)) from mutirao.instance")) == [
        "one", "see_one", "see_two", "two",
    ]  # fmt: skip


async def test_where_a_rule_names_ready_firing_is_looked_at_at_once(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"a": 0},
        {"one": {"when": "a = 0", "fires": "once"}, "two": after("one", "ready"), "three": after("two", "ready")},
        ends="quiet",
    )
    instance = await engine.start("f")
    assert await engine.jobs(instance) == {"one": "ready", "two": "ready", "three": "ready"}
    assert (await engine.trace(instance))[0].fired == ["one", "two", "three"]


async def test_a_job_that_goes_back_to_ready_is_ready_for_those_who_watch_it(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"a": 0},
        {"slow": {"when": "a = 0", "retries": 1}, "busy": "a = 0 and task_slow = 'running'"},
        final="a = 9",
    )

    async def latest() -> str:
        return str(await engine.one("select latest ->> 'slow' from mutirao.instance"))

    instance = await engine.start("f")
    assert await latest() == "ready"
    job = await engine.take("f", "slow")
    assert await latest() == "running"
    assert await engine.jobs(instance) == {"slow": "running", "busy": "ready"}
    await engine.release(job)
    assert await latest() == "ready"
    await engine.do("f", "busy")
    assert await engine.jobs(instance) == {"slow": "ready"}  # not "busy": it runs no more
    await engine.take("f", "slow")
    await engine.advance(minutes=2)
    await engine.tick()
    assert await latest() == "ready"
    await engine.fail(await engine.take("f", "slow"))
    assert await latest() == "ready"
    await engine.advance(minutes=10)
    await engine.tick()
    await engine.fail(await engine.take("f", "slow"))
    assert await latest() == "failed"
    await engine.retry(await engine.job(instance, "slow"))
    assert await latest() == "ready"


async def test_a_condition_that_raises_on_reaching_a_state_is_an_exception_and_the_claim_stands(engine: Engine) -> None:
    await engine.apply("f", {"d": 0}, {"slow": "d = 0", "busy": "task_slow = 'running' and 1 / d = 1"}, final="d = 9")
    instance = await engine.start("f")
    job = await engine.take("f", "slow")
    assert await engine.codes(instance) == ["condition_failed"]
    assert await engine.complete(job, d=9) == "ok"
    assert await engine.status(instance) == "closed.completed"


@pytest.mark.parametrize(("kind", "value"), [("number", "1e1000"), ("number", "-1e99999"), ("json", '[{"a": 1e5000}]')])
async def test_a_number_that_nobody_could_read_is_refused(engine: Engine, kind: str, value: str) -> None:
    await engine.apply("f", {"n": {"type": kind}, "a": 0}, {"go": "a = 0"}, final="a = 1")
    async with engine.refused("wrong_type", 'attribute "n" cannot be a number of more than 1000 digits'):
        await engine.rows("select mutirao.start('f', %s::jsonb)", f'{{"n": {value}}}')
    instance = await engine.start("f", n=10**999)
    async with engine.refused("wrong_type", 'attribute "n" cannot be a number of more than 1000 digits'):
        await engine.rows("select mutirao.set(%s, %s::jsonb)", instance, f'{{"n": {value}}}')
    assert await engine.kinds(instance) == ["start"]


@pytest.mark.parametrize(
    ("kind", "word"), [("date", "today"), ("date", "infinity"), ("date", "J2451187"), ("timestamp", "now")]
)
async def test_a_time_is_written_out(engine: Engine, kind: str, word: str) -> None:
    """A word such as tomorrow would be another day each time somebody looks."""
    await engine.apply("f", {"d": {"type": kind}, "a": 0}, {"go": "a = 0"}, final="a = 1")
    async with engine.refused("wrong_type", f'attribute "d" is of type {kind}: it cannot be "{word}"'):
        await engine.start("f", d=word)
    await engine.start("f", d="2031-12-24")


@pytest.mark.parametrize(
    ("kind", "far"),
    [
        ("date", "22027-03-10"), ("date", "0044-03-15 BC"), ("date", "10000-01-01"),
        ("timestamp", "22027-03-10T08:00:00Z"), ("timestamp", "0044-03-15T08:00:00Z BC"),
        ("timestamp", "9999-12-31T23:59:59-03:00"), ("timestamp", "10000-01-01T00:00:00+03:00"), ("timestamp", "0001-01-01T00:00:00+03:00"),
    ],
)  # fmt: skip
async def test_a_time_in_a_year_that_nobody_could_read_is_refused(engine: Engine, kind: str, far: str) -> None:
    await engine.apply("f", {"d": {"type": kind}, "a": 0}, {"go": "a = 0"}, final="a = 1")
    line = f'attribute "d" is a {kind} in a year from 1 to 9999: it cannot be "{far}"'
    async with engine.refused("wrong_type", line):
        await engine.start("f", d=far)
    instance = await engine.start("f")
    async with engine.refused("wrong_type", line):
        await engine.set(instance, d=far)
    job = await engine.take("f", "go")
    async with engine.refused("wrong_type", line):
        await engine.complete(job, a=1, d=far)
    assert (await engine.state(instance))["d"] is None


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
async def test_the_first_and_the_last_day_are_taken_wherever_one_is(engine: Engine, day: str) -> None:
    await engine.apply(
        "f", {"d": {"type": "date"}, "t": {"type": "timestamp"}}, {"go": "d is not null"}, final="d is null"
    )
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        await engine.rows("select set_config('timezone', %s, false)", zone)
        instance = await engine.start("f", d=day, t=f"{day}T23:59:59Z")
        assert await engine.state(instance) == {"d": day, "t": f"{day}T23:59:59Z"}


@pytest.mark.parametrize("kind", ["date", "timestamp"])
@pytest.mark.parametrize("far", ["infinity", "-infinity", "22027-03-10", "0044-03-15 BC"])
async def test_a_default_is_in_a_year_that_everybody_can_read(engine: Engine, kind: str, far: str) -> None:
    line = f'attribute "d" is a {kind} in a year from 1 to 9999: its default cannot be'
    async with engine.refused("wrong_type", line):
        await engine.apply("f", {"d": {"type": kind, "default": far}, "a": 0}, {"go": "a = 0"}, final="a = 1")
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")
    async with engine.refused("wrong_type", line):
        await engine.rows("insert into f.wed_attr (aname, atype, adv) values ('d', %s, %s)", kind, far)
    await engine.rows("insert into f.wed_attr (aname, atype) values ('d', %s)", kind)
    async with engine.refused("wrong_type", line):
        await engine.rows("update f.wed_attr set adv = %s where aname = 'd'", far)

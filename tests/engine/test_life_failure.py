"""The life of an instance: jobs that fail, are retried, time out or lose their worker."""

from datetime import timedelta

import pytest
from driver import Engine, Job, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb


async def one_task(engine: Engine, **more: object) -> int:
    await engine.apply("f", {"a": 0}, {"go": {"when": "a = 0", **more}}, final="a = 1")
    return await engine.start("f")


async def take_when_due(engine: Engine) -> Job:
    await engine.advance(minutes=10)
    await engine.tick()
    return await engine.take("f", "go")


async def test_an_attempt_that_fails_uses_a_retry_and_waits(engine: Engine) -> None:
    instance = await one_task(engine)
    await engine.fail(await engine.take("f", "go"), "no network")
    assert await engine.jobs(instance) == {"go": "waiting"}
    assert await engine.claim("f", "go") == []
    assert await engine.status(instance) == "open.running"
    last = (await engine.trace(instance))[-1]
    assert (last.kind, last.task, last.state, last.note) == (
        "retry",
        "go",
        None,
        {"error": "no network", "final": False},
    )
    again = await take_when_due(engine)
    assert again.failures == 1
    await engine.complete(again, a=1)
    assert await engine.status(instance) == "closed.completed"


async def test_it_waits_longer_each_time_and_never_beyond_measure(engine: Engine) -> None:
    instance = await one_task(engine, retries=30, backoff=1.0)
    waits = []
    for _ in range(25):
        job = await take_when_due(engine)
        await engine.fail(job)
        waits.append(await engine.one("select extract(epoch from due_at - mutirao.now())::float8 from mutirao.job"))
    assert 0.4 < waits[0] <= 1.5
    assert 4 < waits[1] <= 15
    assert all(100 < wait <= 450 for wait in waits[4:])
    assert await engine.jobs(instance) == {"go": "waiting"}


async def test_a_long_backoff_is_kept(engine: Engine) -> None:
    await one_task(engine, backoff=3600.0)
    await engine.fail(await engine.take("f", "go"))
    assert 1500 < await engine.one("select extract(epoch from due_at - mutirao.now())::float8 from mutirao.job") <= 5400


async def test_after_three_retries_the_job_has_failed_for_good(engine: Engine) -> None:
    instance = await one_task(engine)
    for _ in range(4):
        await engine.fail(await take_when_due(engine), "still no network")
    assert await engine.jobs(instance) == {"go": "failed", "_EXCPT": "ready"}
    assert await engine.status(instance) == "open.exception"
    (reason,) = await engine.reasons(instance)
    assert (reason["code"], reason["task"], reason["error"]) == ("task_failed", "go", "still no network")
    assert await engine.kinds(instance) == ["start", "retry", "retry", "retry", "fail"]


async def test_the_number_of_retries_is_the_tasks(engine: Engine) -> None:
    instance = await one_task(engine, retries=0)
    await engine.fail(await engine.take("f", "go"))
    assert await engine.jobs(instance) == {"go": "failed", "_EXCPT": "ready"}


async def test_a_task_that_says_failed_has_failed_at_once(engine: Engine) -> None:
    instance = await one_task(engine)
    await engine.fail_for_good(await engine.take("f", "go"), "no such hotel")
    assert await engine.jobs(instance) == {"go": "failed", "_EXCPT": "ready"}
    assert await engine.kinds(instance) == ["start", "fail"]
    kept = await engine.one("select error from mutirao.job where status = 'failed'")
    assert kept["error"] == "no such hotel"


async def test_a_job_given_back_with_neither_change_nor_error_uses_a_retry(engine: Engine) -> None:
    instance = await one_task(engine)
    job = await engine.take("f", "go")
    await engine.rows(
        "select * from mutirao.turn('ann', array[%s::bigint], array[%s::bigint], array[null::jsonb], array[null::jsonb], '{}', 0)",
        job.id, job.attempt,
    )  # fmt: skip
    assert await engine.jobs(instance) == {"go": "waiting"}


@pytest.mark.parametrize("function", ["complete", "complete_here"])
async def test_to_complete_with_null_is_refused(engine: Engine, function: str) -> None:
    """Work done in the job's own transaction must not be committed beside a job that would run again."""
    instance = await one_task(engine)
    job = await engine.take("f", "go")
    async with engine.refused("wrong_call", "null is no change"):
        await engine.rows(f"select mutirao.{function}(%s, %s, null)", job.id, job.attempt)
    assert await engine.jobs(instance) == {"go": "running"}


async def test_an_odd_error_concerns_its_own_job_alone(engine: Engine) -> None:
    odd, good = await one_task(engine), await engine.start("f")
    jobs = await engine.claim("f", "go", room=2)
    await engine.rows(
        "select * from mutirao.turn('ann', %s::bigint[], %s::bigint[], array[null, '{\"a\": 1}'::jsonb], array['{\"final\": \"maybe\"}'::jsonb, null], '{}', 0)",
        [job.id for job in jobs], [job.attempt for job in jobs],
    )  # fmt: skip
    assert await engine.jobs(odd) == {"go": "waiting"}
    assert await engine.jobs(good) != {"go": "running"}


async def test_a_job_is_parked_only_for_a_problem_that_parks(engine: Engine) -> None:
    instance = await one_task(engine)
    job = await engine.take("f", "go")
    for problem in ("null", '\'{"code": "anything"}\'', "'[]'"):
        async with engine.refused("wrong_call", "final_blocked or condition_failed"):
            await engine.rows(f"select mutirao.park_attempt(%s, %s, null, {problem})", job.id, job.attempt)
    assert await engine.jobs(instance) == {"go": "running"}


async def test_the_change_of_an_attempt_that_failed_is_not_written(engine: Engine) -> None:
    instance = await one_task(engine, retries=0)
    job = await engine.take("f", "go")
    await engine.rows(
        "select * from mutirao.turn('ann', array[%s::bigint], array[%s::bigint], array[%s], array[%s], '{}', 0)",
        job.id, job.attempt, Jsonb({"a": 1}), Jsonb({"error": "no"}),
    )  # fmt: skip
    assert await engine.state(instance) == {"a": 0}
    assert await engine.jobs(instance) == {"go": "failed", "_EXCPT": "ready"}


async def test_a_failed_job_keeps_its_place_it_neither_fires_again_nor_lets_the_instance_close(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "b": 0}, {"go": "a = 0", "other": "b < 2"}, final="b = 2")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "go"))
    await engine.do("f", "other", b=1)
    assert await engine.jobs(instance) == {"go": "failed", "_EXCPT": "ready", "other": "ready"}
    assert await engine.do("f", "other", b=2) == "parked"
    assert await engine.status(instance) == "open.exception"
    assert sorted(await engine.codes(instance)) == ["final_blocked", "task_failed"]
    async with engine.refused("final_blocked"):
        await engine.set(instance, b=2)


async def test_a_failure_without_a_handler_blocks_its_dependants_and_independent_branches_go_on(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"a": 0},
        {
            "one": {"when": "true", "fires": "once"},
            "two": after("one"),
            "free": {"when": "true", "fires": "once"},
            "last": after("free"),
        },
        ends="quiet",
    )
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    await engine.do("f", "free")
    await engine.do("f", "last")
    assert await engine.jobs(instance) == {"one": "failed", "_EXCPT": "ready"}
    assert await engine.status(instance) == "open.exception"


async def test_a_failure_that_a_task_depends_on_is_handled_and_blocks_neither_quiet(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0}, {"one": {"when": "true", "fires": "once"}, "sorry": after("one", "failed")}, ends="quiet"
    )
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"one": "failed", "sorry": "ready"}
    await engine.do("f", "sorry")
    assert await engine.status(instance) == "closed.completed"
    assert await engine.jobs(instance) == {}


async def test_a_handled_failure_blocks_final_no_more(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": "a = 0", "sorry": "task_one = 'failed'"}, final="a = 9")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    assert await engine.jobs(instance) == {"one": "failed", "sorry": "ready"}
    await engine.do("f", "sorry", a=9)
    assert await engine.status(instance) == "closed.completed"


@pytest.mark.parametrize(
    ("condition", "is_handled"),
    [
        ("'failed' = task_one", True),
        ("a = 0 and (a = 1 or task_one in ('failed', 'succeeded'))", True),
        ("task_one = any (array['failed'])", True),
        ("coalesce(task_one = 'failed', false)", True),
        ("not (task_one = 'failed')", False),
        ("task_one <> 'failed'", False),
        ("task_one not in ('failed')", False),
        ("case when task_one = 'failed' then false else true end", False),
        ("(task_one = 'failed') is not true", False),
    ],
)
async def test_a_condition_handles_a_failure_only_where_it_waits_for_it(
    engine: Engine, condition: str, is_handled: bool
) -> None:
    other = {"when": condition, "fires": "once"}
    await engine.apply("f", {"a": 0}, {"one": {"when": "true", "fires": "once"}, "other": other}, ends="quiet")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    assert (await engine.status(instance) == "open.exception") is not is_handled


@pytest.mark.parametrize(
    ("when", "final"), [("a = 0 or task_one = 'failed'", "a = 1"), ("a = 0", "a = 1 and task_one in ('failed', 'x')")]
)
async def test_neither_final_nor_the_task_itself_handles_its_failure(engine: Engine, when: str, final: str) -> None:
    await engine.apply("f", {"a": 0}, {"one": when}, final=final)
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    assert (
        await engine.one("select reasons -> 0 ->> 'code' from mutirao.instance where id = %s", instance)
        == "task_failed"
    )


async def test_to_name_another_state_of_a_task_does_not_handle_its_failure(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": "a = 0", "then": "task_one = 'succeeded'"}, ends="quiet")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    assert await engine.codes(instance) == ["task_failed"]


async def test_a_disabled_task_handles_nothing(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": "a = 0", "sorry": after("one", "failed", enabled=False)}, ends="quiet")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    assert await engine.codes(instance) == ["task_failed"]


async def test_a_person_retries_a_failed_job_with_all_its_retries(engine: Engine) -> None:
    instance = await one_task(engine, retries=1)
    await engine.fail(await engine.take("f", "go"))
    await engine.fail(await take_when_due(engine))
    await engine.retry(await engine.job(instance, "go"))
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"go": "ready"}
    job = await engine.take("f", "go")
    assert job.failures == 0
    await engine.fail(job)
    await engine.complete(await take_when_due(engine), a=1)
    assert await engine.status(instance) == "closed.completed"


async def test_what_is_retried_is_given_the_state_as_it_was_corrected(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "customer": "wrong"}, {"go": {"when": "a = 0", "retries": 0}}, final="a = 1")
    instance = await engine.start("f")
    await engine.fail(await engine.take("f", "go"), "no such customer")
    await engine.set(instance, customer="right")
    await engine.retry(await engine.job(instance, "go"))
    again = await engine.take("f", "go")
    assert again.state == {"a": 0, "customer": "right"}
    await engine.complete(again, a=1)
    assert await engine.kinds(instance) == ["start", "fail", "set", "retry", "finish"]


async def test_retrying_clears_the_reached_terms_of_the_task_that_is_undone(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"a": 0},
        {"one": {"when": "true", "fires": "once"}, "slow": {"when": "true", "fires": "once"},
         "sorry": {"depends": {"all": [{"task": "one", "state": "failed"}, {"task": "slow", "state": "succeeded"}]}}},
        ends="quiet",
    )  # fmt: skip
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    await engine.retry(await engine.job(instance, "one"))
    await engine.do("f", "slow")
    assert await engine.jobs(instance) == {"one": "ready"}  # not "sorry": that it failed is undone
    await engine.do("f", "one")
    assert await engine.status(instance) == "closed.completed"


async def test_a_person_skips_a_failed_job_with_the_change_it_should_have_made(engine: Engine) -> None:
    instance = await one_task(engine)
    await engine.fail_for_good(await engine.take("f", "go"))
    await engine.skip(await engine.job(instance, "go"), a=1)
    assert await engine.status(instance) == "closed.completed"
    last = (await engine.trace(instance))[-1]
    assert (last.kind, last.task, last.state) == ("skip", "go", {"a": 1})


async def test_a_skipped_job_has_succeeded_for_those_who_depend_on_it(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": {"when": "true", "fires": "once"}, "two": after("one")}, ends="quiet")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    await engine.skip(await engine.job(instance, "one"))
    assert await engine.jobs(instance) == {"two": "ready"}


async def test_a_skipped_job_does_not_fire_again_in_the_same_look(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "b": 0}, {"go": "a = 0", "other": "b = 0"}, final="a = 9")
    instance = await engine.start("f")
    await engine.skip(await engine.job(instance, "go"))
    assert await engine.jobs(instance) == {"other": "ready"}


async def test_a_running_job_is_not_skipped_and_a_healthy_one_not_retried(engine: Engine) -> None:
    await one_task(engine)
    job = await engine.take("f", "go")
    async with engine.refused("job_running", "ann"):
        await engine.skip(job.id)
    async with engine.refused("job_not_failed", "running"):
        await engine.retry(job.id)
    async with engine.refused("unknown_job"):
        await engine.retry(999_999)


async def test_a_waiting_job_may_be_retried_at_once(engine: Engine) -> None:
    await one_task(engine)
    await engine.fail(await engine.take("f", "go"))
    await engine.retry(1)
    assert (await engine.take("f", "go")).failures == 0


async def test_a_repair_lets_a_failed_task_fire_again(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "b": "bad"}, {"go": "a = 0"}, final="a = 1")
    instance = await engine.start("f")
    failed = await engine.take("f", "go")
    await engine.fail_for_good(failed)
    await engine.repair(instance, b="good")
    assert await engine.status(instance) == "open.running"
    job = await engine.take("f", "go")
    assert job.id != failed.id
    assert job.state == {"a": 0, "b": "good"}


async def test_a_repair_leaves_a_failure_that_is_handled(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"a": 0},
        {"one": "a = 0", "sorry": {"when": "task_one = 'failed'", "fires": "once"}, "two": "a = 0"},
        final="a = 9",
    )
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    await engine.fail_for_good(await engine.take("f", "two"))
    await engine.do("f", "sorry")
    await engine.repair(instance)
    assert await engine.jobs(instance) == {"one": "failed", "two": "ready"}


async def test_a_timeout_counts_from_each_claim_and_uses_a_retry(engine: Engine) -> None:
    instance = await one_task(engine, timeout=10, retries=1)
    await engine.advance(seconds=60)  # waiting to be claimed does not count
    assert (await engine.take("f", "go")).timeout == 10
    await engine.advance(seconds=16)
    assert (await engine.tick())[1] == 1
    assert await engine.jobs(instance) == {"go": "waiting"}
    assert (await engine.trace(instance))[-1].note is not None
    again = await take_when_due(engine)
    assert again.failures == 1
    await engine.advance(seconds=16)
    await engine.tick()
    assert await engine.jobs(instance) == {"go": "failed", "_EXCPT": "ready"}
    (reason,) = await engine.reasons(instance)
    assert "timeout of 00:00:10" in reason["error"]


async def test_a_lease_is_not_renewed_past_the_timeout(engine: Engine) -> None:
    instance = await one_task(engine, timeout=10)
    job = await engine.take("f", "go")
    assert await engine.renew(job, lease=timedelta(hours=1)) == []
    await engine.advance(seconds=16)
    await engine.tick()
    assert await engine.jobs(instance) == {"go": "waiting"}


async def test_a_lost_lease_uses_no_retry(engine: Engine) -> None:
    instance = await one_task(engine, retries=0)
    first = await engine.take("f", "go", worker="dead")
    await engine.advance(seconds=61)
    assert (await engine.tick())[1] == 1
    again = await engine.take("f", "go", worker="alive")
    assert (again.id, again.failures) == (first.id, 0)
    assert again.attempt > first.attempt
    await engine.complete(again, a=1)
    assert await engine.status(instance) == "closed.completed"


async def test_twenty_lost_leases_in_a_row_use_a_retry(engine: Engine) -> None:
    instance = await one_task(engine, retries=1)
    for row in range(2):
        for n in range(20):
            assert await engine.jobs(instance) == {"go": "ready"}, (row, n)
            job = await engine.take("f", "go", worker=f"w{n}")
            assert job.failures == row
            await engine.advance(seconds=61)
            await engine.tick()
        if row == 0:
            assert await engine.jobs(instance) == {"go": "waiting"}
            await engine.advance(minutes=10)
            await engine.tick()
    assert await engine.jobs(instance) == {"go": "failed", "_EXCPT": "ready"}
    (reason,) = await engine.reasons(instance)
    assert "20 times in a row, last w19" in reason["error"]


async def test_a_failure_in_between_ends_the_row_of_lost_leases(engine: Engine) -> None:
    instance = await one_task(engine, retries=1)
    for _ in range(19):
        await engine.take("f", "go")
        await engine.advance(seconds=61)
        await engine.tick()
    await engine.fail(await engine.take("f", "go"))
    await engine.advance(minutes=10)
    await engine.tick()
    for _ in range(19):
        await engine.take("f", "go")
        await engine.advance(seconds=61)
        await engine.tick()
    assert await engine.jobs(instance) == {"go": "ready"}


async def test_a_job_that_fails_in_a_batch_does_not_hold_up_the_others(engine: Engine) -> None:
    await one_task(engine)
    other = await engine.start("f")
    first, second = await engine.claim("f", "go", room=2)
    told, _ = await engine.turn([(second, {"a": 1})], [(first, "no luck")])
    assert told == []
    assert await engine.jobs(first.instance) == {"go": "waiting"}
    assert await engine.status(other) == "closed.completed"


@pytest.mark.parametrize("change", [{"b": 1}, {"a": "text"}, {"a": 1.5}])
async def test_a_change_that_does_not_fit_is_refused_and_the_job_stays_with_its_worker(
    engine: Engine, change: dict[str, object]
) -> None:
    instance = await one_task(engine)
    job = await engine.take("f", "go")
    told, _ = await engine.turn([(job, change)])
    assert [(t.kind, t.job) for t in told] == [("refused", job.id)]
    assert await engine.jobs(instance) == {"go": "running"}
    assert await engine.state(instance) == {"a": 0}
    await engine.fail(job, "it returned what does not fit")
    assert await engine.jobs(instance) == {"go": "waiting"}

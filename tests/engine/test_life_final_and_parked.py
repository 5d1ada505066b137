"""The life of an instance: a state that would be final while other jobs are pending."""

from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb


async def race(engine: Engine, *, tasks: int = 2, **more: object) -> int:
    """An instance with several jobs pending, each of which can make its state final."""
    names = "abcdef"[:tasks]
    await engine.apply(
        "race",
        {"winner": None, **dict.fromkeys(names)},
        {name: {"when": f"winner is null and {name} is null", **more} for name in names},
        final="winner is not null",
    )
    return await engine.start("race")


async def test_a_final_write_with_other_jobs_pending_is_rejected_and_parked_with_its_change(engine: Engine) -> None:
    instance = await race(engine)
    job = await engine.take("race", "a")
    assert await engine.complete(job, winner="a") == "parked"
    assert await engine.state(instance) == {"winner": None, "a": None, "b": None}
    assert await engine.jobs(instance) == {"a": "parked", "b": "ready"}
    assert await engine.status(instance) == "open.running"
    parked = await engine.rows("select change, failures, attempt from mutirao.job where id = %s", job.id)
    assert parked == [({"winner": "a"}, 0, None)]
    assert (await engine.trace(instance))[-1][:5] == ("parked", "a", [], "open.running", None)


async def test_the_worker_in_a_batch_is_told_that_its_change_is_parked(engine: Engine) -> None:
    await race(engine)
    job = await engine.take("race", "a")
    told, _ = await engine.turn([(job, {"winner": "a"})])
    assert told == [("parked", job.id, {"code": "final_blocked"})]


async def test_when_another_job_ends_the_parked_change_is_tried_again(engine: Engine) -> None:
    instance = await race(engine)
    await engine.do("race", "a", winner="a")
    assert await engine.do("race", "b", b="done") == "ok"
    assert await engine.status(instance) == "closed.completed"
    assert await engine.state(instance) == {"winner": "a", "a": None, "b": "done"}
    assert [(s.kind, s.task) for s in await engine.trace(instance)] == [
        ("start", None), ("parked", "a"), ("finish", "b"), ("finish", "a"),
    ]  # fmt: skip


async def test_a_parked_change_that_is_still_blocked_stays_parked_without_another_trace_row(engine: Engine) -> None:
    instance = await race(engine, tasks=3)
    await engine.do("race", "a", winner="a")
    await engine.do("race", "b", b="done")
    assert await engine.jobs(instance) == {"a": "parked", "c": "ready"}
    await engine.do("race", "c", c="done")
    assert await engine.status(instance) == "closed.completed"
    assert await engine.kinds(instance) == ["start", "parked", "finish", "finish", "finish"]


async def test_parked_in_one_round_and_let_through_in_the_next_of_the_same_batch(engine: Engine) -> None:
    instance = await race(engine)
    a, b = await engine.claim("race", "a", "b", room=2)
    told, _ = await engine.turn([(a, {"winner": "a"}), (b, {"b": "done"})])
    assert [t.kind for t in told] == ["parked"]
    assert await engine.status(instance) == "closed.completed"


async def test_another_attempt_of_another_job_does_not_try_the_parked_change_again(engine: Engine) -> None:
    instance = await race(engine)
    await engine.do("race", "a", winner="a")
    await engine.fail(await engine.take("race", "b"))
    assert await engine.jobs(instance) == {"a": "parked", "b": "waiting"}
    assert await engine.kinds(instance) == ["start", "parked", "retry"]


async def test_when_all_pending_jobs_are_parked_it_is_an_exception(engine: Engine) -> None:
    instance = await race(engine)
    await engine.do("race", "a", winner="a")
    await engine.do("race", "b", winner="b")
    assert await engine.status(instance) == "open.exception"
    assert await engine.codes(instance) == ["final_blocked"]
    assert await engine.jobs(instance) == {"a": "parked", "b": "parked", "_EXCPT": "ready"}


async def test_an_exception_of_parked_jobs_is_solved_by_skipping_one(engine: Engine) -> None:
    instance = await race(engine)
    await engine.do("race", "a", winner="a")
    await engine.do("race", "b", winner="b")
    await engine.skip(await engine.job(instance, "a"), a="skipped")
    assert await engine.status(instance) == "closed.completed"
    assert (await engine.state(instance))["winner"] == "b"
    assert await engine.jobs(instance) == {}


async def test_an_exception_of_parked_jobs_is_solved_by_cancelling(engine: Engine) -> None:
    instance = await race(engine)
    await engine.do("race", "a", winner="a")
    await engine.do("race", "b", winner="b")
    await engine.cancel(instance)
    assert await engine.status(instance) == "closed.aborted"
    assert await engine.jobs(instance) == {}


async def test_a_job_that_fails_for_good_beside_a_parked_one_leaves_all_parked(engine: Engine) -> None:
    instance = await race(engine)
    await engine.do("race", "a", winner="a")
    await engine.fail_for_good(await engine.take("race", "b"))
    assert sorted(await engine.codes(instance)) == ["final_blocked", "task_failed"]
    assert await engine.jobs(instance) == {"a": "parked", "b": "failed", "_EXCPT": "ready"}
    await engine.skip(await engine.job(instance, "b"), b="skipped")
    assert await engine.status(instance) == "closed.completed"


async def test_parked_changes_are_tried_oldest_first_and_each_on_the_state_the_others_left(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"n": 0, "a": None, "b": None, "c": None},
        {"a": "a is null", "b": "b is null", "c": "c is null"},
        final="n = 1",
    )
    instance = await engine.start("f")
    await engine.do("f", "a", n=1, a="x")
    await engine.do("f", "b", n=1, b="x")
    # With c gone, a is blocked by b, and b by a.
    await engine.do("f", "c", c="x")
    assert await engine.codes(instance) == ["final_blocked"]
    # A correction that keeps n away from 1 cannot help, since each change sets it.
    await engine.set(instance, c="y")
    assert await engine.jobs(instance) == {"a": "parked", "b": "parked", "_EXCPT": "ready"}
    await engine.skip(await engine.job(instance, "b"), b="skipped")
    assert await engine.state(instance) == {"n": 1, "a": "x", "b": "skipped", "c": "y"}
    assert await engine.status(instance) == "closed.completed"


async def test_a_transactional_task_that_is_parked_runs_again_when_another_job_ends(engine: Engine) -> None:
    instance = await race(engine, transactional=True)
    job = await engine.take("race", "a")
    # Its worker has undone the work: there is no change to keep.
    async with engine.refused("final_blocked"):
        await engine.rows("select mutirao.complete_here(%s, %s, %s)", job.id, job.attempt, Jsonb({"winner": "a"}))
    await engine.rows(
        "select mutirao.park_attempt(%s, %s, null, %s)", job.id, job.attempt, Jsonb({"code": "final_blocked"})
    )
    assert await engine.jobs(instance) == {"a": "parked", "b": "ready"}
    await engine.do("race", "b", b="done")
    assert await engine.jobs(instance) == {"a": "ready"}
    again = await engine.take("race", "a")
    assert again.failures == 0
    await engine.rows("select mutirao.complete_here(%s, %s, %s)", again.id, again.attempt, Jsonb({"winner": "a"}))
    assert await engine.status(instance) == "closed.completed"


async def test_transactional_tasks_that_are_all_parked_are_an_exception_until_a_repair(engine: Engine) -> None:
    instance = await race(engine, transactional=True)
    for job in await engine.claim("race", "a", "b", room=2):
        await engine.rows(
            "select mutirao.park_attempt(%s, %s, null, %s)", job.id, job.attempt, Jsonb({"code": "final_blocked"})
        )
    assert await engine.codes(instance) == ["final_blocked"]
    await engine.repair(instance)
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"a": "ready", "b": "ready"}


async def test_a_write_without_a_job_that_would_be_final_is_refused_while_jobs_are_pending(engine: Engine) -> None:
    instance = await race(engine)
    async with engine.refused("final_blocked", f"instance {instance}"):
        await engine.set(instance, winner="nobody")


async def test_a_write_without_a_job_may_be_final_when_none_is_pending(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a = 0"}, final="a = 9")
    instance = await engine.start("f")
    await engine.do("f", "go", a=1)
    await engine.set(instance, a=9)
    assert await engine.status(instance) == "closed.completed"


async def test_a_parked_job_is_neither_claimed_nor_renewed_nor_completed_again(engine: Engine) -> None:
    await race(engine)
    job = await engine.take("race", "a")
    await engine.complete(job, winner="a")
    assert await engine.claim("race", "a") == []
    assert await engine.renew(job) == [job.attempt]
    async with engine.refused("lease_lost"):
        await engine.complete(job, a="x")

"""The life of an instance: interrupted by a person, or cancelled; and which of several states is shown."""

from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb


async def two_branches(engine: Engine, **more: object) -> int:
    await engine.apply(
        "f",
        {"a": 0, "b": 0},
        {"one": {"when": "a = 0", **more}, "two": "b = 0", "next": "a = 1"},
        final="a = 9 and b = 9",
    )
    return await engine.start("f")


async def test_a_suspended_instance_refuses_new_claims_until_it_is_resumed(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.suspend(instance)
    assert await engine.status(instance) == "open.notrunning.suspended"
    assert await engine.claim("f", room=9) == []
    assert await engine.rows("select * from f.take('one')") == []
    await engine.resume(instance)
    assert await engine.status(instance) == "open.running"
    assert len(await engine.claim("f", room=9)) == 2
    assert await engine.kinds(instance) == ["start", "suspend", "resume"]


async def test_what_runs_when_it_is_suspended_may_finish_and_fires_nothing(engine: Engine) -> None:
    instance = await two_branches(engine)
    job = await engine.take("f", "one")
    await engine.suspend(instance)
    assert await engine.complete(job, a=1) == "ok"
    assert await engine.state(instance) == {"a": 1, "b": 0}
    assert await engine.jobs(instance) == {"two": "held"}
    assert (await engine.trace(instance))[-1][:4] == ("finish", "one", [], "open.notrunning.suspended")
    await engine.resume(instance)
    assert await engine.jobs(instance) == {"two": "ready", "next": "ready"}
    assert (await engine.trace(instance))[-1].fired == ["next"]


async def test_a_suspended_instance_does_not_close_before_it_is_resumed(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a = 0"}, final="a = 9")
    instance = await engine.start("f")
    job = await engine.take("f", "go")
    await engine.suspend(instance)
    await engine.complete(job, a=9)
    assert await engine.status(instance) == "open.notrunning.suspended"
    await engine.resume(instance)
    assert await engine.status(instance) == "closed.completed"


async def test_a_suspended_instance_on_which_nothing_fires_becomes_an_exception_when_it_is_resumed(
    engine: Engine,
) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a = 0"}, final="a = 9")
    instance = await engine.start("f")
    job = await engine.take("f", "go")
    await engine.suspend(instance)
    await engine.complete(job, a=5)
    assert await engine.jobs(instance) == {}
    await engine.resume(instance)
    assert await engine.codes(instance) == ["nothing_fires"]


async def test_a_final_write_with_jobs_pending_is_parked_also_while_suspended(engine: Engine) -> None:
    await engine.apply("f", {"a": 0, "b": 0}, {"one": "a = 0", "two": "b = 0"}, final="a = 9")
    instance = await engine.start("f")
    job = await engine.take("f", "one")
    await engine.suspend(instance)
    assert await engine.complete(job, a=9) == "parked"
    await engine.resume(instance)
    await engine.do("f", "two", b=1)
    assert await engine.status(instance) == "closed.completed"
    assert await engine.state(instance) == {"a": 9, "b": 1}


async def test_a_job_that_fails_while_suspended_is_held_and_keeps_its_count(engine: Engine) -> None:
    instance = await two_branches(engine)
    job = await engine.take("f", "one")
    await engine.suspend(instance)
    await engine.fail(job)
    assert await engine.jobs(instance) == {"one": "held", "two": "held"}
    await engine.advance(hours=1)
    await engine.tick()
    assert await engine.claim("f") == []
    await engine.resume(instance)
    assert (await engine.take("f", "one")).failures == 1


async def test_a_lease_that_ends_while_suspended_leaves_the_job_held(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.take("f", "one")
    await engine.suspend(instance)
    await engine.advance(minutes=2)
    await engine.tick()
    assert await engine.jobs(instance) == {"one": "held", "two": "held"}


async def test_a_job_given_back_while_suspended_is_held(engine: Engine) -> None:
    instance = await two_branches(engine)
    job = await engine.take("f", "one")
    await engine.suspend(instance)
    assert await engine.release(job) == []
    assert await engine.jobs(instance) == {"one": "held", "two": "held"}


async def test_a_waiting_job_is_held_too(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.fail(await engine.take("f", "one"))
    await engine.suspend(instance)
    await engine.advance(hours=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"one": "held", "two": "held"}
    await engine.resume(instance)
    assert await engine.jobs(instance) == {"one": "ready", "two": "ready"}


async def test_a_correction_of_a_suspended_instance_is_kept_and_fires_nothing(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.suspend(instance)
    await engine.set(instance, a=1)
    assert await engine.state(instance) == {"a": 1, "b": 0}
    assert "next" not in await engine.jobs(instance)
    await engine.resume(instance)
    assert "next" in await engine.jobs(instance)


async def test_only_a_suspended_instance_is_resumed(engine: Engine) -> None:
    instance = await two_branches(engine)
    async with engine.refused("not_suspended", "open.running"):
        await engine.resume(instance)


async def test_suspended_goes_before_exception_and_exception_before_running(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.fail_for_good(await engine.take("f", "one"))
    assert await engine.status(instance) == "open.exception"
    await engine.suspend(instance)
    assert await engine.status(instance) == "open.notrunning.suspended"
    assert await engine.codes(instance) == ["task_failed"]
    await engine.resume(instance)
    assert await engine.status(instance) == "open.exception"
    await engine.retry(await engine.job(instance, "one"))
    assert await engine.status(instance) == "open.running"


async def test_closed_goes_before_everything(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.fail_for_good(await engine.take("f", "one"))
    await engine.suspend(instance)
    await engine.cancel(instance)
    assert await engine.status(instance) == "closed.aborted"


async def test_an_exception_found_while_suspended_waits_with_its_job_for_the_resume(engine: Engine) -> None:
    instance = await two_branches(engine)
    job = await engine.take("f", "one")
    await engine.suspend(instance)
    await engine.fail_for_good(job)
    assert await engine.status(instance) == "open.notrunning.suspended"
    assert await engine.jobs(instance) == {"one": "failed", "two": "held", "_EXCPT": "held"}
    await engine.resume(instance)
    assert await engine.status(instance) == "open.exception"
    assert await engine.jobs(instance) == {"one": "failed", "two": "ready", "_EXCPT": "ready"}


async def test_suspending_keeps_an_exception_and_its_job(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a = 0", "more": "a = 2"}, final="a = 9")
    instance = await engine.start("f")
    await engine.do("f", "go", a=1)
    taken = await engine.take("f", "_EXCPT")
    await engine.suspend(instance)
    assert await engine.codes(instance) == ["nothing_fires"]
    # What runs may finish: the repair is kept and fires nothing.
    await engine.complete(taken, a=2)
    assert await engine.jobs(instance) == {}
    await engine.resume(instance)
    assert await engine.jobs(instance) == {"more": "ready"}


async def test_a_cancelled_instance_with_nothing_running_closes_at_once(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.cancel(instance)
    assert await engine.status(instance) == "closed.aborted"
    assert await engine.jobs(instance) == {}
    assert (await engine.trace(instance))[-1][:4] == ("cancel", None, [], "closed.aborted")


async def test_a_cancelled_instance_closes_when_its_last_running_job_ends(engine: Engine) -> None:
    instance = await two_branches(engine)
    one, two = await engine.claim("f", "one", "two", room=2)
    await engine.cancel(instance)
    assert (await engine.status(instance)).startswith("open.")
    assert await engine.complete(one, a=1) == "ok"
    assert (await engine.status(instance)).startswith("open.")
    assert await engine.jobs(instance) == {"two": "running"}  # not "next": it fires nothing
    await engine.complete(two, b=1)
    assert await engine.status(instance) == "closed.aborted"
    assert await engine.state(instance) == {"a": 1, "b": 1}  # what ran was kept


async def test_new_claims_on_a_cancelled_instance_are_refused(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.take("f", "one")
    await engine.cancel(instance)
    assert await engine.claim("f", room=9) == []


async def test_a_cancelled_instance_whose_write_is_final_is_aborted_nevertheless(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a = 0"}, final="a = 9")
    instance = await engine.start("f")
    job = await engine.take("f", "go")
    await engine.cancel(instance)
    await engine.complete(job, a=9)
    assert await engine.status(instance) == "closed.aborted"
    assert await engine.state(instance) == {"a": 9}


async def test_a_job_that_fails_in_a_cancelled_instance_ends(engine: Engine) -> None:
    instance = await two_branches(engine)
    job = await engine.take("f", "one")
    await engine.cancel(instance)
    await engine.fail(job)
    assert await engine.status(instance) == "closed.aborted"


async def test_a_job_given_back_to_a_cancelled_instance_ends(engine: Engine) -> None:
    instance = await two_branches(engine)
    one, two = await engine.claim("f", "one", "two", room=2)
    await engine.cancel(instance)
    assert await engine.release(one) == []
    assert await engine.jobs(instance) == {"two": "running"}
    await engine.release(two)
    assert await engine.status(instance) == "closed.aborted"


async def test_a_lease_that_ends_in_a_cancelled_instance_ends_the_job(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.take("f", "one")
    await engine.cancel(instance)
    await engine.advance(minutes=2)
    await engine.tick()
    assert await engine.status(instance) == "closed.aborted"


async def test_a_transactional_job_that_would_park_in_a_cancelled_instance_ends(engine: Engine) -> None:
    instance = await two_branches(engine, transactional=True)
    job = await engine.take("f", "one")
    await engine.cancel(instance)
    await engine.rows(
        "select mutirao.park_attempt(%s, %s, null, %s)",
        job.id,
        job.attempt,
        Jsonb({"code": "condition_failed", "error": "slow"}),
    )
    assert await engine.status(instance) == "closed.aborted"


async def test_failed_parked_and_exception_jobs_go_with_a_cancel(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": "a = 0", "two": "a = 0", "three": "a = 0"}, final="a = 9")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "one"))
    await engine.do("f", "two", a=9)
    running = await engine.take("f", "three")
    await engine.cancel(instance)
    assert await engine.jobs(instance) == {"three": "running"}
    await engine.complete(running)
    assert await engine.status(instance) == "closed.aborted"


async def test_a_cancelled_instance_takes_no_more_orders(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.take("f", "one")
    await engine.cancel(instance)
    for order in (engine.cancel, engine.suspend, engine.resume, engine.set, engine.repair):
        async with engine.refused("instance_cancelled"):
            await order(instance)


async def test_an_instance_that_has_ended_or_never_was_takes_no_orders(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.cancel(instance)
    for order in (engine.cancel, engine.suspend, engine.resume, engine.set, engine.repair):
        async with engine.refused("instance_closed", f"instance {instance}"):
            await order(instance)
        async with engine.refused("unknown_instance", "4711"):
            await order(4711)


async def test_the_reason_and_the_person_are_kept_in_the_trace(engine: Engine) -> None:
    instance = await two_branches(engine)
    await engine.rows("select mutirao.suspend(%s, 'the bank is closed', 'maria')", instance)
    last = (await engine.trace(instance))[-1]
    assert (last.writer, last.note) == ("maria", {"reason": "the bank is closed"})


async def test_dependants_do_not_start_while_suspended(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": {"when": "true", "fires": "once"}, "two": after("one")}, ends="quiet")
    instance = await engine.start("f")
    job = await engine.take("f", "one")
    await engine.suspend(instance)
    await engine.complete(job)
    assert await engine.jobs(instance) == {}
    await engine.resume(instance)
    assert await engine.jobs(instance) == {"two": "ready"}

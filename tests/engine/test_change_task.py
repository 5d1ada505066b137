"""Tasks of a live flow are added, changed, disabled and dropped while their jobs are pending."""

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`

DROP = "delete from f.wed_trig where trname = 'go'"
DISABLE = "update f.wed_trig set enabled = false where trname = 'go'"
either = pytest.mark.parametrize("change", [DROP, DISABLE])


async def live(engine: Engine, **tasks: str) -> int:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'", **tasks}, final="a = 'done'")
    return await engine.start("f")


@either
async def test_an_unclaimed_job_is_removed_with_a_trace(engine: Engine, change: str) -> None:
    instance = await live(engine, stay="a = 'x'")
    job = await engine.job(instance, "go")
    await engine.rows(change)
    await engine.tick()
    assert await engine.jobs(instance) == {"stay": "ready"}
    last = (await engine.trace(instance))[-1]
    assert (last.kind, last.task, last.job, last.note) == ("removed", "go", job, {"version": 2})
    assert await engine.one("select cardinality(pending) from mutirao.instance") == 1
    assert [got.task for got in await engine.claim("f", "go", "stay", room=5)] == ["stay"]


@either
async def test_an_instance_that_loses_its_last_job_is_an_exception(engine: Engine, change: str) -> None:
    instance = await live(engine)
    await engine.rows(change)
    await engine.tick()
    assert await engine.codes(instance) == ["nothing_fires"]
    assert await engine.jobs(instance) == {"_EXCPT": "ready"}
    assert await engine.kinds(instance) == ["start", "removed", "look"]
    async with engine.refused("nothing_fires"):
        await engine.start("f")


@either
async def test_a_running_job_may_finish(engine: Engine, change: str) -> None:
    instance = await live(engine)
    job = await engine.take("f", "go")
    await engine.rows(change)
    await engine.tick()
    assert await engine.jobs(instance) == {"go": "running"}
    assert await engine.complete(job, a="done") == "ok"
    assert await engine.status(instance) == "closed.completed"


@either
async def test_a_running_job_that_is_given_back_is_removed(engine: Engine, change: str) -> None:
    instance = await live(engine, stay="a = 'x'")
    job = await engine.take("f", "go")
    await engine.rows(change)
    await engine.until_caught_up()
    await engine.release(job)
    await engine.tick()
    assert await engine.jobs(instance) == {"stay": "ready"}


async def test_a_running_job_that_fails_is_tried_no_more(engine: Engine) -> None:
    instance = await live(engine, stay="a = 'x'")
    job = await engine.take("f", "go")
    await engine.rows(DROP)
    await engine.until_caught_up()
    await engine.fail(job)
    await engine.advance(minutes=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"stay": "ready"}
    assert await engine.kinds(instance) == ["start", "retry", "removed"]


@either
async def test_jobs_that_wait_are_held_or_have_failed_are_removed_too(engine: Engine, change: str) -> None:
    await live(engine, stay="a = 'x'")
    waiting, failed, held = [await engine.start("f") for _ in range(3)]
    for job in await engine.claim("f", "go", room=4):
        if job.instance == waiting:
            await engine.fail(job)
        elif job.instance == failed:
            await engine.fail_for_good(job)
        else:
            await engine.release(job)
    await engine.suspend(held)
    assert await engine.status(failed) == "open.exception"
    await engine.rows(change)
    await engine.tick()
    for instance, status in ((waiting, "ready"), (failed, "ready"), (held, "held")):
        assert await engine.jobs(instance) == {"stay": status}
    assert await engine.status(failed) == "open.running"
    assert (await engine.trace(failed))[-1][:4] == ("removed", "go", [], "open.running")
    await engine.resume(held)
    assert await engine.jobs(held) == {"stay": "ready"}


async def test_a_parked_job_has_been_done_and_its_change_is_kept(engine: Engine) -> None:
    instance = await live(engine, stay="a = 'x'")
    await engine.do("f", "go", a="done")
    await engine.rows(DROP)
    await engine.tick()
    assert await engine.jobs(instance) == {"go": "parked", "stay": "ready"}
    await engine.do("f", "stay", a="y")
    assert await engine.status(instance) == "closed.completed"
    assert await engine.state(instance) == {"a": "done"}


async def test_what_blocked_a_parked_change_is_removed_and_it_gets_through(engine: Engine) -> None:
    instance = await live(engine, stay="a = 'x'")
    await engine.do("f", "stay", a="done")
    await engine.rows(DROP)
    await engine.tick()
    assert await engine.status(instance) == "closed.completed"


@pytest.mark.parametrize("by_clock", [True, False])
async def test_who_comes_first_makes_no_difference(engine: Engine, by_clock: bool) -> None:
    instance = await live(engine, stay="a = 'x'")
    job = await engine.take("f", "stay")
    await engine.rows(DROP)
    if by_clock:
        await engine.tick()
    assert await engine.complete(job, a="done") == "ok"
    assert await engine.status(instance) == "closed.completed"
    assert await engine.kinds(instance) == ["start", "removed", "finish"]


async def test_a_write_without_a_job_follows_first(engine: Engine) -> None:
    instance = await live(engine, stay="a = 'x'")
    await engine.rows("delete from f.wed_trig where not cfinal")
    await engine.set(instance, a="done")  # would be final_blocked under the version before
    assert await engine.status(instance) == "closed.completed"
    assert await engine.kinds(instance) == ["start", "removed", "removed", "look", "set"]


async def test_a_job_that_is_no_more_is_neither_retried_nor_skipped(engine: Engine) -> None:
    instance = await live(engine, stay="a = 'x'")
    job = await engine.job(instance, "go")
    await engine.rows(DROP)
    for order in (engine.skip, engine.retry):
        async with engine.refused("unknown_job"):
            await order(job)


async def test_a_task_that_comes_back_fires_again_also_if_it_fires_once(engine: Engine) -> None:
    instance = await live(engine, stay="a = 'x'")
    await engine.rows("update f.wed_trig set fires = 'once'")
    await engine.tick()
    await engine.do("f", "stay")
    assert await engine.jobs(instance) == {"go": "ready"}  # stay has fired
    await engine.rows("update f.wed_trig set enabled = false where not cfinal")
    await engine.tick()
    assert await engine.jobs(instance) == {"_EXCPT": "ready"}
    await engine.rows("update f.wed_trig set enabled = true")
    await engine.tick()
    assert await engine.jobs(instance) == {"go": "ready"}


async def test_a_task_that_fires_each_time_again_forgets_that_it_has_fired(engine: Engine) -> None:
    instance = await live(engine, stay="a = 'x'")
    await engine.rows("update f.wed_trig set fires = 'once' where trname = 'go'")
    await engine.do("f", "go")
    assert await engine.jobs(instance) == {"stay": "ready"}
    await engine.rows("update f.wed_trig set fires = 'each' where trname = 'go'")
    await engine.tick()
    assert await engine.jobs(instance) == {"stay": "ready", "go": "ready"}


async def test_a_failure_is_an_exception_by_the_version_that_does_not_handle_it(engine: Engine) -> None:
    instance = await live(engine)
    await engine.fail_for_good(await engine.take("f", "go"))
    assert await engine.codes(instance) == ["task_failed"]
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('rescue', $$task_go = 'failed'$$)")
    await engine.tick()
    assert (await engine.status(instance), await engine.jobs(instance)) == (
        "open.running",
        {"go": "failed", "rescue": "ready"},
    )
    await engine.rows("delete from f.wed_trig where trname = 'rescue'")
    await engine.tick()
    assert (await engine.status(instance), await engine.codes(instance)) == ("open.exception", ["task_failed"])
    assert await engine.jobs(instance) == {"go": "failed", "_EXCPT": "ready"}


async def test_what_a_task_was_is_not_remembered_wrong_when_a_condition_names_it_again(engine: Engine) -> None:
    instance = await live(engine, stay="a = 'x'")
    name = "insert into f.wed_trig (trname, cpred) values ('then', $$task_go = 'ready' and a = 'y'$$)"
    await engine.rows(name)
    await engine.tick()
    await engine.rows("delete from f.wed_trig where trname = 'then'")
    await engine.tick()
    await engine.do("f", "go", a="y")
    await engine.rows(name)
    await engine.tick()
    assert await engine.jobs(instance) == {"stay": "ready"}


async def test_a_thousand_jobs_are_removed_before_all_instances_have_followed(engine: Engine) -> None:
    await live(engine, stay="a in ('x', 'y')")
    await engine.start_many("f", [{}] * 99)
    await engine.start_many("f", [{"a": "y"}] * 99)
    await engine.rows("delete from f.wed_trig where trname = 'go'")
    for left in (60, 20, 0):
        await engine.rows("select * from mutirao.turn_clock(40)")
        assert await engine.one("select count(*) from f.job_pool where trname = 'go'") == left
    assert await engine.one("select count(distinct version) from mutirao.instance") == 2
    await engine.until_caught_up()
    assert await engine.one("select count(distinct version) from mutirao.instance") == 1


async def test_a_task_that_a_condition_names_is_not_dropped(engine: Engine) -> None:
    await live(engine, then="task_go = 'failed'")
    async with engine.refused("flow_invalid", 'task "go" is named by the condition of task "then"'):
        await engine.rows(DROP)

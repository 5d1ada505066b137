"""Starting a task by hand, and going back to one that has ended."""

from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`

CHAIN = {
    "a": {"when": "true", "fires": "once"},
    "b": after("a", retries=0),
    "c": after("b"),
    "d": {"depends": {"task": "c", "state": "failed"}},
}


async def begun(engine: Engine, *done: str) -> int:
    await engine.apply("f", {"n": 0}, CHAIN, ends="quiet")
    instance = await engine.start("f")
    for task in done:
        await engine.do("f", task)
    return instance


async def test_a_task_is_started_by_hand(engine: Engine) -> None:
    instance = await begun(engine, "a")
    await engine.rows("select mutirao.start_task(%s, 'd', 'now')", instance)
    assert await engine.jobs(instance) == {"b": "ready", "d": "ready"}
    last = (await engine.trace(instance))[-1]
    assert (last.kind, last.fired, last.note) == ("start_task", ["d"], {"task": "d", "reason": "now"})


async def test_a_started_task_mends_an_exception_of_nothing(engine: Engine) -> None:
    await engine.apply("g", {"n": 0}, {"a": "n = 0", "b": "n = 7"}, final="n = 9")
    instance = await engine.start("g")
    await engine.do("g", "a", n=1)
    assert await engine.status(instance) == "open.exception"
    await engine.rows("select mutirao.start_task(%s, 'b')", instance)
    assert await engine.status(instance) == "open.running"
    await engine.do("g", "b", n=9)
    assert await engine.status(instance) == "closed.completed"


async def test_what_has_a_job_is_not_started(engine: Engine) -> None:
    instance = await begun(engine, "a")
    async with engine.refused("job_pending", "wait for it"):
        await engine.rows("select mutirao.start_task(%s, 'b')", instance)


async def test_an_instance_goes_back(engine: Engine) -> None:
    instance = await begun(engine, "a", "b")
    assert await engine.jobs(instance) == {"c": "ready"}
    await engine.rows("select mutirao.go_back(%s, 'a')", instance)
    assert await engine.jobs(instance) == {"a": "ready"}
    states = dict(await engine.rows("select task, state from mutirao.task_states(%s)", instance))
    assert states == {"a": "ready", "b": "not_ready", "c": "not_ready", "d": "not_ready"}
    for task in ("a", "b", "c"):
        await engine.do("f", task)
    assert await engine.status(instance) == "closed.completed"


async def test_going_back_mends_a_failure(engine: Engine) -> None:
    instance = await begun(engine, "a")
    await engine.fail(await engine.take("f", "b"), "no")
    assert await engine.status(instance) == "open.exception"
    await engine.rows("select mutirao.go_back(%s, 'a')", instance)
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"a": "ready"}


async def test_nobody_goes_back_over_what_runs(engine: Engine) -> None:
    instance = await begun(engine, "a")
    await engine.take("f", "b")
    async with engine.refused("job_running"):
        await engine.rows("select mutirao.go_back(%s, 'a')", instance)
    async with engine.refused("task_not_done"):
        await engine.rows("select mutirao.go_back(%s, 'c')", instance)


async def test_of_two_who_go_back_the_second_is_told(engine: Engine) -> None:
    instance = await begun(engine, "a", "b")
    await engine.rows("select mutirao.go_back(%s, 'a')", instance)
    async with engine.refused("job_pending", "wait for it"):
        await engine.rows("select mutirao.go_back(%s, 'a')", instance)


async def test_a_runaway_is_started_again_by_hand(engine: Engine) -> None:
    await engine.apply("g", {"n": 0}, {"a": "n < 5", "b": "n = 7"}, final="n = 9", firing_limit=2)
    instance = await engine.start("g")
    await engine.do("g", "a", n=1)
    await engine.do("g", "a", n=2)
    assert await engine.status(instance) == "open.exception"
    await engine.rows("select mutirao.start_task(%s, 'b')", instance)
    assert await engine.jobs(instance) == {"a": "ready", "b": "ready"}


async def test_a_task_that_cannot_start_is_refused(engine: Engine) -> None:
    await engine.apply("g", {"n": 1}, {"a": "n = 1", "b": "n = 7", "c": "1 / n > 5"}, final="n = 9")
    instance = await engine.start("g")
    await engine.rows("update mutirao.instance set state = '{\"n\": 0}' where id = %s", instance)
    async with engine.refused("task_not_started", "mutirao why"):
        await engine.rows("select mutirao.start_task(%s, 'b')", instance)


async def test_who_is_synchronizing_is_not_retried(engine: Engine) -> None:
    await engine.rows("select mutirao.put_class('crane', '{}')")
    await engine.rows("select mutirao.put_class('crane', '{crane}')")
    await engine.apply("g", {"n": 0}, {"a": {"when": "n = 0", "task_class": "crane"}}, final="n = 9")
    await engine.start("g")
    waiting = await engine.job(await engine.start("g"), "a")
    async with engine.refused("job_not_failed", "synchronizing"):
        await engine.retry(waiting)

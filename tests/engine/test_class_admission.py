"""Whatever becomes of whoever holds a class, or of the class itself: nobody goes on waiting for nothing."""

from typing import Any

import pytest
from batch_driver import drive, run_batch
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb

LIFT: dict[str, Any] = {"when": "n = 0", "task_class": "crane", "retries": 0}
ONCE: dict[str, Any] = {"when": "true", "fires": "once"}


@pytest.fixture(name="yard")
async def yard_with_a_crane(engine: Engine) -> Engine:
    await engine.rows("select mutirao.put_class('crane', '{}')")
    await engine.rows("select mutirao.put_class('crane', '{crane}')")
    await engine.apply("lift", {"n": 0}, {"up": LIFT}, final="n = 1")
    return engine


async def gates(yard: Engine) -> list[tuple[int, str, str | None]]:
    return await yard.rows(
        "select instance, status::text, gate from mutirao.job where task in (select id from mutirao.task where name <> '_EXCPT') order by id"
    )


async def two(yard: Engine) -> tuple[int, int]:
    """Two that lift: the first holds the crane, the second waits for it."""
    first, second = await yard.start_many("lift", [{}, {}])
    assert await gates(yard) == [(first, "ready", "holds"), (second, "waiting", "waits")]
    return first, second


async def migrate(yard: Engine, flow: str, instance: int) -> None:
    await drive(yard, await yard.one("select mutirao.migrate_flow(%s, filter => %s)", flow, Jsonb({"ids": [instance]})))


async def test_a_holder_that_is_cancelled_makes_way(yard: Engine) -> None:
    first, second = await two(yard)
    await yard.cancel(first)
    assert await gates(yard) == [(second, "ready", "holds")]


async def test_a_cancelled_holder_whose_worker_died_makes_way(yard: Engine) -> None:
    first, second = await two(yard)
    await yard.take("lift", "up")
    await yard.cancel(first)
    assert await gates(yard) == [(first, "running", "holds"), (second, "waiting", "waits")]
    await yard.advance(minutes=5)
    await yard.tick()
    assert await gates(yard) == [(second, "ready", "holds")]


async def test_a_holder_that_is_rolled_back_makes_way(yard: Engine) -> None:
    first, second = await two(yard)
    await yard.rows("select mutirao.roll_back(%s)", first)
    assert await gates(yard) == [(second, "ready", "holds")]


async def test_a_holder_that_is_lost_while_it_is_rolled_back_makes_way(yard: Engine) -> None:
    first, second = await two(yard)
    await yard.take("lift", "up")
    await yard.rows("select mutirao.roll_back(%s)", first)
    await yard.advance(minutes=5)
    await yard.tick()
    assert await gates(yard) == [(second, "ready", "holds")]


async def test_a_holder_that_fails_for_good_makes_way(yard: Engine) -> None:
    first, second = await two(yard)
    await yard.fail(await yard.take("lift", "up"))
    assert await gates(yard) == [(first, "failed", None), (second, "ready", "holds")]
    await yard.retry(await yard.job(first, "up"))
    assert await gates(yard) == [(first, "waiting", "waits"), (second, "ready", "holds")]
    await yard.do("lift", "up", n=1)
    assert await gates(yard) == [(first, "ready", "holds")]


async def test_a_holder_that_is_skipped_makes_way(yard: Engine) -> None:
    first, second = await two(yard)
    await yard.skip(await yard.job(first, "up"), n=1)
    assert await gates(yard) == [(second, "ready", "holds")]


async def test_a_holder_whose_worker_died_is_done_by_another_and_makes_way(yard: Engine) -> None:
    _, second = await two(yard)
    lost = await yard.take("lift", "up")
    await yard.advance(minutes=5)
    await yard.tick()
    again = await yard.take("lift", "up", worker="bob")
    assert again.id == lost.id
    assert again.attempt > lost.attempt
    await yard.complete(again, n=1)
    assert await gates(yard) == [(second, "ready", "holds")]


async def test_a_holder_that_is_given_back_can_be_taken_again(yard: Engine) -> None:
    first, second = await two(yard)
    await yard.release(await yard.take("lift", "up"))
    assert await gates(yard) == [(first, "ready", "holds"), (second, "waiting", "waits")]
    await yard.do("lift", "up", n=1)
    assert await gates(yard) == [(second, "ready", "holds")]


async def test_one_that_was_interrupted_while_it_waited_goes_on(yard: Engine) -> None:
    _, second = await two(yard)
    await yard.suspend(second)
    await yard.do("lift", "up", n=1)
    assert await gates(yard) == [(second, "held", None)]
    await yard.resume(second)
    assert await gates(yard) == [(second, "ready", "holds")]


async def test_one_that_waited_and_is_cancelled_is_passed_over(yard: Engine) -> None:
    _, second = await two(yard)
    third = await yard.start("lift")
    await yard.cancel(second)
    await yard.do("lift", "up", n=1)
    assert await gates(yard) == [(third, "ready", "holds")]


async def test_the_one_of_higher_priority_goes_first(yard: Engine) -> None:
    _, second = await two(yard)
    urgent = await yard.start("lift", priority=1)
    await yard.do("lift", "up", n=1)
    assert await gates(yard) == [(second, "waiting", "waits"), (urgent, "ready", "holds")]


async def test_a_batch_that_cancels_holders_lets_others_on(yard: Engine) -> None:
    first, second = await two(yard)
    await run_batch(yard, "cancel", ids=[first])
    assert await gates(yard) == [(second, "ready", "holds")]


async def test_a_class_that_excludes_nobody_any_more_lets_all_on(yard: Engine) -> None:
    first, second = await two(yard)
    await yard.rows("select mutirao.put_class('crane', '{}')")
    assert await gates(yard) == [(first, "ready", "holds"), (second, "ready", "holds")]


async def test_a_class_that_is_dropped_and_made_again_excludes_what_starts_from_then_on(yard: Engine) -> None:
    first, second = await two(yard)
    await yard.rows("select mutirao.drop_class('crane')")
    assert await gates(yard) == [(first, "ready", "holds"), (second, "ready", "holds")]
    await yard.take("lift", "up")
    third, _ = await yard.start_many("lift", [{}, {}])
    assert (await gates(yard))[2] == (third, "ready", "holds")
    await yard.rows("select mutirao.put_class('crane', '{crane}')")
    assert [(status, gate) for _, status, gate in await gates(yard)] == [("running", "holds")] + [
        ("waiting", "waits")
    ] * 3


async def test_what_has_not_begun_obeys_a_class_that_comes_to_exclude_it(yard: Engine) -> None:
    await yard.rows("select mutirao.put_class('ship', '{}')")
    await yard.apply("sail", {"n": 0}, {"go": LIFT | {"task_class": "ship"}}, final="n = 1")
    await yard.start_many("sail", [{}, {}, {}])
    assert [gate for *_, gate in await gates(yard)] == ["holds"] * 3
    await yard.rows("select mutirao.put_class('ship', '{ship}')")
    assert [gate for *_, gate in await gates(yard)] == ["holds", "waits", "waits"]


async def test_jobs_of_a_class_that_excludes_nobody_wait_for_no_lock(yard: Engine) -> None:
    await yard.rows("select mutirao.put_class('ship', '{}')")
    await yard.apply("sail", {"n": 0}, {"go": LIFT | {"task_class": "ship"}}, final="n = 1")
    async with yard.session() as other:
        await other.execute("begin")
        await other.execute("select mutirao.lock_gate()")
        started = await yard.start("sail")
        await yard.do("sail", "go", n=1)
        assert await yard.status(started) == "closed.completed"
        await other.execute("rollback")


async def test_a_dropped_class_lets_those_on_whom_it_excluded(yard: Engine) -> None:
    await yard.rows("select mutirao.put_class('ship', '{crane}')")
    await yard.apply("sail", {"n": 0}, {"go": LIFT | {"task_class": "ship"}}, final="n = 1")
    first = await yard.start("lift")
    second = await yard.start("sail")
    await yard.rows("select mutirao.drop_class('crane')")
    assert await gates(yard) == [(first, "ready", "holds"), (second, "ready", "holds")]


@pytest.mark.parametrize("name", ["ship", None])
@pytest.mark.parametrize("who", [0, 1])
async def test_whoever_comes_to_a_version_with_another_class_leaves_the_old_one(
    yard: Engine, name: str | None, who: int
) -> None:
    """Whether it holds the class or waits for it."""
    await yard.rows("select mutirao.put_class('ship', '{}')")
    pair = await two(yard)
    task = {key: value for key, value in (LIFT | {"task_class": name}).items() if value is not None}
    await yard.apply("lift", {"n": 0}, {"up": task}, final="n = 1")
    await migrate(yard, "lift", pair[who])
    found = {instance: (status, gate) for instance, status, gate in await gates(yard)}
    assert found[pair[who]] == ("ready", "holds" if name else None)
    assert found[pair[1 - who]] == ("ready", "holds")


async def test_who_comes_to_a_version_with_a_class_waits_for_it(yard: Engine) -> None:
    await yard.apply("free", {"n": 0}, {"up": {"when": "n = 0"}}, final="n = 1")
    free = await yard.start("free")
    first = await yard.start("lift")
    await yard.apply("free", {"n": 0}, {"up": LIFT}, final="n = 1")
    await migrate(yard, "free", free)
    assert await gates(yard) == [(free, "waiting", "waits"), (first, "ready", "holds")]
    await yard.do("lift", "up", n=1)
    assert await gates(yard) == [(free, "ready", "holds")]


async def test_one_that_a_limit_keeps_back_goes_on_and_makes_way(yard: Engine) -> None:
    await yard.apply("lift", {"n": 0, "site": "a"}, {"up": LIFT | {"limit": {"at_once": 1}}}, final="n = 1")
    await yard.start_many("lift", [{}] * 3)
    for _ in range(3):
        [job] = await yard.claim("lift", "up", room=3)
        await yard.complete(job, n=1)
        await yard.tick()
    assert await gates(yard) == []


async def test_a_compensation_waits_for_its_class_and_gets_it(yard: Engine) -> None:
    tasks = {
        "up": {"when": "true", "fires": "once", "compensation": "down"},
        "more": after("up"),
        "down": {"task_class": "crane"},
    }
    await yard.apply("tower", {"n": 0}, tasks, ends="quiet")
    first = await yard.start("lift")
    tower = await yard.start("tower")
    await yard.do("tower", "up")
    await yard.rows("select mutirao.roll_back(%s)", tower)
    assert await gates(yard) == [(first, "ready", "holds"), (tower, "waiting", "waits")]
    await yard.do("lift", "up", n=1)
    await yard.do("tower", "down")
    assert await yard.status(tower) == "closed.terminated"


async def test_a_child_that_needs_what_its_parent_holds_goes_to_a_person(yard: Engine) -> None:
    tasks = {"go": {"when": "true", "fires": "once", "child": "lift", "task_class": "crane"}}
    await yard.apply("site", {"m": 0}, tasks, ends="quiet")
    parent = await yard.start("site")
    await yard.tick()
    child = parent + 1
    assert await yard.status(child) == "open.exception"
    assert await yard.codes(child) == ["wait_circle"]
    await yard.cancel(child)
    await yard.tick()
    assert await yard.codes(parent) == ["task_failed"]


async def test_a_holder_that_will_end_closes_no_circle(yard: Engine) -> None:
    """One waits by an ordering for another, which waits for a class that the first holds with a job of its own."""
    await yard.apply("here", {"n": 0}, {"a": {"when": "true", "fires": "once"}, "up": LIFT}, ends="quiet")
    await yard.apply(
        "there", {"n": 0}, {"b": {"when": "true", "fires": "once"}, "c": after("b", task_class="crane")}, ends="quiet"
    )
    order = {"first": "here", "second": "there", "pairs": [["a", "b"], ["a", "c"]]}
    await yard.rows("select mutirao.put_ordering(%s)", Jsonb(order))
    there = await yard.start("there")
    here = await yard.start("here")
    await yard.do("there", "b")
    assert await yard.codes(here) == await yard.codes(there) == []
    await yard.do("here", "up", n=1)
    await yard.do("there", "c")
    await yard.do("here", "a")
    assert await yard.status(here) == await yard.status(there) == "closed.completed"


async def test_a_job_that_ran_while_its_instance_came_to_a_class_has_it(yard: Engine) -> None:
    await yard.apply("free", {"n": 0}, {"up": {"when": "n = 0"}}, final="n = 1")
    await yard.start("free")
    job = await yard.take("free", "up")
    await yard.apply("free", {"n": 0}, {"up": LIFT | {"retries": 3}}, final="n = 1")
    await migrate(yard, "free", job.instance)
    await yard.start("free")
    assert [gate for *_, gate in await gates(yard)] == ["holds", "waits"]
    await yard.fail(job)
    await yard.advance(minutes=10)
    await yard.tick()
    assert len(await yard.claim("free", "up", room=5)) == 1


async def test_a_time_that_is_taken_away_takes_the_class_with_it(yard: Engine) -> None:
    tasks = {"up": LIFT | {"wait": "at"}, "z": ONCE}
    await yard.apply("later", {"n": 0, "at": {"type": "timestamp"}}, tasks, final="n = 1")
    past = "2020-01-01T00:00:00Z"
    first, second, _ = await yard.start_many("later", [{"at": past}] * 3)
    lifts = "select gate from mutirao.job j join mutirao.task t on t.id = j.task where t.name = 'up' order by j.id"
    for blank, left in ((second, ["holds", None, "waits"]), (first, [None, None, "holds"])):
        await yard.set(blank, at=None)
        await yard.tick()
        assert [gate for (gate,) in await yard.rows(lifts)] == left
    await yard.set(first, at=past)
    await yard.do("later", "up", n=1)
    assert (await yard.jobs(first))["up"] == "ready"


async def test_whoever_waits_longest_keeps_nobody_out_who_works_for_a_holder(engine: Engine) -> None:
    await engine.rows("select mutirao.put_class('read', '{}')")
    await engine.rows("select mutirao.put_class('write', '{read, write}')")
    await engine.apply("kid", {}, {"a": ONCE | {"task_class": "read"}}, ends="quiet")
    await engine.apply("parent", {}, {"p": ONCE | {"child": "kid", "task_class": "read"}}, ends="quiet")
    await engine.apply("writer", {}, {"w": ONCE | {"task_class": "write"}}, ends="quiet")
    parent = await engine.start("parent")
    writer = await engine.start("writer")
    await engine.advance(seconds=40)
    await engine.tick()
    await engine.start("kid")
    assert await engine.rows("select count(*)::int from mutirao.job where gate = 'waits'") == [(2,)]
    await engine.do("kid", "a")
    await engine.tick()
    await engine.tick()
    assert await engine.status(parent) == "closed.completed"
    assert await engine.jobs(writer) == {"w": "ready"}

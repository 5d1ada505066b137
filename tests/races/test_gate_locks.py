"""Whoever lets jobs through waits for nobody: no circle of locks, and what was passed over is done by a clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

ONCE: dict[str, Any] = {"when": "true", "fires": "once"}
ROUNDS = 60


@asynccontextmanager
async def other(engine: Engine) -> AsyncIterator[AsyncConnection[Any]]:
    """A transaction beside ours. Nobody waits for it: whoever does is told after a second."""
    async with await AsyncConnection.connect(engine.url) as session:
        yield session


async def prompt(engine: Engine, query: str, *values: Any) -> Any:
    """Fails if it has to wait for somebody else."""
    async with engine.session() as session:
        await session.execute("set lock_timeout = '1s'")
        return await (await session.execute(query.encode(), values)).fetchall()


async def pair(engine: Engine) -> tuple[int, int]:
    for p in (1, 2):
        await engine.apply(f"p_{p}", {}, {f"t_{p}1": ONCE, f"t_{p}2": after(f"t_{p}1")}, ends="quiet")
    document = {"first": "p_1", "second": "p_2", "pairs": [["t_11", "t_21"], ["t_12", "t_22"]]}
    await engine.rows("select mutirao.put_ordering(%s)", Jsonb(document))
    return await engine.start("p_1"), await engine.start("p_2")


async def test_a_cancel_of_who_waits_beside_a_finish_of_who_goes_first(engine: Engine) -> None:
    one, two = await pair(engine)
    job = await engine.take("p_1", "t_11")
    async with other(engine) as session:
        await session.execute("select mutirao.cancel(%s)", [two])
        await prompt(engine, "select mutirao.complete(%s, %s, '{}')", job.id, job.attempt)
    assert await engine.status(two) == "closed.aborted"
    assert await engine.jobs(one) == {"t_12": "ready"}
    await engine.tick()
    assert not await engine.rows("select from mutirao.order_wait")
    assert not await engine.rows("select from mutirao.order_left")


async def test_who_was_held_when_its_turn_came_goes_on_by_a_clock(engine: Engine) -> None:
    _, two = await pair(engine)
    job = await engine.take("p_1", "t_11")
    async with other(engine) as session:
        await session.execute("select from mutirao.job where instance = %s for update", [two])
        await prompt(engine, "select mutirao.complete(%s, %s, '{}')", job.id, job.attempt)
        await engine.tick()
        assert await engine.jobs(two) == {"t_21": "waiting"}
    await engine.tick()
    assert await engine.jobs(two) == {"t_21": "ready"}


async def test_an_ordering_dropped_while_somebody_holds_who_waits(engine: Engine) -> None:
    _, two = await pair(engine)
    async with other(engine) as session:
        await session.execute("select from mutirao.job where instance = %s for update", [two])
        await prompt(engine, "select mutirao.drop_ordering('p_1', 'p_2')")
    await engine.tick()
    assert await engine.jobs(two) == {"t_21": "ready"}


async def test_a_failure_beside_who_is_let_through(engine: Engine) -> None:
    """The transaction that fails a job has written the stamp of the instance of which another job is let through."""
    await engine.rows("select mutirao.put_class('crane', '{}')")
    await engine.rows("select mutirao.put_class('crane', '{crane}')")
    await engine.apply("h", {}, {"lift": ONCE | {"task_class": "crane"}}, ends="quiet")
    tasks = {"t_11": ONCE, "mid": ONCE | {"retries": 0}, "t_12": ONCE | {"task_class": "crane"}}
    await engine.apply("p_1", {}, tasks, ends="quiet")
    await engine.apply("p_2", {}, {"t_21": ONCE}, ends="quiet")
    document = {"first": "p_1", "second": "p_2", "pairs": [["t_11", "t_21"], ["t_12", "t_21"]]}
    await engine.rows("select mutirao.put_ordering(%s)", Jsonb(document))
    await engine.start("h")
    lift = await engine.take("h", "lift")
    one = await engine.start("p_1")
    mid = await engine.take("p_1", "mid")
    async with other(engine) as session:
        await session.execute("select mutirao.fail(%s, %s, 'no', true)", [mid.id, mid.attempt])
        await prompt(engine, "select mutirao.complete(%s, %s, '{}')", lift.id, lift.attempt)
    assert (await engine.jobs(one))["t_12"] == "ready"


async def claimed(engine: Engine) -> list[Any]:
    await engine.rows("select mutirao.put_class('crane', '{}')")
    await engine.apply("f", {}, {"a": ONCE | {"task_class": "crane"}}, ends="quiet")
    await engine.start_many("f", [{}, {}])
    return sorted(await engine.claim("f", "a", room=2), key=lambda job: job.id)


async def test_a_class_is_dropped_beside_work(engine: Engine) -> None:
    first, second = await claimed(engine)
    async with other(engine) as session:
        await session.execute("select mutirao.complete(%s, %s, '{}')", [second.id, second.attempt])
        await prompt(engine, "select mutirao.drop_class('crane')")
        await session.execute("select mutirao.complete(%s, %s, '{}')", [first.id, first.attempt])
    assert [await engine.status(job.instance) for job in (first, second)] == ["closed.completed"] * 2


async def test_a_job_of_a_dropped_class_that_somebody_held_is_let_go_by_a_clock(engine: Engine) -> None:
    await engine.rows("select mutirao.put_class('crane', '{}')")
    await engine.rows("select mutirao.put_class('crane', '{crane}')")
    await engine.apply("f", {}, {"a": ONCE | {"task_class": "crane"}}, ends="quiet")
    _, two = await engine.start_many("f", [{}, {}])
    async with other(engine) as session:
        await session.execute("select from mutirao.job where instance = %s for update", [two])
        await prompt(engine, "select mutirao.drop_class('crane')")
    assert await engine.jobs(two) == {"a": "waiting"}
    await engine.tick()
    assert await engine.jobs(two) == {"a": "ready"}


async def test_a_job_that_fired_while_its_class_was_dropped_is_ready(engine: Engine) -> None:
    await engine.rows("select mutirao.put_class('crane', '{}')")
    await engine.rows("select mutirao.put_class('crane', '{crane}')")
    await engine.apply("f", {}, {"a": ONCE | {"task_class": "crane"}}, ends="quiet")
    await engine.start("f")
    async with other(engine) as session:
        started = await (await session.execute("select mutirao.start('f', '{}')")).fetchone()
        await prompt(engine, "select mutirao.drop_class('crane')")
    assert started is not None
    assert await engine.jobs(started[0]) == {"a": "ready"}


async def test_classes_are_changed_at_once(engine: Engine) -> None:
    for name in "ab":
        await engine.rows("select mutirao.put_class(%s, '{}')", name)

    async def put(name: str, conflict: str) -> None:
        async with await AsyncConnection.connect(engine.url, autocommit=True) as session:
            for n in range(ROUNDS):
                await session.execute("select mutirao.put_class(%s, %s)", [name, [conflict] if n % 2 else []])

    await asyncio.gather(put("a", "b"), put("b", "a"))
    one_sided = "(a.id = any (b.conflicts)) <> (b.id = any (a.conflicts))"
    assert await engine.rows(f"select a.name, b.name from mutirao.class a, mutirao.class b where {one_sided}") == []


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_nobody_is_let_through_by_an_old_view(engine: Engine, level: str) -> None:
    await engine.rows("select mutirao.put_class('crane', '{}')")
    await engine.rows("select mutirao.put_class('crane', '{crane}')")
    await engine.apply("f", {}, {"a": ONCE | {"task_class": "crane"}}, ends="quiet")
    async with other(engine) as session:
        await session.execute(f"set transaction isolation level {level}".encode())
        await session.execute("select count(*) from mutirao.job")
        await engine.start("f")
        await session.execute("select mutirao.start('f', '{}')")
        with pytest.raises(psycopg.Error, match=f"wrong_call: jobs that have a class .*: this one is {level}"):
            await session.commit()
    assert await engine.rows("select gate from mutirao.job") == [("holds",)]

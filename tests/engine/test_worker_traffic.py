"""When a worker asks for jobs, how many it takes, and in which order it does them."""

import asyncio
import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection
from worker_stage import HOUR, Stage, fresh_stage, until  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, Job, task
from mutirao.database import protocol


class Step(Flow):
    n: int = 0
    goal: int = 1
    final = "n >= goal"

    @task(when="n < goal")
    async def step(self) -> Change:
        return {"n": self.n + 1}


async def idle(stage: Stage, name: str) -> None:
    """Wait until a worker has asked, got nothing, and sits there."""

    async def all_lanes_idle() -> bool:
        found = await stage.rows(
            "select state from pg_stat_activity where datname = current_database() and application_name like %s",
            f"{name} lane%",
        )
        return [state for (state,) in found] == ["idle", "idle"] or [state for (state,) in found] == ["idle"]

    await until(all_lanes_idle)


# ---------------------------------------------------------------------------------------------------------------- waking


async def test_notification_wakes_an_idle_worker(stage: Stage) -> None:
    async with stage.working(Step, poll=HOUR):
        await idle(stage, "ann")
        for _ in range(5):
            await stage.comes_to(await stage.engine.start(Step(goal=3)))


async def test_polling_alone_does_when_notifications_never_come(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutirao.worker.worker.Worker._hear", lambda _worker, _payload: None)
    async with stage.working(Step, poll=timedelta(milliseconds=50)):
        await idle(stage, "ann")
        await stage.comes_to(await stage.engine.start(Step(goal=3)))


async def test_job_started_while_the_listener_was_deaf_is_found_when_it_hears_again(stage: Stage) -> None:
    async with stage.working(Step, poll=HOUR):
        await idle(stage, "ann")
        async with stage.engine.connection() as connection, connection.transaction():
            # The notification of this start is sent with the commit: when nobody listens.
            await connection.execute("select mutirao.start('step')")
            ended = await connection.execute(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
                "where datname = current_database() and application_name = 'ann listens'"
            )
            assert await ended.fetchall() == [(True,)]
        await stage.all_close("step", 1)
        await stage.comes_to(await stage.engine.start(Step()))  # and it hears again


async def test_lost_lines_are_made_anew(stage: Stage) -> None:
    async with stage.working(Step, poll=HOUR):
        await stage.engine.start_many([Step(goal=20) for _ in range(200)])
        for _ in range(10):
            await stage.rows(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
                "where datname = current_database() and application_name like 'ann%%'"
            )
        # What was leased in an answer that never came is nobody's until its lease ends.
        await stage.advance(minutes=2)
        await stage.all_close("step", 200)
    rows = await stage.rows("select instance, count(*) from mutirao.trace where kind = 'finish' group by 1")
    assert Counter(count for _, count in rows) == {20: 200}


# --------------------------------------------------------------------------------------------------------------- batches


async def written_together(stage: Stage) -> list[int]:
    """How many jobs ended in each transaction, most first."""
    found = await stage.rows("select count(*) from mutirao.trace where kind = 'finish' group by xmin order by 1 desc")
    return [count for (count,) in found]


async def test_backlog_goes_in_hundreds(stage: Stage) -> None:
    await stage.engine.apply(Step)
    await stage.engine.start_many([Step(goal=2) for _ in range(1000)])
    async with stage.working(Step):
        await stage.all_close("step", 1000)
    batches = await written_together(stage)
    assert sum(batches) == 2000
    assert batches[0] >= 100
    assert sum(batches) / len(batches) >= 50  # the first and the last may be small


async def test_two_steps_of_one_instance_never_share_a_commit(stage: Stage) -> None:
    await stage.engine.apply(Step)
    await stage.engine.start_many([Step(goal=5) for _ in range(300)])
    async with stage.working(Step), stage.working(Step, name="bob"):
        await stage.all_close("step", 300)
    assert not await stage.rows(
        "select from mutirao.trace where kind = 'finish' group by instance, xmin having count(*) > 1"
    )


async def test_lone_job_goes_at_once(stage: Stage) -> None:
    async with stage.working(Step):
        await stage.comes_to(await stage.engine.start(Step(goal=10)))
    assert await written_together(stage) == [1] * 10


async def test_worker_takes_no_more_than_it_can_do(stage: Stage) -> None:
    go_on = asyncio.Event()
    inside = most = 0

    class Held(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        async def work(self) -> Change:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await go_on.wait()
            inside -= 1
            return {"done": True}

    await stage.engine.apply(Held)
    await stage.engine.start_many([Held() for _ in range(50)])
    async with stage.working(Held, concurrency=7):

        async def seven_run() -> bool:
            return inside == 7 == len(await stage.engine.jobs(status="running"))

        await until(seven_run)
        go_on.set()
        await stage.all_close("held", 50)
    assert most == 7


async def test_worker_does_not_hoard_slow_blocking_jobs(stage: Stage) -> None:
    go_on = threading.Event()

    class Slow(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        def work(self) -> Change:
            go_on.wait(30)
            return {"done": True}

    await stage.engine.apply(Slow)
    await stage.engine.start_many([Slow() for _ in range(100)])
    async with stage.working(Slow, threads=3):

        async def some_run() -> int:
            return len(await stage.engine.jobs(status="running"))

        await until(some_run)
        await stage.comes_to(await stage.engine.start(Slow(done=True)))
        assert await some_run() <= 12  # twice the threads, for each of two lanes
        go_on.set()
        await stage.all_close("slow", 101)


# ----------------------------------------------------------------------------------------------------------------- order


async def test_worker_does_urgent_jobs_first(stage: Stage) -> None:
    done: list[int] = []

    class Ranked(Flow):
        rank: int
        done: bool = False
        final = "done"

        @task(when="not done")
        async def work(self) -> Change:
            done.append(self.rank)
            return {"done": True}

    await stage.engine.apply(Ranked)
    for rank in (1, 3, 2, 3, 1):
        await stage.engine.start(Ranked(rank=rank), priority=rank)
    async with stage.working(Ranked, concurrency=1):
        await stage.all_close("ranked", 5)
    assert done == [3, 3, 2, 1, 1]


async def test_priority_of_a_task_adds_to_that_of_its_instance(stage: Stage) -> None:
    done: list[str] = []

    class Mixed(Flow):
        a: bool = False
        b: bool = False
        final = "a and b"

        @task(when="not a")
        async def usual(self, job: Job) -> Change:
            done.append(f"usual {job.instance_id}")
            return {"a": True}

        @task(when="not b", priority=5)
        async def urgent(self, job: Job) -> Change:
            done.append(f"urgent {job.instance_id}")
            return {"b": True}

    await stage.engine.apply(Mixed)
    low = await stage.engine.start(Mixed())
    high = await stage.engine.start(Mixed(), priority=2)
    async with stage.working(Mixed, concurrency=1):
        await stage.all_close("mixed", 2)
    assert done == [f"urgent {high}", f"urgent {low}", f"usual {high}", f"usual {low}"]


async def test_step_of_little_urgency_does_not_push_in_before_waiting_jobs(stage: Stage) -> None:
    done: list[int] = []

    class Long(Flow):
        rank: int
        n: int = 0
        final = "n >= 3"

        @task(when="n < 3")
        async def step(self) -> Change:
            done.append(self.rank)
            return {"n": self.n + 1}

    await stage.engine.apply(Long)
    await stage.engine.start(Long(rank=1), priority=1)
    await stage.engine.start(Long(rank=9), priority=9)
    async with stage.working(Long, concurrency=1):
        await stage.all_close("long", 2)
    assert done == [9, 9, 9, 1, 1, 1]


# ---------------------------------------------------------------------------------------------------------------- poison


class Suspect(Flow):
    is_poison: bool = False
    result: str | None = None
    final = "result is not null"

    @task(when="result is null", retries=0)
    async def work(self) -> Change:
        return {"result": "poison" if self.is_poison else "fine"}


async def one_in_300_is_poison(stage: Stage, server_does: str) -> int:
    """The server does this whenever the one change is written, and so to every turn that it is in."""
    await stage.do(
        f"create function poison() returns trigger language plpgsql as $$ begin {server_does}; return new; end $$"
    )
    await stage.do(
        "create trigger poison before insert on mutirao.trace for each row "
        """when (new.state @> '{"result": "poison"}') execute function poison()"""
    )
    await stage.engine.apply(Suspect)
    started = await stage.engine.start_many([Suspect(is_poison=number == 77) for number in range(300)])
    return started[77]


async def test_change_that_the_server_refuses_fails_alone(stage: Stage) -> None:
    poison = await one_in_300_is_poison(stage, "raise exception 'it is too deep' using errcode = '54001'")
    async with stage.working(Suspect):
        await stage.all_close("suspect", 299)
        found = await stage.comes_to(poison, "open.exception")
    assert found.reasons is not None
    assert found.reasons[0]["error"] == "the server cannot take this: it is too deep"


async def test_change_that_takes_too_long_to_look_at_is_parked_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "LOOK_LIMIT", timedelta(milliseconds=200))
    poison = await one_in_300_is_poison(stage, "perform pg_sleep(60)")
    async with stage.working(Suspect):
        await stage.all_close("suspect", 299)
        found = await stage.comes_to(poison, "open.exception")
    assert found.reasons is not None
    assert found.reasons[0]["code"] == "condition_failed"
    [(kept,)] = await stage.rows("select change from mutirao.job where instance = %s and status = 'parked'", poison)
    assert kept == {"result": "poison"}


async def test_a_place_with_little_room_does_not_make_small_batches_for_the_others(stage: Stage) -> None:
    """Two transactional jobs fit; a hundred of the others still come in a few transactions, not in fifty."""
    held = asyncio.Event()

    class Wide(Flow):
        kind: str
        done: bool = False
        final = "done"

        @task(when="kind = 'loop'")
        async def wait(self) -> Change:
            await held.wait()
            return {"done": True}

        @task(when="kind = 'transaction'", transactional=True)
        async def write(self, connection: AsyncConnection[Any]) -> Change:
            await connection.execute("select 1")
            return {"done": True}

    await stage.engine.apply(Wide)
    await stage.engine.start_many([Wide(kind="loop") for _ in range(100)])
    await stage.engine.start_many([Wide(kind="transaction") for _ in range(20)])
    async with stage.working(Wide, transactions=1):

        async def all_are_held() -> bool:
            [(running,)] = await stage.rows("select count(*) from mutirao.job where status = 'running'")
            return bool(running == 100)

        await until(all_are_held)
        [(turns,)] = await stage.rows("select count(distinct xmin::text) from mutirao.job where status = 'running'")
        assert turns <= 25
        held.set()
        await stage.all_close("wide", 120)


async def test_no_job_waits_for_the_poll_because_another_place_had_more_room(stage: Stage) -> None:
    """One slow thread; the loop has room for all, and leads. What waits for the thread is asked for all the same."""
    turnstile = threading.Semaphore(0)

    class Blocking(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        def work(self) -> Change:
            turnstile.acquire()
            return {"done": True}

    await stage.engine.apply(Blocking)
    await stage.engine.start_many([Blocking() for _ in range(30)])
    async with stage.working(Blocking, Step, threads=1):
        for ended in range(1, 31):
            if ended % 3 == 1:  # the loop gets something to do while the thread is full
                await stage.comes_to(await stage.engine.start(Step()))
            turnstile.release()
            await stage.all_close("blocking", ended)


async def test_a_thread_that_comes_back_late_is_used_again_at_once(stage: Stage) -> None:
    go = threading.Event()

    class Late(Flow):
        is_stuck: bool = False
        done: bool = False
        final = "done"

        @task(when="not done", timeout=timedelta(milliseconds=100), retries=0)
        def work(self) -> Change:
            if self.is_stuck:
                go.wait()
            return {"done": True}

    await stage.engine.apply(Late)
    async with stage.working(Late, threads=1):
        await stage.comes_to(await stage.engine.start(Late(is_stuck=True)), "open.exception")
        waiting = await stage.engine.start(Late())
        await idle(stage, "ann")
        go.set()
        await stage.comes_to(waiting)

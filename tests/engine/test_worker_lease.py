"""Leases: kept up while user code runs, lost to somebody else, given back."""

import asyncio
import threading
from datetime import datetime, timedelta

from worker_stage import Stage, fresh_stage, happens, until  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, Job, task
from mutirao.database.batch import Filter
from mutirao.database.protocol import Line
from mutirao.worker.clock import Clock

SHORT = timedelta(milliseconds=300)


class Door:
    """User code waits behind it until the test opens it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def pass_through(self) -> None:
        self.reached.set()
        try:
            await self._open.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def lease_of(stage: Stage, instance: int) -> datetime | None:
    [job] = await stage.engine.jobs(instance)
    return job.lease_until


async def test_lease_is_renewed_while_user_code_runs(stage: Stage) -> None:
    door = Door()

    class Long(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        async def work(self) -> Change:
            await door.pass_through()
            return {"done": True}

    async with stage.working(Long, lease=SHORT):
        started = await stage.engine.start(Long())
        await happens(door.reached)
        first = await lease_of(stage, started)
        assert first is not None

        async def outlived_three_leases() -> bool:
            now = await lease_of(stage, started)
            return now is not None and now > first + 3 * SHORT

        await until(outlived_three_leases)
        door.open()
        await stage.comes_to(started)
    assert await stage.kinds(started) == ["start", "finish"]


async def test_lease_of_a_blocking_function_is_renewed_too(stage: Stage) -> None:
    go_on = threading.Event()

    class Long(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        def work(self) -> Change:
            go_on.wait(30)
            return {"done": True}

    async with stage.working(Long, lease=SHORT):
        started = await stage.engine.start(Long())
        first = (await stage.job_comes_to(started, "running")).lease_until
        assert first is not None

        async def outlived_three_leases() -> bool:
            now = await lease_of(stage, started)
            return now is not None and now > first + 3 * SHORT

        await until(outlived_three_leases)
        go_on.set()
        await stage.comes_to(started)


async def test_lost_lease_cancels_user_code_and_another_worker_does_the_job(stage: Stage) -> None:
    doors = {"ann": Door(), "bob": Door()}
    attempts: list[int] = []

    class Contested(Flow):
        by: str | None = None
        final = "by is not null"

        @task(when="by is null")
        async def work(self, job: Job) -> Change:
            attempts.append(job.attempt)
            name = "ann" if len(attempts) == 1 else "bob"
            await doors[name].pass_through()
            return {"by": name}

    async with stage.working(Contested, lease=timedelta(seconds=3), clock=False, concurrency=1):
        started = await stage.engine.start(Contested())
        await happens(doors["ann"].reached)
        async with stage.working(Contested, name="bob"):
            await stage.advance(minutes=10)  # ann has not been heard of for so long
            await happens(doors["bob"].reached)
            await happens(doors["ann"].cancelled)
            doors["bob"].open()
            assert (await stage.comes_to(started)).state == {"by": "bob"}
    trace = await stage.engine.trace(started)
    assert [row.kind for row in trace] == ["start", "finish"]
    assert (trace[-1].writer, trace[-1].attempt) == ("bob", attempts[1])


async def test_result_of_a_lost_attempt_is_ignored(stage: Stage) -> None:
    go_on = threading.Event()
    calls: list[int] = []

    class Contested(Flow):
        by: int = 0
        final = "by > 0"

        @task(when="by = 0")
        def work(self) -> Change:
            calls.append(len(calls) + 1)
            number = calls[-1]
            if number == 1:
                go_on.wait(30)
            return {"by": number}

    # So long a lease that it is never renewed in this test: only the attempt number tells that it was lost.
    async with stage.working(Contested, lease=timedelta(minutes=5), clock=False, concurrency=1) as ann:
        started = await stage.engine.start(Contested())
        await stage.job_comes_to(started, "running")
        async with stage.working(Contested, name="bob"):
            await stage.advance(minutes=10)
            assert (await stage.comes_to(started)).state == {"by": 2}
        go_on.set()
        await until(lambda: _truth(ann.done == 1))
    assert (await stage.engine.instance(started)).state == {"by": 2}
    assert await stage.kinds(started) == ["start", "finish"]


async def _truth(holds: bool) -> bool:
    return holds


async def test_lost_leases_use_no_retry_but_twenty_in_a_row_do(stage: Stage) -> None:
    class Fatal(Flow):
        done: bool = False
        final = "done"

        @task(when="not done", retries=0)
        async def work(self) -> Change:
            return {"done": True}

    await stage.engine.apply(Fatal)
    started = await stage.engine.start(Fatal())
    [(task_number,)] = await stage.rows("select id from mutirao.task_ids('fatal')")
    for losses in range(20):
        assert (await stage.engine.jobs(started))[0].failures == 0, losses
        await stage.rows("select * from mutirao.claim('killed', array[%s])", task_number)
        await stage.advance(minutes=2)
        await stage.rows("select * from mutirao.turn_clock()")
    found = await stage.engine.instance(started)
    assert found.status == "open.exception"
    assert found.reasons is not None
    assert "vanished" in found.reasons[0]["error"]


async def test_result_for_a_busy_instance_waits_and_keeps_its_lease(stage: Stage) -> None:
    class Busy(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        async def work(self) -> Change:
            return {"done": True}

    await stage.engine.apply(Busy)
    started = await stage.engine.start(Busy())
    async with stage.engine.connection() as other, other.transaction():
        await other.execute("select from mutirao.instance where id = %s for no key update", [started])
        async with stage.working(Busy, lease=SHORT) as worker:
            await until(lambda: _truth(worker.done == 1))
            first = await lease_of(stage, started)
            assert first is not None

            async def outlived_three_leases() -> bool:
                now = await lease_of(stage, started)
                return now is not None and now > first + 3 * SHORT

            await until(outlived_three_leases)
            worker.stop()  # not before it has got rid of what it has done
            await other.execute("commit")
            await stage.comes_to(started)
    assert await stage.kinds(started) == ["start", "finish"]


async def test_a_duty_that_cannot_be_done_does_not_keep_the_clock_from_the_others(stage: Stage) -> None:
    """To end the lease of one job takes for ever; the other is still woken for its next try."""

    class Patient(Flow):
        done: bool = False
        final = "done"

        @task(when="not done", timeout=timedelta(seconds=30))
        async def work(self) -> Change:
            return {"done": True}

    await stage.do(
        "create function dawdle() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$"
    )
    await stage.engine.apply(Patient)
    slow, waiting = [await stage.engine.start(Patient()) for _ in range(2)]
    [(task_number,)] = await stage.rows("select id from mutirao.task_ids('patient')")
    jobs = await stage.rows("select job, attempt from mutirao.claim('gone', array[%s], 2)", task_number)
    await stage.rows("select mutirao.fail(%s, %s, 'try again')", *jobs[1])
    await stage.do(
        "create trigger dawdle before insert on mutirao.trace for each row when (new.note ->> 'code' = 'timeout') "
        "execute function dawdle()"
    )
    await stage.advance(minutes=2)
    line = Line(stage.engine.url, "clock", timedelta(milliseconds=200))
    await Clock(stage.engine).turn(line)
    await line.close()
    assert [(await stage.engine.jobs(each))[0].status for each in (slow, waiting)] == ["running", "ready"]


async def test_a_duty_that_fails_does_not_put_off_what_others_have_to_do_sooner(stage: Stage) -> None:
    """A batch waits for an instance that somebody is writing; schedules, which come later in a turn, always fail."""

    class Patient(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        async def work(self) -> Change:
            return {"done": True}

    await stage.engine.apply(Patient)
    started = await stage.engine.start(Patient())
    await stage.engine.make_batch("suspend", Filter(ids=(started,)))
    await stage.do("alter table mutirao.schedule rename to gone")
    clock, line = Clock(stage.engine), Line(stage.engine.url, "clock", timedelta(seconds=5))
    async with stage.engine.connection() as other, other.transaction():
        await other.execute("select from mutirao.instance where id = %s for update", [started])
        turns = [await clock.turn(line) for _ in range(12)]
    await line.close()
    assert turns[0] == 0  # once more with fewer
    assert 0 < turns[-1] < 0.5  # with one alone it fails again: that is for later, but the batch is not

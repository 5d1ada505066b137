"""What a worker makes of errors and of functions that take too long."""

import asyncio
import threading
from datetime import timedelta
from functools import partial

import pytest
from one_task import FIVE_MINUTES, Once, first_failure
from worker_stage import Stage, fresh_stage, happens, until  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Failed, Job, RequestError, task


def deep_inside() -> None:
    raise LookupError("no such hotel")


async def test_traceback_is_kept_from_the_users_code_on(stage: Stage) -> None:
    class Raising(Once):
        @task(when="result is null", backoff=FIVE_MINUTES)
        async def work(self) -> Change:
            deep_inside()
            return {}

    error = await first_failure(stage, Raising)
    assert error["code"] == "LookupError"
    assert error["error"] == "LookupError: no such hotel"
    frames = [line for line in error["traceback"].splitlines() if line.startswith("  File")]
    assert [frame.split()[-1] for frame in frames] == ["work", "deep_inside"]
    assert all("test_worker_failure.py" in frame for frame in frames)


async def test_refusal_raised_in_user_code_keeps_its_traceback(stage: Stage) -> None:
    class Refused(Once):
        @task(when="result is null", backoff=FIVE_MINUTES)
        def work(self) -> Change:
            raise RequestError("unknown_instance", "there is no instance 5")

    error = await first_failure(stage, Refused)
    assert error["code"] == "unknown_instance"
    assert "in work" in error["traceback"]


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError("cannot even say so")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a zero \0 in it"),
        ValueError("half a pair \ud800 in it"),
        ValueError("long " * 100_000),
        MuteError(),
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_any_error_of_a_blocking_function_is_a_failed_attempt(stage: Stage, error: BaseException) -> None:
    class Odd(Once):
        @task(when="result is null", backoff=FIVE_MINUTES)
        def work(self) -> Change:
            raise error

    kept = await first_failure(stage, Odd)
    assert kept["code"] == type(error).__name__
    assert len(kept["error"]) <= 1000
    assert len(kept["traceback"]) <= 8000


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), TimeoutError()], ids=repr)
async def test_any_error_of_an_async_function_is_a_failed_attempt(stage: Stage, error: BaseException) -> None:
    class Odd(Once):
        @task(when="result is null", backoff=FIVE_MINUTES)
        async def work(self) -> Change:
            raise error

    assert (await first_failure(stage, Odd))["code"] == type(error).__name__


async def test_failed_job_is_tried_again_with_growing_pauses_and_jitter(stage: Stage) -> None:
    class Stubborn(Once):
        @task(when="result is null", retries=3, backoff=timedelta(minutes=1))
        async def work(self) -> Change:
            raise RuntimeError("not yet")

    async with stage.working(Stubborn):
        many = await stage.engine.start_many([Stubborn() for _ in range(20)])
        for failures, wait in enumerate((60, 300, 300), 1):  # ten times as long, but five minutes at most

            async def all_wait(failures: int = failures) -> bool:
                waiting = await stage.engine.jobs(status="waiting")
                return [job.failures for job in waiting] == [failures] * len(many)

            await until(all_wait)
            pauses = await stage.rows("select extract(epoch from due_at - mutirao.now())::float8 from mutirao.job")
            assert all(wait * 0.5 - 5 < pause <= wait * 1.5 for (pause,) in pauses)
            assert len({round(pause) for (pause,) in pauses}) > 3  # spread out, not all at once
            await stage.advance(seconds=wait * 1.5)
        for each in many:
            await stage.comes_to(each, "open.exception")
    assert await stage.kinds(many[0]) == ["start", "retry", "retry", "retry", "fail"]


async def test_job_that_succeeds_in_the_end_leaves_no_exception(stage: Stage) -> None:
    class Slow(Once):
        @task(when="result is null", retries=2, backoff=timedelta(milliseconds=1))
        async def work(self, job: Job) -> Change:
            if job.retries_used < 2:
                raise RuntimeError
            return {"result": "at last"}

    async with stage.working(Slow) as worker:
        started = await stage.engine.start(Slow())
        await stage.comes_to(started)
        assert (worker.done, worker.failed) == (1, 2)


async def _other_branch_done(stage: Stage, instance: int) -> bool | None:
    return (await stage.engine.instance(instance)).state["other"] == "done" or None


async def test_poison_job_ends_in_an_exception_with_its_traceback(stage: Stage) -> None:
    calls = 0

    class Poison(Once):
        other: str | None = None

        @task(when="result is null", retries=1, backoff=timedelta(0))
        def work(self) -> Change:
            nonlocal calls
            calls += 1
            raise ZeroDivisionError("poison")

        @task(when="other is null")
        async def go_on(self) -> Change:
            return {"other": "done"}

    async with stage.working(Poison):
        started = await stage.engine.start(Poison())
        failed = await stage.job_comes_to(started, "failed")
        await until(partial(_other_branch_done, stage, started))
        found = await stage.comes_to(started, "open.exception")
        healthy = await stage.engine.start(Poison(result="given", other="given"))
        await stage.comes_to(healthy)
    assert calls == 2
    assert found.reasons is not None
    assert found.reasons[0]["code"] == "task_failed"
    assert found.reasons[0]["error"] == "ZeroDivisionError: poison"
    assert failed.error is not None
    assert "in work" in failed.error["traceback"]


async def test_failed_ends_the_job_at_once(stage: Stage) -> None:
    class Hopeless(Once):
        @task(when="result is null", retries=9)
        async def work(self) -> Change:
            raise Failed("the hotel has closed down")

    async with stage.working(Hopeless):
        started = await stage.engine.start(Hopeless())
        await stage.comes_to(started, "open.exception")
    assert await stage.kinds(started) == ["start", "fail"]
    [job] = await stage.engine.jobs(started, status="failed")
    assert job.error is not None
    assert job.error["code"] == "failed"
    assert job.error["error"].endswith("Failed: the hotel has closed down")


async def test_async_function_is_cancelled_at_its_timeout(stage: Stage) -> None:
    cancelled = asyncio.Event()

    class Late(Once):
        @task(when="result is null", timeout=timedelta(milliseconds=50), backoff=FIVE_MINUTES)
        async def work(self) -> Change:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return {}

    error = await first_failure(stage, Late)
    assert (error["code"], error["error"]) == ("timeout", "did not end within its timeout of 0.05 s")
    await happens(cancelled)


async def test_function_that_will_not_be_cancelled_is_not_listened_to(stage: Stage) -> None:
    returned = asyncio.Event()
    go_on = asyncio.Event()

    class Deaf(Once):
        @task(when="result is null", timeout=timedelta(milliseconds=50), backoff=FIVE_MINUTES)
        async def work(self) -> Change:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await go_on.wait()
            returned.set()
            return {"result": "too late"}

    async with stage.working(Deaf):
        started = await stage.engine.start(Deaf())
        await stage.job_comes_to(started, "waiting")
        go_on.set()
        await happens(returned)
        assert (await stage.engine.instance(started)).state["result"] is None
    assert await stage.kinds(started) == ["start", "retry"]


async def test_blocking_function_is_reported_at_its_timeout_and_its_late_result_ignored(stage: Stage) -> None:
    go_on = threading.Event()
    returned = threading.Event()

    class Blocked(Once):
        @task(when="result is null", timeout=timedelta(milliseconds=50), backoff=FIVE_MINUTES)
        def work(self) -> Change:
            go_on.wait(30)
            returned.set()
            return {"result": "too late"}

    async with stage.working(Blocked) as worker:
        started = await stage.engine.start(Blocked())
        job = await stage.job_comes_to(started, "waiting")
        go_on.set()
        await asyncio.to_thread(returned.wait, 30)
        await stage.engine.start(Blocked(result="given"))
        assert (worker.done, worker.failed) == (0, 1)
    assert job.error is not None
    assert job.error["code"] == "timeout"
    assert (await stage.engine.instance(started)).state["result"] is None


async def test_worker_whose_threads_are_all_stuck_takes_no_more_blocking_jobs(stage: Stage) -> None:
    go_on = threading.Event()

    class Stuck(Once):
        is_stuck: bool = True

        @task(when="result is null", timeout=timedelta(milliseconds=50), backoff=FIVE_MINUTES)
        def work(self) -> Change:
            if self.is_stuck:
                go_on.wait(30)
            return {"result": "done"}

    async with stage.working(Stuck, threads=1):
        stuck = await stage.engine.start(Stuck())
        await stage.job_comes_to(stuck, "waiting")
        healthy = await stage.engine.start(Stuck(is_stuck=False))
        async with stage.working(Stuck, name="bob"):  # leaves it to somebody who can
            await stage.comes_to(healthy)
        go_on.set()
    assert await stage.kinds(healthy) == ["start", "finish"]


async def test_slow_job_does_not_hold_up_quick_ones_of_its_hop(stage: Stage) -> None:
    go_on = threading.Event()

    class Mixed(Once):
        is_slow: bool = False

        @task(when="result is null")
        def work(self) -> Change:
            if self.is_slow:
                go_on.wait(30)
            return {"result": "done"}

    async with stage.working(Mixed, threads=2):
        await stage.engine.start_many([Mixed() for _ in range(500)])  # it learns that they are quick
        await stage.all_close("mixed", 500)
        await stage.engine.start_many([Mixed(is_slow=number == 3) for number in range(500)])
        await stage.all_close("mixed", 999)
        go_on.set()
        await stage.all_close("mixed", 1000)

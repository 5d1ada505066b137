"""What a worker gives to the functions of a flow, and what it makes of what they return or raise."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from worker_stage import Stage, happens, stage_on, until

from mutirao import Change, Failed, Flow, FlowError, Job, Json, RequestError, handles, task

FIVE_MINUTES = timedelta(minutes=5)


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with stage_on(database_url) as made:
        yield made


class Once(Flow, abstract=True):
    """Has one task, which is done when `result` is set."""

    result: str | None = None
    final = "result is not null"


# ------------------------------------------------------------------------------------------------- what functions get


async def test_async_and_blocking_functions_work_side_by_side(stage: Stage) -> None:
    class Both(Flow):
        one: str | None = None
        other: str | None = None
        final = "one is not null and other is not null"

        @task(when="one is null")
        async def on_the_loop(self) -> Change:
            await asyncio.sleep(0)
            return {"one": threading.current_thread().name}

        @task(when="other is null")
        def in_a_thread(self) -> Change:
            return {"other": threading.current_thread().name}

    async with stage.working(Both):
        started = await stage.engine.start(Both())
        state = (await stage.comes_to(started)).state
    assert state["one"] == "MainThread"
    assert state["other"].startswith("mutirao-job")


async def test_state_comes_typed_and_changes_are_merged(stage: Stage) -> None:
    seen: list[Any] = []

    class Typed(Once):
        text: str = "ä"
        whole: int = 7
        exact: Decimal = Decimal("0.10")
        yes: bool = True
        day: date = date(2024, 2, 29)
        moment: datetime = datetime(2024, 2, 29, 12, tzinfo=UTC)
        anything: Json = None

        @task(when="result is null")
        async def look(self) -> Change:
            seen.append(self)
            return {"result": "seen", "exact": self.exact + 1, "anything": [self.day.isoformat(), None]}

    given = Typed(whole=8, anything={"a": [1]})
    async with stage.working(Typed):
        started = await stage.engine.start(given)
        state = (await stage.comes_to(started)).state
    assert seen == [given]
    assert Typed.load_state(await _state_text(stage, started)).exact == Decimal("1.10")
    assert state["anything"] == ["2024-02-29", None]
    assert state["text"] == "ä"


async def _state_text(stage: Stage, instance: int) -> str:
    [(text,)] = await stage.rows("select state::text from mutirao.closed where id = %s", instance)
    return str(text)


async def test_function_that_asks_for_its_job_gets_it(stage: Stage) -> None:
    seen: list[Job] = []

    class Asking(Once):
        @task(when="result is null", backoff=timedelta(0))
        def look(self, job: Job) -> Change:
            seen.append(job)
            if job.retries_used == 0:
                raise RuntimeError
            return {"result": "seen"}

    async with stage.working(Asking):
        started = await stage.engine.start(Asking())
        await stage.comes_to(started)
    first, second = seen
    assert (first.flow, first.task, first.instance_id, first.retries_used) == ("asking", "look", started, 0)
    assert (second.id, second.retries_used) == (first.id, 1)
    assert second.attempt > first.attempt


async def test_functions_bound_by_handles_do_jobs_of_a_flow_in_sql(stage: Stage) -> None:
    await stage.do("select mutirao.create_flow('travel')")
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("insert into travel.wed_attr (aname, adv) values ('a1', 'ready'), ('a2', null)")
        await connection.execute("insert into travel.wed_trig (trname, cpred) values ('tr_a2', 'a2 is null')")
        await connection.execute("insert into travel.wed_trig (cpred, cfinal) values ('a2 is not null', true)")

    @handles("travel", "tr_a2")
    def book(state: Mapping[str, Any]) -> Change:
        return {"a2": f"{state['a1']} and done"}

    async with stage.working(book):
        [(started,)] = await stage.rows("insert into travel.wed_flow default values returning wid")
        state = (await stage.comes_to(started)).state
    assert state == {"a1": "ready", "a2": "ready and done"}


async def test_one_worker_does_several_flows(stage: Stage) -> None:
    class First(Once):
        @task(when="result is null")
        async def work(self) -> Change:
            return {"result": "first"}

    class Second(Once):
        @task(when="result is null")
        def work(self) -> Change:
            return {"result": "second"}

    async with stage.working(First, Second):
        first, second = await stage.engine.start(First()), await stage.engine.start(Second())
        assert (await stage.comes_to(first)).state == {"result": "first"}
        assert (await stage.comes_to(second)).state == {"result": "second"}


async def test_worker_leaves_tasks_alone_that_it_has_no_function_for(stage: Stage) -> None:
    await stage.do("select mutirao.create_flow('shared')")
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("insert into shared.wed_attr (aname) values ('a'), ('b')")
        await connection.execute(
            "insert into shared.wed_trig (trname, cpred) values ('ta', 'a is null'), ('tb', 'b is null')"
        )
        await connection.execute("insert into shared.wed_trig (cpred, cfinal) values ('a = b', true)")

    @handles("shared", "ta")
    async def ours(_: Mapping[str, Any]) -> Change:
        return {"a": "done"}

    async with stage.working(ours):
        [(started,)] = await stage.rows("insert into shared.wed_flow default values returning wid")

        async def only_the_other_is_left() -> bool:
            return [(each.task, each.status) for each in await stage.engine.jobs(started)] == [("tb", "ready")]

        await until(only_the_other_is_left)


@pytest.mark.parametrize("wrong", ["travel:Travel", print, Once])
async def test_worker_refuses_what_is_no_flow(stage: Stage, wrong: object) -> None:
    with pytest.raises((FlowError, AttributeError)):
        async with stage.working(wrong):
            await stage.rows("select")


# ------------------------------------------------------------------------------------- what becomes of what they return


async def first_failure(stage: Stage, flow: type[Flow]) -> dict[str, Any]:
    """What is kept of the first attempt of the one task of this flow."""
    async with stage.working(flow):
        started = await stage.engine.start(flow())
        job = await stage.job_comes_to(started, "waiting")
    assert job.failures == 1
    assert job.error is not None
    assert (await stage.engine.trace(started))[-1].note == job.error
    return job.error


async def test_none_is_a_failed_attempt(stage: Stage) -> None:
    class Forgetful(Once):
        @task(when="result is null", backoff=FIVE_MINUTES)
        async def work(self) -> Change:
            return None  # type: ignore[return-value]

    error = await first_failure(stage, Forgetful)
    assert error["code"] == "returned_none"
    assert "return the change" in error["error"]


@pytest.mark.parametrize(
    ("returned", "code", "says"),
    [
        ({"reslut": "x"}, "unknown_attribute", 'has no attribute "reslut"'),
        ({"result": 5}, "wrong_type", 'attribute "result"'),
        ({"result": "a\0b"}, "wrong_type", 'attribute "result"'),
        ("done", "wrong_type", "got str"),
        (["result"], "wrong_type", "got list"),
    ],
)
async def test_wrong_change_is_a_failed_attempt_told_in_one_line(
    stage: Stage, returned: Any, code: str, says: str
) -> None:
    class Wrong(Once):
        @task(when="result is null", backoff=FIVE_MINUTES)
        def work(self) -> Change:
            return returned  # type: ignore[no-any-return]

    error = await first_failure(stage, Wrong)
    assert error["code"] == code
    assert says in error["error"]
    assert "\n" not in error["error"]
    assert "traceback" not in error


async def test_wrong_change_for_a_flow_in_sql_is_a_failed_attempt(stage: Stage) -> None:
    await stage.do("select mutirao.create_flow('plain')")
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("insert into plain.wed_attr (aname, atype) values ('n', 'integer')")
        await connection.execute("insert into plain.wed_trig (trname, cpred) values ('count', 'n is null')")
        await connection.execute("insert into plain.wed_trig (cpred, cfinal) values ('n > 1', true)")

    @handles("plain", "count")
    def count(_: Mapping[str, Any]) -> Change:
        return {"n": "many"}

    async with stage.working(count):
        [(started,)] = await stage.rows("insert into plain.wed_flow default values returning wid")
        job = await stage.job_comes_to(started, "waiting")
    assert job.error is not None
    assert job.error["code"] in ("wrong_type", "unknown_attribute")


# ------------------------------------------------------------------------------------------ what becomes of their errors


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
    assert all("test_worker_run.py" in frame for frame in frames)


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


# ------------------------------------------------------------------------------------------------------------- timeouts


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

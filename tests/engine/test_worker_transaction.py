"""Transactional tasks: what they do and the end of their job are committed together, or neither is."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection, Connection, Error
from worker_stage import Stage, happens, stage_on, until

from mutirao import Change, Failed, Flow, Job, RequestError, task
from mutirao.database.protocol import Line

FIVE_MINUTES = timedelta(minutes=5)


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with stage_on(database_url) as made:
        await made.do("create table payment (instance bigint, job bigint)")
        await made.do("grant insert on payment to public")
        yield made


async def payments(stage: Stage) -> int:
    [(count,)] = await stage.rows("select count(*) from payment")
    return int(count)


PAY = "insert into payment values (%s, %s)"


class Paid(Flow, abstract=True):
    paid: bool = False
    final = "paid"


class PaidAsync(Paid):
    @task(when="not paid", transactional=True)
    async def pay(self, job: Job, connection: AsyncConnection[Any]) -> Change:
        await connection.execute(PAY, [job.instance_id, job.id])
        return {"paid": True}


class PaidBlocking(Paid):
    @task(when="not paid", transactional=True)
    def pay(self, job: Job, connection: Connection[Any]) -> Change:
        connection.execute(PAY, [job.instance_id, job.id])
        return {"paid": True}


@pytest.mark.parametrize("flow", [PaidAsync, PaidBlocking])
async def test_work_and_end_of_the_job_are_one_commit(stage: Stage, flow: type[Paid]) -> None:
    async with stage.working(flow) as worker:
        started = await stage.engine.start(flow())
        await stage.comes_to(started)
        assert (worker.done, worker.failed) == (1, 0)
    together = await stage.rows(
        "select from payment p join mutirao.trace t on t.instance = p.instance and t.job = p.job and t.xmin = p.xmin"
    )
    assert len(together) == 1


@pytest.mark.parametrize("flow", [PaidAsync, PaidBlocking])
async def test_many_share_a_few_connections(stage: Stage, flow: type[Paid]) -> None:
    await stage.engine.apply(flow)
    await stage.engine.start_many([flow() for _ in range(60)])
    most = 0
    async with stage.working(flow, transactions=3):

        async def look() -> bool:
            nonlocal most
            found = await stage.rows(
                "select from pg_stat_activity where datname = current_database() and application_name like '%% transaction'"
            )
            most = max(most, len(found))
            return await payments(stage) == 60

        await until(look)
        await stage.all_close(flow.definition.name, 60)
    assert 1 <= most <= 4  # one may still be leaving


class Undone(Flow, abstract=True):
    paid: bool = False
    kind: str = "raise"
    final = "paid"


class UndoneAsync(Undone):
    @task(when="not paid", transactional=True, backoff=FIVE_MINUTES)
    async def pay(self, job: Job, connection: AsyncConnection[Any]) -> Change:
        await connection.execute(PAY, [job.instance_id, job.id])
        match self.kind:
            case "raise":
                raise RuntimeError("no money")
            case "none":
                return None  # type: ignore[return-value]
            case "wrong":
                return {"piad": True}
            case "sql":
                await connection.execute("select 1 / 0")
            case "swallow":
                with suppress(Error):  # that is the mistake
                    await connection.execute("select 1 / 0")
            case "commit":
                await connection.commit()
        return {"paid": True}


class UndoneBlocking(Undone):
    @task(when="not paid", transactional=True, backoff=FIVE_MINUTES)
    def pay(self, job: Job, connection: Connection[Any]) -> Change:
        connection.execute(PAY, [job.instance_id, job.id])
        match self.kind:
            case "raise":
                raise RuntimeError("no money")
            case "none":
                return None  # type: ignore[return-value]
            case "wrong":
                return {"piad": True}
            case "sql":
                connection.execute("select 1 / 0")
            case "swallow":
                with suppress(Error):  # that is the mistake
                    connection.execute("select 1 / 0")
            case "commit":
                connection.commit()
        return {"paid": True}


@pytest.mark.parametrize("flow", [UndoneAsync, UndoneBlocking])
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("raise", "RuntimeError"),
        ("none", "returned_none"),
        ("wrong", "unknown_attribute"),
        ("sql", "DivisionByZero"),
        ("swallow", "database_error"),
        ("commit", "ProgrammingError"),
    ],
)
async def test_what_fails_is_rolled_back(stage: Stage, flow: type[Undone], kind: str, code: str) -> None:
    async with stage.working(flow):
        started = await stage.engine.start(flow(kind=kind))
        job = await stage.job_comes_to(started, "waiting")
    assert job.error is not None
    assert job.error["code"] == code
    assert await payments(stage) == 0


async def test_failed_for_good_is_rolled_back(stage: Stage) -> None:
    class Hopeless(Paid):
        @task(when="not paid", transactional=True)
        async def pay(self, job: Job, connection: AsyncConnection[Any]) -> Change:
            await connection.execute(PAY, [job.instance_id, job.id])
            raise Failed("never")

    async with stage.working(Hopeless):
        started = await stage.engine.start(Hopeless())
        await stage.comes_to(started, "open.exception")
    assert await payments(stage) == 0


@pytest.mark.parametrize("is_async", [True, False])
async def test_parked_task_is_rolled_back_and_runs_again(stage: Stage, is_async: bool) -> None:
    """Its state would be final while the other job still runs: so it must wait for it, with its work undone."""
    go_on = asyncio.Event()
    calls: list[int] = []

    class Parting(Flow, abstract=True):
        paid: bool = False
        packed: bool = False
        final = "paid"

        @task(when="not packed")
        async def pack(self) -> Change:
            await go_on.wait()
            return {"packed": True}

    class PartingAsync(Parting):
        @task(when="not paid", transactional=True)
        async def pay(self, job: Job, connection: AsyncConnection[Any]) -> Change:
            calls.append(job.attempt)
            await connection.execute(PAY, [job.instance_id, job.id])
            return {"paid": True}

    class PartingBlocking(Parting):
        @task(when="not paid", transactional=True)
        def pay(self, job: Job, connection: Connection[Any]) -> Change:
            calls.append(job.attempt)
            connection.execute(PAY, [job.instance_id, job.id])
            return {"paid": True}

    flow = PartingAsync if is_async else PartingBlocking
    async with stage.working(flow):
        started = await stage.engine.start(flow())
        parked = await stage.job_comes_to(started, "parked")
        assert (parked.task, parked.failures) == ("pay", 0)
        assert await payments(stage) == 0
        go_on.set()
        await stage.comes_to(started)
    assert await payments(stage) == 1
    assert len(calls) == 2
    assert await stage.kinds(started) == ["start", "parked", "finish", "finish"]


class Parting(Flow):
    paid: bool = False
    packed: bool = False
    final = "paid"

    @task(when="not packed")
    async def pack(self) -> Change:
        return {"packed": True}

    @task(when="not paid", transactional=True)
    async def pay(self, job: Job, connection: AsyncConnection[Any]) -> Change:
        await connection.execute(PAY, [job.instance_id, job.id])
        return {"paid": True}


async def test_job_is_not_parked_behind_what_has_ended_meanwhile(stage: Stage) -> None:
    """Between the refusal of its change and its parking, the other job ends: nobody else would wake it."""
    await stage.engine.apply(Parting)
    started = await stage.engine.start(Parting())
    claimed = {}
    for name in ("pack", "pay"):
        [row] = await stage.rows(
            "select c.job, c.attempt from mutirao.task_ids('parting', array[%s]) t, mutirao.claim('ann', array[t.id]) c",
            name,
        )
        claimed[name] = row
    with pytest.raises(RequestError) as refusal:
        await stage.rows("select mutirao.complete_here(%s, %s, '{\"paid\": true}')", *claimed["pay"])
    assert refusal.value.code == "final_blocked"
    await stage.rows("select mutirao.complete(%s, %s, '{\"packed\": true}')", *claimed["pack"])
    await stage.rows('select mutirao.park_attempt(%s, %s, null, \'{"code": "final_blocked"}\')', *claimed["pay"])
    async with stage.working(Parting):
        await stage.comes_to(started)
    assert await payments(stage) == 1


async def test_job_whose_parking_fails_comes_back_with_the_end_of_its_lease(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()
    failing = asyncio.Event()
    park = Line.park

    async def park_badly(line: Line, *given: Any) -> None:
        if not failing.is_set():
            failing.set()
            await line.close()
            line.url, right = "postgresql://nobody@/nowhere?host=/nonexistent", line.url
            try:
                await park(line, *given)
            finally:
                line.url = right
        await park(line, *given)

    monkeypatch.setattr(Line, "park", park_badly)

    class Disturbed(Flow):
        paid: bool = False
        packed: bool = False
        final = "paid"

        @task(when="not packed")
        async def pack(self) -> Change:
            await go_on.wait()
            return {"packed": True}

        @task(when="not paid", transactional=True)
        async def pay(self, job: Job, connection: AsyncConnection[Any]) -> Change:
            await connection.execute(PAY, [job.instance_id, job.id])
            return {"paid": True}

    async with stage.working(Disturbed):
        started = await stage.engine.start(Disturbed())
        await happens(failing)
        go_on.set()
        await stage.advance(minutes=5)
        await stage.comes_to(started)
    assert await payments(stage) == 1


# ---------------------------------------------------------------------------------------------------------------- limits


async def test_transaction_that_takes_too_long_is_stopped(stage: Stage) -> None:
    class Endless(Paid):
        @task(when="not paid", transactional=True, backoff=FIVE_MINUTES)
        async def pay(self, job: Job, connection: AsyncConnection[Any]) -> Change:
            await connection.execute(PAY, [job.instance_id, job.id])
            await asyncio.Event().wait()
            return {"paid": True}

    async with stage.working(Endless, transaction_limit=timedelta(milliseconds=200)):
        started = await stage.engine.start(Endless())
        job = await stage.job_comes_to(started, "waiting")
    assert job.error is not None
    assert job.error["code"] == "timeout"
    assert "0.2 s" in job.error["error"]
    assert await payments(stage) == 0


async def test_blocking_transaction_that_returns_too_late_commits_nothing(stage: Stage) -> None:
    go_on = threading.Event()
    returned = threading.Event()

    class Late(Paid):
        @task(when="not paid", transactional=True, backoff=FIVE_MINUTES)
        def pay(self, job: Job, connection: Connection[Any]) -> Change:
            connection.execute(PAY, [job.instance_id, job.id])
            go_on.wait(30)
            returned.set()
            return {"paid": True}

    async with stage.working(Late, transaction_limit=timedelta(milliseconds=200)):
        started = await stage.engine.start(Late())
        await stage.job_comes_to(started, "waiting")
        go_on.set()
        await asyncio.to_thread(returned.wait, 30)
        await until(lambda: no_transaction_is_open(stage))
    assert await payments(stage) == 0
    assert await stage.kinds(started) == ["start", "retry"]


async def no_transaction_is_open(stage: Stage) -> bool:
    return not await stage.rows(
        "select from pg_stat_activity where datname = current_database() and application_name like '%% transaction'"
    )


async def test_shorter_timeout_of_the_task_counts(stage: Stage) -> None:
    class Endless(Paid):
        @task(when="not paid", transactional=True, timeout=timedelta(milliseconds=100), backoff=FIVE_MINUTES)
        async def pay(self) -> Change:
            await asyncio.Event().wait()
            return {"paid": True}

    async with stage.working(Endless):
        started = await stage.engine.start(Endless())
        job = await stage.job_comes_to(started, "waiting")
    assert job.error is not None
    assert job.error["error"] == "did not end within its timeout of 0.1 s"


# --------------------------------------------------------------------------------------------------------------- failures


async def test_transaction_whose_connection_breaks_uses_no_retry(stage: Stage) -> None:
    """Nobody knows whether it was committed; so it is the lease that decides, and it is done once."""
    calls: list[int] = []

    class Broken(Paid):
        @task(when="not paid", transactional=True, retries=0)
        async def pay(self, job: Job, connection: AsyncConnection[Any]) -> Change:
            await connection.execute(PAY, [job.instance_id, job.id])
            calls.append(job.retries_used)
            if len(calls) == 1:
                async with stage.engine.connection() as other:
                    await other.execute("select pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])
            return {"paid": True}

    async with stage.working(Broken) as worker:
        started = await stage.engine.start(Broken())
        await until(lambda: _truth(len(calls) == 1 and not worker.failed))
        await stage.advance(minutes=5)
        await stage.comes_to(started)
    assert calls == [0, 0]
    assert await payments(stage) == 1


async def _truth(holds: bool) -> bool:
    return holds


async def test_transaction_of_a_lost_lease_is_rolled_back(stage: Stage) -> None:
    go_on = threading.Event()
    calls: list[int] = []

    class Contested(Paid):
        @task(when="not paid", transactional=True)
        def pay(self, job: Job, connection: Connection[Any]) -> Change:
            connection.execute(PAY, [job.instance_id, job.id])
            calls.append(job.attempt)
            if len(calls) == 1:
                go_on.wait(30)
            return {"paid": True}

    async with stage.working(Contested, clock=False, concurrency=1):
        started = await stage.engine.start(Contested())
        await until(lambda: _truth(len(calls) == 1))
        async with stage.working(Contested, name="bob"):
            await stage.advance(minutes=5)
            await stage.comes_to(started)
        go_on.set()
        await until(lambda: no_transaction_is_open(stage))
    assert await payments(stage) == 1
    assert [row.attempt for row in await stage.engine.trace(started)] == [None, calls[1]]


async def test_a_blocking_function_that_timed_out_keeps_its_place_until_it_returns(stage: Stage) -> None:
    begun: list[int] = []
    go = threading.Event()

    class Stuck(Paid):
        @task(when="not paid", transactional=True, timeout=timedelta(milliseconds=100), retries=0)
        def pay(self, job: Job, connection: Connection[Any]) -> Change:
            connection.execute("select 1")
            begun.append(job.instance_id)
            go.wait()
            return {"paid": True}

    await stage.engine.apply(Stuck)
    async with stage.working(Stuck, transactions=1):
        first = await stage.engine.start(Stuck())
        await stage.comes_to(first, "open.exception")
        second = await stage.engine.start(Stuck())
        await stage.comes_to(second, "open.exception")  # its time ran out while it waited for the one place
        assert begun == [first]
        go.set()
        await stage.comes_to(await stage.engine.start(Stuck()))

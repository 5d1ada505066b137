"""What a worker tells: its log, its observers, and which job user code is inside of."""

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import prometheus_client
import pytest
from psycopg import AsyncConnection, Connection
from worker_stage import DEADLINE, Stage, fresh_stage, happens, until  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Engine, Failed, Flow, Job, task
from mutirao.errors import MutiraoError
from mutirao.language.handler import Handler
from mutirao.worker import Observer, Worker, WorkerOptions, current_job
from mutirao.worker.metrics import Metrics
from mutirao.worker.running import Outcome, Running

FIELDS = {"instance", "job", "task", "flow", "attempt", "worker"}


class Witness(Observer):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    async def prepare(self, engine: Engine, jobs: Sequence[Running]) -> None:
        self.seen.append(("prepare", engine.database, len(jobs)))

    def begins(self, running: Running) -> None:
        self.seen.append(("begins", running.handler.task, threading.current_thread().name))

    def ends(self, running: Running, outcome: Outcome | None) -> None:
        self.seen.append(("ends", running.handler.task, outcome is not None and outcome.error is None))

    def finished(self, running: Running, outcome: Outcome) -> None:
        self.seen.append(("finished", running.handler.task, outcome.error is None))

    def failed(self, handler: Handler, fate: str) -> None:
        self.seen.append(("failed", handler.task, fate))

    def parked(self, handler: Handler) -> None:
        self.seen.append(("parked", handler.task))

    def lost(self, handler: Handler) -> None:
        self.seen.append(("lost", handler.task))

    def called(self, call: str, seconds: float, error: MutiraoError | None) -> None:
        self.seen.append(("called", call, seconds > 0, error and error.code))

    def ticked(self, duty: str, done: int, next_in: float | None) -> None:
        self.seen.append(("ticked", duty, done, next_in))

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        return [each[1:] for each in self.seen if each[0] == kind]


async def hears(witness: Witness, *what: object) -> None:
    async def look() -> bool:
        return what in witness.seen

    await until(look)


class Shaky(Flow):
    """Fails as often as it is told to."""

    failures: int = 0
    stubborn: bool = False
    done: bool = False
    final = "done"

    @task(when="not done", retries=2, backoff=timedelta(milliseconds=1))
    async def work(self, job: Job) -> Change:
        if self.stubborn:
            raise Failed("of no use")
        if job.retries_used < self.failures:
            raise ConnectionError("not yet")
        return {"done": True}


# ------------------------------------------------------------------------------------------------------------------ logs


def told(caplog: pytest.LogCaptureFixture, words: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if words in record.getMessage()]


async def test_a_failure_to_be_tried_again_and_the_last_one_differ_in_level_and_words(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mutirao")
    async with stage.working(Shaky):
        instance = await stage.engine.start(Shaky(failures=9))
        await stage.comes_to(instance, "open.exception")
    [job] = [each for each in await stage.engine.jobs(instance) if each.task == "work"]
    again, last = told(caplog, "to be tried again"), told(caplog, "failed for good")
    assert [(each.levelname, each.getMessage()) for each in again] == [
        ("INFO", f"job {job.id} failed, try {number}, to be tried again: ConnectionError: not yet") for number in (1, 2)
    ]
    assert [(each.levelname, each.getMessage()) for each in last] == [
        ("ERROR", f"job {job.id} failed for good, try 3 was its last: ConnectionError: not yet")
    ]
    fields = {name: value for name, value in vars(last[0]).items() if name in FIELDS}
    assert fields.pop("attempt") > 0
    assert fields == {"instance": instance, "job": job.id, "task": "work", "flow": "shaky", "worker": "ann"}


async def test_a_job_that_says_failed_is_told_as_given_up_at_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage.working(Shaky):
        await stage.comes_to(await stage.engine.start(Shaky(stubborn=True)), "open.exception")
    assert [record.levelname for record in told(caplog, "failed for good, try 1 was its last")] == ["ERROR"]


class Careful(Flow):
    """Its first task has a contingency, its second rolls back."""

    final = "false"

    @task(stands_by=True)
    async def other_way(self) -> Change:
        return {}

    @task(when="true", fires="once", contingency=other_way)
    async def one_way(self) -> Change:
        raise Failed("closed")

    @task(depends=one_way, on_failure="roll_back")
    async def on(self) -> Change:
        raise Failed("far too far")


async def test_a_failure_that_the_flow_sees_to_is_told_with_what_happens_then(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mutirao")
    async with stage.working(Careful):
        await stage.comes_to(await stage.engine.start(Careful()), "closed.terminated")
    said = [record.getMessage().partition(", and ")[2] for record in told(caplog, "failed for good, and ")]
    assert said == [
        "its contingency takes its place: Failed: closed",
        "its instance is rolled back: Failed: far too far",
    ]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_job_that_goes_well_is_not_in_the_log(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mutirao")
    async with stage.working(Shaky):
        await stage.comes_to(await stage.engine.start(Shaky()))
    assert not [record for record in caplog.records if record.name.startswith("mutirao")]


async def test_a_task_that_holds_up_the_loop_is_named_while_it_does(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    class Rude(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        async def block(self) -> Change:
            give_up_at = time.monotonic() + DEADLINE
            while (
                not told(caplog, "held up") and time.monotonic() < give_up_at
            ):  # the loop is ours until somebody says so
                pass
            return {"done": True}

    async with stage.working(Rude):
        instance = await stage.engine.start(Rude())
        await stage.comes_to(instance)
    [warning] = told(caplog, "held up")
    assert f"(block of instance {instance}) at {__file__}:" in warning.getMessage()
    assert {name: value for name, value in vars(warning).items() if name in FIELDS - {"attempt", "job"}} == {
        "instance": instance,
        "task": "block",
        "flow": "rude",
        "worker": "ann",
    }


async def test_worker_whose_server_goes_away_while_it_learns_its_tasks_tries_again(
    stage: Stage, connection: AsyncConnection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    await stage.engine.apply(Shaky)
    instance = await stage.engine.start(Shaky())
    # What the engine has of connections is gone, and it does not know.
    await connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test' and datname = current_database()"
    )
    async with stage.working(Shaky):
        await stage.comes_to(instance)
    assert told(caplog, "waiting for the server: server_lost")


# ---------------------------------------------------------------------------------------------------- which job this is


async def test_user_code_knows_its_job_wherever_it_runs(stage: Stage) -> None:
    seen: dict[str, Job | None] = {}

    async def deep_down() -> Job | None:
        return current_job()

    class Places(Flow):
        a: bool = False
        b: bool = False
        c: bool = False
        d: bool = False
        final = "a and b and c and d"

        @task(when="not a")
        async def on_loop(self) -> Change:
            seen["on_loop"] = await asyncio.create_task(deep_down())
            return {"a": True}

        @task(when="not b")
        def in_thread(self) -> Change:
            seen["in_thread"] = current_job()
            return {"b": True}

        @task(when="not c", transactional=True)
        async def in_transaction(self, connection: AsyncConnection[Any]) -> Change:
            await connection.execute("select 1")
            seen["in_transaction"] = current_job()
            return {"c": True}

        @task(when="not d", transactional=True)
        def in_both(self, connection: Connection[Any]) -> Change:
            connection.execute("select 1")
            seen["in_both"] = current_job()
            return {"d": True}

    await stage.engine.apply(Places)
    async with stage.working(Places):
        instance = await stage.engine.start(Places())
        await stage.comes_to(instance)
    assert {name: job and (job.task, job.instance_id) for name, job in seen.items()} == {
        name: (name, instance) for name in ("on_loop", "in_thread", "in_transaction", "in_both")
    }
    assert current_job() is None


# ------------------------------------------------------------------------------------------------------------- observers


@pytest.fixture
async def witness() -> Witness:
    return Witness()


async def work_seen_by(witness: Observer, stage: Stage, *flows: object, **options: Any) -> Worker:
    return Worker(stage.engine, flows, WorkerOptions(**{"name": "ann", **options}), [witness])


async def test_observer_is_told_how_an_attempt_goes(stage: Stage, witness: Witness) -> None:
    worker = await work_seen_by(witness, stage, Shaky)
    working = asyncio.create_task(worker.run())
    await happens(worker.ready)
    await stage.comes_to(await stage.engine.start(Shaky(failures=1)))
    worker.stop()
    await working
    thread = threading.current_thread().name
    assert witness.of("begins") == [("work", thread)] * 2
    assert witness.of("ends") == [("work", False), ("work", True)]
    assert witness.of("finished") == [("work", False), ("work", True)]
    assert witness.of("failed") == [("work", "retried")]
    assert ("turn", True, None) in witness.of("called")
    assert ("connect", True, None) in witness.of("called")
    assert ("retries", 1) in [each[:2] for each in witness.of("ticked")]


async def test_observer_is_told_what_becomes_of_failures_also_with_a_cancelled_instance(
    stage: Stage, witness: Witness
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    class Doomed(Flow):
        done: bool = False
        final = "done"

        @task(when="not done")
        async def work(self) -> Change:
            begun.set()
            await go.wait()
            raise ConnectionError("in vain")

    worker = await work_seen_by(witness, stage, Doomed)
    working = asyncio.create_task(worker.run())
    await happens(worker.ready)
    instance = await stage.engine.start(Doomed())
    await happens(begun)
    await stage.engine.cancel(instance)
    go.set()
    await stage.comes_to(instance, "closed.aborted")
    await hears(witness, "failed", "work", "dropped")
    worker.stop()
    await working


async def test_observer_is_told_of_parked_jobs_and_lost_leases(stage: Stage, witness: Witness) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    class Pair(Flow):
        a: bool = False
        b: bool = False
        final = "a"

        @task(when="not a")
        async def early(self) -> Change:
            return {"a": True}

        @task(when="not b")
        async def late(self) -> Change:
            begun.set()
            await go.wait()
            return {"b": True}

    worker = await work_seen_by(witness, stage, Pair, lease=timedelta(seconds=1))
    working = asyncio.create_task(worker.run())
    await happens(worker.ready)
    instance = await stage.engine.start(Pair())
    await happens(begun)
    await hears(witness, "parked", "early")
    await stage.do("update mutirao.job set attempt = nextval('mutirao.attempt_number') where status = 'running'")
    await hears(witness, "lost", "late")
    go.set()
    worker.stop()
    await working
    assert ("late", False) in witness.of("ends")
    assert (await stage.engine.instance(instance)).is_open


async def test_jobs_go_on_when_an_observer_breaks(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Observer):
        async def prepare(self, engine: Engine, jobs: Sequence[Running]) -> None:
            raise ValueError(engine, jobs)

        def begins(self, running: Running) -> None:
            raise ValueError(running)

        def ends(self, running: Running, outcome: Outcome | None) -> None:
            raise ValueError(running, outcome)

    worker = await work_seen_by(Broken(), stage, Shaky)
    working = asyncio.create_task(worker.run())
    await happens(worker.ready)
    await stage.comes_to(await stage.engine.start(Shaky()))
    worker.stop()
    await working
    assert len(told(caplog, "Broken failed; the job goes on")) == 3


async def test_metrics_in_a_users_program_leave_its_registry_alone(stage: Stage) -> None:
    metrics = Metrics()
    worker = await work_seen_by(metrics, stage, Shaky)
    metrics.watch(stage.engine, worker)
    working = asyncio.create_task(worker.run())
    await happens(worker.ready)
    await stage.comes_to(await stage.engine.start(Shaky()))
    worker.stop()
    await working
    assert b"mutirao" not in prometheus_client.generate_latest()
    text, kind = await metrics.scrape()
    assert b'mutirao_attempts_total{flow="shaky",outcome="done",task="work"} 1.0' in text
    assert kind.startswith("text/plain")
    assert await metrics.problem() is None

"""What a worker or a clock does, and what waits in its databases, for Prometheus.

Counting is done in plain dictionaries, on the event loop alone; the library only writes them down when it is asked. What
waits is asked of the database with the scrape, in one query whose answer is kept for a while: the longer it took, the
longer. A registry of our own keeps out of the way of a program that has metrics itself.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mutirao.database.engine import Engine
from mutirao.errors import MutiraoError
from mutirao.language.handler import Handler
from mutirao.worker.backlog import Database, told_of_databases
from mutirao.worker.family import Labels, counter, gauge, histogram
from mutirao.worker.observer import Observer
from mutirao.worker.running import Outcome, Running
from mutirao.worker.timing import CALL_SECONDS, JOB_SECONDS, Timing
from mutirao.worker.worker import Worker

# A database that has not answered by then is not well.
_ANSWER_WITHIN = 3.0


class Metrics(Observer, Collector):
    """Give it to workers and clocks as an observer, and let it `watch` them; `scrape` is what Prometheus reads.

    `silence` is how many seconds may pass without an answer of the database before `problem` says so.
    """

    def __init__(self, silence: float = 60.0) -> None:
        self._silence = silence
        self._workers: list[Worker] = []
        self._databases: list[Database] = []
        self._attempts: Counter[Labels] = Counter()
        self._failures: Counter[Labels] = Counter()
        self._parked: Counter[Labels] = Counter()
        self._lost: Counter[Labels] = Counter()
        self._errors: Counter[Labels] = Counter()
        self._ticks: Counter[Labels] = Counter()
        self._late: dict[Labels, float] = {}
        self._jobs: dict[Labels, Timing] = {}
        self._calls: dict[Labels, Timing] = {}
        self._lag = Timing(CALL_SECONDS)
        self._answered_at = time.monotonic()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def watch(self, engine: Engine, worker: Worker | None = None) -> None:
        """Tell also of what waits in this database, and of this worker's room."""
        self._databases.append(Database(engine, self.called))
        if worker is not None:
            self._workers.append(worker)

    # What we hear

    def begins(self, running: Running) -> None:
        running.observed[self] = time.perf_counter()

    def ends(self, running: Running, outcome: Outcome | None) -> None:  # noqa: ARG002 the interface of the base class
        running.observed[self] -= time.perf_counter()

    def finished(self, running: Running, outcome: Outcome) -> None:
        handler = running.handler
        self._attempts[handler.flow, handler.task, "done" if outcome.error is None else "failed"] += 1
        seconds = running.observed.get(self, 0.0)
        if seconds < 0:  # else it has not come back: its time was over
            timing = self._jobs.get((handler.flow, handler.task))
            if timing is None:
                timing = self._jobs[handler.flow, handler.task] = Timing(JOB_SECONDS)
            timing.add(-seconds)

    def failed(self, handler: Handler, fate: str) -> None:
        self._failures[handler.flow, handler.task, fate] += 1

    def parked(self, handler: Handler) -> None:
        self._parked[handler.flow, handler.task] += 1

    def lost(self, handler: Handler) -> None:
        self._lost[handler.flow, handler.task] += 1

    def called(self, call: str, seconds: float, error: MutiraoError | None) -> None:
        self._calls.setdefault((call,), Timing(CALL_SECONDS)).add(seconds)
        if error is None:
            self._answered_at = time.monotonic()
        else:
            self._errors[call, error.code] += 1

    def ticked(self, duty: str, done: int, next_in: float | None) -> None:
        self._ticks[duty,] += done
        self._late[duty,] = max(0.0, -(next_in or 0.0))

    def lagged(self, seconds: float) -> None:
        self._lag.add(seconds)

    # What we tell

    async def scrape(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics, in the form that the reader accepts best; and the name of that form."""
        await asyncio.gather(*(each.refresh() for each in self._databases))
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    async def problem(self) -> str | None:
        """Why this process does no good at the moment, in one line; None if it does."""
        silent = time.monotonic() - self._answered_at
        if silent > self._silence:
            return f"the database has answered nothing that was asked of it for {silent:.0f} s"
        for each in self._databases:
            try:
                async with asyncio.timeout(_ANSWER_WITHIN):
                    await each.engine.ping()
            except MutiraoError as error:
                return str(error)
            except TimeoutError:
                return f"{each.engine} does not answer within {_ANSWER_WITHIN:g} s"
        return None

    def collect(self) -> Iterator[Metric]:
        task = ("flow", "task")
        yield counter("mutirao_attempts", "Attempts that ended here.", (*task, "outcome"), self._attempts)
        yield counter("mutirao_failures", "What became of failed attempts.", (*task, "fate"), self._failures)
        yield counter("mutirao_parked", "Jobs whose change had to wait.", task, self._parked)
        yield counter("mutirao_leases_lost", "Jobs that somebody else had by then.", task, self._lost)
        yield histogram("mutirao_job_seconds", "Time inside the task's function.", task, self._jobs)
        yield histogram("mutirao_database_seconds", "Time that calls of the database took.", ("call",), self._calls)
        yield counter(
            "mutirao_database_errors", "Calls that were refused or not answered.", ("call", "code"), self._errors
        )
        yield counter("mutirao_clock_done", "What a clock here has done.", ("duty",), self._ticks)
        yield gauge("mutirao_clock_late_seconds", "How late its next duty is.", ("duty",), self._late)
        yield histogram("mutirao_loop_lag_seconds", "How late the event loop comes back.", (), {(): self._lag})
        yield gauge("mutirao_slots", "Jobs that this process may have at once.", ("state",), self._slots())
        yield from told_of_databases(self._databases)

    def _slots(self) -> dict[Labels, float]:
        found = [worker.slots for worker in self._workers]
        used = sum(used for used, _ in found)
        return {("used",): used, ("free",): sum(size for _, size in found) - used}

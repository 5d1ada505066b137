"""What waits in a database, as metrics tell it: asked in one query, and not again for a while."""

import asyncio
import time
from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import Metric

from mutirao.database.engine import Engine
from mutirao.database.protocol import Called
from mutirao.database.record import Load
from mutirao.errors import MutiraoError, OperatorError
from mutirao.worker.family import Labels, gauge

_KEEP_SECONDS = 2.0
# Kept for so many times as long as it took, an answer costs the server two in a hundred of one core at most.
_KEEP_TIMES = 50
_ANSWER_WITHIN = 5.0


class Database:
    """`called` hears how long it took."""

    def __init__(self, engine: Engine, called: Called) -> None:
        self.engine = engine
        self.rows: Sequence[Load] = ()
        self.is_up = False
        self._called = called
        self._keep_until = 0.0
        self._asking = asyncio.Lock()

    async def refresh(self) -> None:
        async with self._asking:
            if time.monotonic() < self._keep_until:
                return
            began = time.monotonic()
            error: MutiraoError | None = None
            try:
                async with asyncio.timeout(_ANSWER_WITHIN):
                    self.rows = await self.engine.load()
            except MutiraoError as refused:
                error = refused
            except TimeoutError:
                error = OperatorError("server_unreachable", f"{self.engine} does not answer")
            took = time.monotonic() - began
            self._called("load", took, error)
            self.is_up = error is None
            if error is not None:
                self.rows = ()  # numbers of earlier would look like those of now
            self._keep_until = time.monotonic() + max(_KEEP_SECONDS, _KEEP_TIMES * took)


def told_of_databases(databases: Sequence[Database]) -> Iterator[Metric]:
    found: dict[str, dict[Labels, float]] = {name: {} for name in _GAUGES}
    for each in databases:
        name = each.engine.database
        found["mutirao_database_up"][name,] = each.is_up
        for row in each.rows:
            _sort(found, name, row)
    for name, (meaning, labels) in _GAUGES.items():
        yield gauge(name, meaning, ("database", *labels), found[name])


_GAUGES: dict[str, tuple[str, Sequence[str]]] = {
    "mutirao_database_up": ("Whether the database answered.", ()),
    "mutirao_jobs": ("Jobs that have not ended.", ("flow", "task", "status")),
    "mutirao_job_oldest_age_seconds": ("Age of the oldest job that is ready.", ("flow", "task")),
    "mutirao_exceptions_open": ("Instances that somebody must look at.", ("flow",)),
    "mutirao_instances_open": ("Instances that have not ended.", ("flow", "status")),
    "mutirao_overdue_seconds": ("How late the oldest thing is that a clock should have done.", ("what",)),
}


def _sort(found: dict[str, dict[Labels, float]], database: str, row: Load) -> None:
    match row.kind:
        case "jobs":
            found["mutirao_jobs"][database, row.flow, row.task, row.status] = row.count
            if row.seconds is not None:
                found["mutirao_job_oldest_age_seconds"][database, row.flow, row.task] = row.seconds
        case "exceptions":
            found["mutirao_exceptions_open"][database, row.flow] = row.count
        case "instances":
            found["mutirao_instances_open"][database, row.flow, row.status] = row.count
        case _:
            found["mutirao_overdue_seconds"][database, row.status] = row.seconds or 0.0

"""How the work goes and how its database is: for whoever looks after the engine, and cheap however much there is."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from mutirao.database import migrate
from mutirao.database.caller import Caller
from mutirao.database.sql import query

MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class MinutePace:
    """Attempts of workers in one minute, and the seconds that half of those that went well, and 95 in 100, took at most."""

    minute: datetime
    done: int
    failed: int
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class TaskPace:
    """The same of one task, over all the minutes."""

    flow: str
    task: str
    done: int
    failed: int
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Pace:
    """What workers did, minute by minute, the present one last; and task by task. What people do is not in it."""

    minutes: list[MinutePace]
    tasks: list[TaskPace]


@dataclass(frozen=True, slots=True)
class Queue:
    """What there is of a task for workers to do, each counted up to 10,000; `workers` that are alive do it.

    `oldest`: for how many seconds the oldest ready one has waited.
    """

    flow: str
    task: str
    ready: int
    running: int
    waiting: int
    stuck: int
    oldest: float | None
    workers: int
    done: int
    """In the last hour."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    server: str
    database: str
    bytes: int
    connections: int
    most_connections: int
    oldest_transaction: float | None
    """For how many seconds the oldest open transaction has been open, as far as we may know …"""
    oldest_of: str | None
    """… and the name that its program gave itself."""


@dataclass(frozen=True, slots=True)
class Health:
    """The database as it is now. `overdue`: by how many seconds clocks are late, by what they should have done."""

    facts: ServerFacts
    schema: int | None
    overdue: dict[str, float]


class HealthCalls(Caller):
    """The part of the engine that tells how things go."""

    async def pace(self, period: timedelta = timedelta(hours=1), *, by_task: bool = True) -> Pace:
        """How much workers did of late, and how long it took them; of an hour at most, or of a day by minute alone, which costs next to nothing."""
        minutes = await self._rows(MinutePace, "pace_by_minute", [period])
        return Pace(minutes, await self._rows(TaskPace, "pace_by_task", [period]) if by_task else [])

    async def queue(self) -> list[Queue]:
        """What waits for workers, task by task, and whether somebody does it: `backlog` counts all, and reads all."""
        return await self._rows(Queue, "queue", {"most": MOST_COUNTED})

    async def health(self) -> Health:
        [facts] = await self._rows(ServerFacts, "health", [])
        async with self.connection() as connection:
            overdue = dict(await (await connection.execute(query("overdue"))).fetchall())
            applied = (await migrate.status(connection)).applied
        return Health(facts, applied, overdue)

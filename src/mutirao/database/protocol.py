"""What a worker says to the database and hears from it: the functions of docs/worker-protocol.md, in Python.

One `Line` is one connection. Calls on it go one after another; a worker that wants two turns under way has two lines.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import msgspec
import psycopg
from psycopg.adapt import Buffer, Loader

from mutirao.database.array import numbers, texts
from mutirao.database.connection import connect, refusal_of
from mutirao.database.sql import query
from mutirao.errors import MutiraoError, OperatorError, RequestError

T = TypeVar("T")

# A look takes microseconds. One that takes this long is a condition gone wrong, and is found by trying job by job.
LOOK_LIMIT = timedelta(seconds=10)
# A clock has several duties, and none may keep the others waiting: where so many instances take longer, it takes fewer.
CLOCK_LIMIT = timedelta(seconds=1)
CLOCK_ROOM = 500


class Told(NamedTuple):
    """One row of an answer to `turn`: see the comment on the type mutirao.settled."""

    kind: str
    job: int
    attempt: int
    instance: int
    task: int
    failures: int
    timeout: float | None
    state: bytes
    note: bytes | None


class Done(NamedTuple):
    """How a job ended: by a change or by an error, each as JSON text. `postponed`: how often it was told `busy`.

    The database knows the rest. It is kept for whoever is told how the report went.
    """

    job: int
    attempt: int
    change: str | None
    error: str | None
    postponed: int = 0
    instance: int = 0
    task: int = 0
    failures: int = 0
    taken_at: float = 0.0
    """When we were told of it, by `time.monotonic`."""


class Tick(NamedTuple):
    """What came of one duty of a clock: how much was done, and in how many seconds there is something to do again."""

    done: int
    next_in: float | None


# Told of each call: its name, how many seconds it took, and the refusal if there was one.
Called = Callable[[str, float, MutiraoError | None], None]


class LookTooLong(RequestError):
    """A turn was stopped because some condition in it took too long."""


class _RawLoader(Loader):
    """JSON as it came: whoever knows the flow decodes it into types."""

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


class Line:
    """A worker's connection; made anew when it broke. Calls on it wait for one another; each of `called` hears of all."""

    def __init__(self, url: str, name: str, limit: timedelta | None = None, called: Sequence[Called] = ()) -> None:
        self.url = url
        self.name = name
        self._limit = limit or LOOK_LIMIT
        self._called = called
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._calling = asyncio.Lock()

    async def turn(
        self, worker: str, done: Sequence[Done], tasks: Sequence[int], room: int, lease: timedelta
    ) -> list[Told]:
        """End jobs and lease others in exchange. Raises `server_lost` when nobody knows whether it happened."""
        values = (
            worker,
            numbers([each.job for each in done]),
            numbers([each.attempt for each in done]),
            texts([each.change for each in done]),
            texts([each.error for each in done]),
            numbers(tasks),
            room,
            lease,
        )
        return [Told._make(row) for row in await self._call("turn", values, _refusal_of_turn)]

    async def renew(self, leased: Sequence[tuple[int, int]], lease: timedelta) -> list[int]:
        """Prolong the leases of these jobs and attempts; answers the attempts that have lost theirs."""
        values = (numbers(job for job, _ in leased), numbers(attempt for _, attempt in leased), lease)
        return [attempt for (attempt,) in await self._call("renew", values)]

    async def release(self, jobs: Sequence[int], attempts: Sequence[int]) -> None:
        await self._call("release", (list(jobs), list(attempts)))

    async def park(self, job: int, attempt: int, change: str | None, problem: str) -> None:
        await self._call("park", (job, attempt, change, problem))

    async def announce(self, worker: str, tasks: Sequence[int], host: str, program: str) -> None:
        await self._call("announce", (worker, numbers(tasks), host, program))

    async def note_pace(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        """Hand in what was done: how many seconds ago, of which task, how long it took, and how many of them."""
        await self._call("note_pace", [numbers(column) for column in zip(*rows, strict=True)])

    async def leave(self, worker: str) -> None:
        await self._call("leave", [worker])

    async def tick(self, duty: str, room: int) -> Tick:
        """One duty of a clock, for so many instances at most. Raises `LookTooLong` where they take too long together."""
        [(done, next_in)] = await self._call("turn_clock", (room, duty), _refusal_of_turn)
        return Tick(msgspec.json.decode(done)[duty] or 0, next_in)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _call(
        self, name: str, values: Sequence[Any], refusal: Callable[[psycopg.Error], MutiraoError] = refusal_of
    ) -> list[tuple[Any, ...]]:
        async with self._calling:
            connection = (
                await self._timed("connect", self._connect(), refusal_of) if self._is_closed else self._connection
            )
            return await self._timed(name, _rows(connection, name, values), refusal)

    async def _timed(self, name: str, call: Awaitable[T], refusal: Callable[[psycopg.Error], MutiraoError]) -> T:
        began = time.perf_counter()
        refused: MutiraoError | None = None
        try:
            return await call
        except psycopg.Error as error:
            refused = refusal(error)
            raise refused from error
        except MutiraoError as error:
            refused = error
            raise
        finally:
            for called in self._called:
                called(name, time.perf_counter() - began, refused)

    @property
    def _is_closed(self) -> bool:
        return self._connection is None or self._connection.closed

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        milliseconds = int(self._limit.total_seconds() * 1000)
        connection = await connect(
            self.url, application_name=self.name[:63], options=f"-c statement_timeout={milliseconds}"
        )
        connection.adapters.register_loader("jsonb", _RawLoader)
        connection.prepare_threshold = 0
        self._connection = connection
        return connection


async def _rows(connection: Any, name: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    found = await connection.execute(query(name), values)
    rows: list[tuple[Any, ...]] = await found.fetchall()
    return rows


def _refusal_of_turn(error: psycopg.Error) -> MutiraoError:
    """As elsewhere, but for one that the driver counts among lost connections: to send the same again does not help."""
    if isinstance(error, psycopg.errors.QueryCanceled):
        return LookTooLong("condition_failed", "a condition took longer than a look may take")
    return refusal_of(error)


class Backoff:
    """How long to wait before trying a lost server again: at once, then longer and longer, five seconds at most."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def reset(self) -> None:
        self._seconds = 0.0

    async def wait(self) -> None:
        await asyncio.sleep(self.next_pause())

    def next_pause(self) -> float:
        """For whoever waits by other means: this time so many seconds, and longer next time."""
        pause, self._seconds = self._seconds, min(max(0.05, self._seconds * 2), 5.0)
        return pause


TRY_AGAIN = "try_again"


def may_pass(error: MutiraoError) -> bool:
    """Whether the same call may well go through later: the server is away, or was too busy for it."""
    return is_lost(error) or error.code == TRY_AGAIN or isinstance(error, LookTooLong)


def is_lost(error: MutiraoError) -> bool:
    """Whether trying again on a new connection may help."""
    return isinstance(error, OperatorError) and error.code in ("server_lost", "server_unreachable")

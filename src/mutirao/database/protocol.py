"""What a worker says to the database and hears from it: the functions of docs/worker-protocol.md, in Python.

One `Line` is one connection. Calls on it go one after another; a worker that wants two turns under way has two lines.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import Buffer, Loader

from mutirao.database.connection import connect, refusal_of, refusals
from mutirao.database.sql import query
from mutirao.errors import MutiraoError, OperatorError

# A look takes microseconds. One that takes this long is a condition gone wrong, and is found by trying job by job.
LOOK_LIMIT = timedelta(seconds=10)


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
    """How a job ended: by a change or by an error, each as JSON text."""

    job: int
    attempt: int
    change: str | None
    error: str | None


class Ticked(NamedTuple):
    """What a clock did, and in how many seconds it has something to do again."""

    woken: int
    ended: int
    looked: int
    next_in: float | None


class LookTooLongError(MutiraoError):
    """A turn was stopped because some condition in it took too long."""


class _RawLoader(Loader):
    """JSON as it came: whoever knows the flow decodes it into types."""

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


class Line:
    """A worker's connection; made anew by `connected` when it broke."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def connected(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            milliseconds = int(LOOK_LIMIT.total_seconds() * 1000)
            connection = await connect(
                self._url, application_name=self._name[:63], options=f"-c statement_timeout={milliseconds}"
            )
            connection.adapters.register_loader("jsonb", _RawLoader)
            connection.prepare_threshold = 0
            self._connection = connection
        return self._connection

    async def turn(
        self, worker: str, done: Sequence[Done], tasks: Sequence[int], room: int, lease: timedelta
    ) -> list[Told]:
        """End jobs and lease others in exchange. Raises `server_lost` when nobody knows whether it happened."""
        values = (
            worker,
            [each.job for each in done],
            [each.attempt for each in done],
            [each.change for each in done],
            [each.error for each in done],
            list(tasks),
            room,
            lease,
        )
        try:
            found = await (await self.connected()).execute(query("turn"), values)
            return [Told._make(row) for row in await found.fetchall()]
        except psycopg.errors.QueryCanceled as error:
            raise LookTooLongError("condition_failed", "a condition took longer than a look may take") from error
        except psycopg.Error as error:
            raise refusal_of(error) from error

    async def renew(self, jobs: Sequence[int], attempts: Sequence[int], lease: timedelta) -> list[int]:
        """Prolong leases; answers the jobs whose lease is lost."""
        with refusals():
            found = await (await self.connected()).execute(query("renew"), (list(jobs), list(attempts), lease))
            return [job for (job,) in await found.fetchall()]

    async def release(self, jobs: Sequence[int], attempts: Sequence[int]) -> None:
        with refusals():
            await (await self.connected()).execute(query("release"), (list(jobs), list(attempts)))

    async def park(self, job: int, attempt: int, change: str | None, problem: str) -> None:
        with refusals():
            await (await self.connected()).execute(query("park"), (job, attempt, change, problem))

    async def tick(self) -> Ticked:
        with refusals():
            found = await (await self.connected()).execute(query("turn_clock"))
            row = await found.fetchone()
            return Ticked._make(row or (0, 0, 0, None))

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class Backoff:
    """How long to wait before trying a lost server again: at once, then longer and longer, five seconds at most."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def reset(self) -> None:
        self._seconds = 0.0

    async def wait(self) -> None:
        await asyncio.sleep(self._seconds)
        self._seconds = min(max(0.05, self._seconds * 2), 5.0)


def is_lost(error: MutiraoError) -> bool:
    """Whether trying again on a new connection may help."""
    return isinstance(error, OperatorError) and error.code in ("server_lost", "server_unreachable")

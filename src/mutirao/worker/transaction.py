"""Tasks that do their work in the job's own transaction: it and the job's end are committed together, or neither is.

The user's function gets a connection inside an open transaction; when it returns, the change is written in the same
transaction. Where the change may not be written now, the transaction is rolled back and the job is parked without one:
it will run again.
"""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import psycopg

from mutirao.database.connection import refusal_of
from mutirao.database.protocol import Line
from mutirao.database.sql import query
from mutirao.errors import LeaseLost, MutiraoError, RequestError
from mutirao.worker.running import RETURNED_NONE, Outcome, Running, failure, failure_of, outcome_of

LONGEST = timedelta(seconds=60)

_PARKING = ("final_blocked", "condition_failed")


class Transactions:
    """Runs transactional jobs, each on a connection of its own."""

    def __init__(self, url: str, line: Line, name: str) -> None:
        self._url = url
        self._line = line
        self._name = name

    async def run(self, running: Running) -> Outcome | None:
        """The outcome to report, or None when the database has it already."""
        limit = min(running.told.timeout or LONGEST.total_seconds(), LONGEST.total_seconds())
        try:
            async with asyncio.timeout(limit):
                if running.handler.is_async:
                    await self._run_async(running)
                else:
                    await asyncio.to_thread(self._run_blocking, running, limit)
        except TimeoutError:
            return failure(f"the transaction did not end within {limit:g} seconds", code="timeout")
        except LeaseLost:
            return None
        except MutiraoError as error:
            if error.code not in _PARKING:
                return failure_of(error)
            problem = msgspec.json.encode({"code": error.code, "error": error.message}).decode()
            await self._line.park(running.told.job, running.told.attempt, None, problem)
        except Exception as error:  # noqa: BLE001 whatever user code raises is its outcome
            return failure_of(error)
        return None

    async def _run_async(self, running: Running) -> None:
        opening = psycopg.AsyncConnection.connect(self._url, application_name=self._name[:63])
        async with await opening as connection, connection.transaction():
            ending = _ending(running, await running.call(connection))
            try:
                await connection.execute(query("complete_here"), ending)
            except psycopg.Error as error:
                raise refusal_of(error) from error

    def _run_blocking(self, running: Running, limit: float) -> None:
        # A thread cannot be stopped; the server can stop what it waits for.
        options = f"-c statement_timeout={int(limit * 1000)} -c idle_in_transaction_session_timeout={int(limit * 1000)}"
        opening = psycopg.Connection.connect(self._url, application_name=self._name[:63], options=options)
        with opening as connection, connection.transaction():
            ending = _ending(running, running.call(connection))
            try:
                connection.execute(query("complete_here"), ending)
            except psycopg.Error as error:
                raise refusal_of(error) from error


def _ending(running: Running, change: Any) -> tuple[int, int, str]:
    outcome = outcome_of(running, change)
    if outcome.change is None:
        raise RequestError("returned_none", RETURNED_NONE)
    return running.told.job, running.told.attempt, outcome.change

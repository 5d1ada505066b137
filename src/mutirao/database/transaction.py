"""The transaction of one job, for tasks that do their work in it: a connection for user code, and the job's end.

A `MutiraoError` with the code `server_unreachable` says that nothing has begun; any other comes from the transaction.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg

from mutirao.database.connection import connect, connect_blocking, refusals
from mutirao.database.sql import query

NOTHING_HAS_BEGUN = "server_unreachable"


@asynccontextmanager
async def transaction(url: str, **options: Any) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A connection of its own, in a transaction that is committed when the block ends, and closed."""
    connection = await connect(url, **options)
    with refusals():
        async with connection, connection.transaction():
            yield connection


@contextmanager
def blocking_transaction(url: str, **options: Any) -> Iterator[psycopg.Connection[Any]]:
    """The same for blocking functions."""
    connection = connect_blocking(url, **options)
    with refusals(), connection, connection.transaction():
        yield connection


async def end_job(connection: psycopg.AsyncConnection[Any], job: int, attempt: int, change: str) -> None:
    await connection.execute(query("complete_here"), (job, attempt, change))


def end_job_blocking(connection: psycopg.Connection[Any], job: int, attempt: int, change: str) -> None:
    connection.execute(query("complete_here"), (job, attempt, change))

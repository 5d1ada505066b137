"""Ways to bring two sessions to one place at one moment, without sleeping: open transactions, and a look at who waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from driver import Engine
from psycopg import AsyncConnection


@asynccontextmanager
async def session(engine: Engine) -> AsyncIterator[AsyncConnection[Any]]:
    """A session with a transaction open from its first statement to its commit. None of its statements may take long."""
    async with await AsyncConnection.connect(engine.url, options="-c statement_timeout=20s") as connected:
        yield connected


async def run(connected: AsyncConnection[Any], statement: str, *values: Any) -> list[Any]:
    found = await connected.execute(statement.encode(), values)
    return await found.fetchall() if found.description is not None else []


def running(connected: AsyncConnection[Any], statement: str, *values: Any) -> asyncio.Task[list[Any]]:
    return asyncio.create_task(run(connected, statement, *values))


async def until_it_waits(engine: Engine, connected: AsyncConnection[Any]) -> None:
    """Come back when that session stands before a lock that another one holds."""
    async with await AsyncConnection.connect(engine.url, autocommit=True) as watch:
        while not await run(watch, "select from pg_locks where pid = %s and not granted", connected.info.backend_pid):
            pass


async def at_once(engine: Engine, statement: str, *values: Any) -> list[Any]:
    """The answer to a statement that must not wait for anybody."""
    async with await AsyncConnection.connect(engine.url, autocommit=True, options="-c lock_timeout=1ms") as connected:
        return await run(connected, statement, *values)

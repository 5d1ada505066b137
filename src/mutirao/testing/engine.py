"""A whole engine for a test, thrown away afterwards, with a clock to move. Nothing is simulated: it is PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from mutirao.database.connection import connect
from mutirao.database.engine import Engine, read_exact_numbers
from mutirao.database.sql import query
from mutirao.testing.clock import advance
from mutirao.testing.database import throwaway_database


class LooseEngine(Engine):
    """An engine that need not be entered, and belongs to no event loop: it keeps connections for each that it meets.

    So one object does for whatever runs the test: pytest-asyncio, anyio, or a loop in another thread. `close` needs no
    loop at all: those of the test may be gone by then.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, upgrade=False, name="test")
        self.url = url
        self._idle: dict[asyncio.AbstractEventLoop, list[AsyncConnection[Any]]] = {}

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[AsyncConnection[Any]]:
        idle = self._idle.setdefault(asyncio.get_running_loop(), [])
        connection = idle.pop() if idle else await self._connect()
        try:
            yield connection
        finally:
            if connection.info.transaction_status == TransactionStatus.IDLE:
                idle.append(connection)
            else:
                await connection.close()

    async def _connect(self) -> AsyncConnection[Any]:
        connection = await connect(self.url, application_name=self.name)
        await read_exact_numbers(connection)
        return connection

    def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.pgconn.finish()
        self._idle.clear()


@asynccontextmanager
async def throwaway_engine() -> AsyncIterator[Engine]:
    """An engine on a database of its own, up to date and empty; gone when you leave. It takes a fraction of a second.

    The very first one on a machine takes some seconds, since the server and the template are made then. To have it
    quick for each test of many, keep `mutirao.testing.database.throwaway_server()` entered for the whole session.
    """
    async with throwaway_database() as url, Engine(url, upgrade=False, name="test") as engine:
        yield engine


async def move_clock(engine: Engine, by: timedelta) -> None:
    """Move the engine's time forward: retries, leases and deadlines that fall due by it are dealt with at once.

    The time of Python programs stays. So a worker still has its jobs inside user code, and may have lost their leases.
    """
    async with engine.connection() as connection:
        await advance(connection, by)
        # Clocks wait by real time for what they knew before: this makes them look.
        await connection.execute(query("call_clock"))

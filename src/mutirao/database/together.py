"""Several calls of an engine in one transaction: all of them, or none.

    async with engine.together():
        await engine.suspend(17)
        await engine.set(17, {"city": "Recife"})

Every call that the block makes, in whatever facade, uses its connection, and is undone alone when it is refused. The
calls go one after another: what runs beside the block in other tasks has connections of its own.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from psycopg import AsyncConnection

_joined: ContextVar[tuple[str, AsyncConnection[Any]] | None] = ContextVar("joined", default=None)


def joined(url: str) -> AsyncConnection[Any] | None:
    """The connection to this database of the block that we are in."""
    found = _joined.get()
    return found[1] if found is not None and found[0] == url else None


@asynccontextmanager
async def joining(url: str, connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    async with connection.transaction():
        token = _joined.set((url, connection))
        try:
            yield
        finally:
            _joined.reset(token)


@asynccontextmanager
async def part_of(connection: AsyncConnection[Any]) -> AsyncIterator[AsyncConnection[Any]]:
    """One call within the block: a savepoint of its own."""
    async with connection.transaction():
        yield connection

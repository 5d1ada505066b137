"""The connections of an engine. A server that was away is found again within seconds, however long it was away.

The driver's pool waits twice as long after each failure, for minutes: a server that was away for one would be found one
after its return. So it is allowed a few seconds, and begun again each time it gives up.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from mutirao.database.keepalive import parameters

Pool = AsyncConnectionPool[AsyncConnection[Any]]

_MOST = 8
_GIVES_UP_AFTER = 3.0

_knocking: set[asyncio.Task[None]] = set()  # the event loop itself would not keep them


def make_pool(
    url: str, name: str, patience: float, configure: Callable[[AsyncConnection[Any]], Awaitable[None]]
) -> Pool:
    """A pool yet to be opened. `patience` is how many seconds somebody waits for a connection."""
    return AsyncConnectionPool(
        url,
        min_size=1,
        max_size=_MOST,
        timeout=patience,
        open=False,
        configure=configure,
        reconnect_timeout=_GIVES_UP_AFTER,
        reconnect_failed=_knock_again,
        kwargs=parameters(url, autocommit=True, application_name=name[:63]),
    )


async def _knock_again(pool: Pool) -> None:
    """Whoever asks for a connection makes the pool try at once; those who wait already would wait in vain."""
    task = asyncio.create_task(_ask(pool))
    _knocking.add(task)
    task.add_done_callback(_knocking.discard)


async def _ask(pool: Pool) -> None:
    with suppress(PoolTimeout, PoolClosed):
        async with pool.connection(timeout=_GIVES_UP_AFTER):
            pass

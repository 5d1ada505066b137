"""Hears when jobs are ready. A notification is a hint: whoever listens also looks by itself now and then.

A listener survives: the first connection must succeed, a later one is tried again with growing pauses. While it was
deaf it may have missed something, so each new connection counts as a call for everybody.
"""

from collections.abc import Callable

import psycopg

from mutirao.database.connection import connect
from mutirao.database.protocol import Backoff, is_lost
from mutirao.database.sql import query
from mutirao.errors import MutiraoError

EVERYBODY = "*"


class Listener:
    """Calls `heard` with the payload of each notification: flow numbers with commas between, `clock`, or `*` for all.

    `listen` is the query that says to what: `listen_people` hears whose worklists and messages have changed.
    """

    def __init__(self, url: str, name: str, heard: Callable[[str], None], listen: str = "listen") -> None:
        self._url = url
        self._name = name
        self._heard = heard
        self._query = listen
        self._connection: psycopg.AsyncConnection[object] | None = None

    async def open(self) -> None:
        self._connection = await connect(self._url, application_name=self._name[:63])
        await self._connection.execute(query(self._query))

    async def run(self) -> None:
        """Listen until cancelled."""
        backoff = Backoff()
        while True:
            try:
                if self._connection is None or self._connection.closed:
                    await self.open()
                self._heard(EVERYBODY)
                await self._listen(backoff)
            except psycopg.Error:
                await self.close()
            except MutiraoError as error:
                if not is_lost(error):
                    raise
            await backoff.wait()

    async def _listen(self, backoff: Backoff) -> None:
        if self._connection is not None:
            async for notification in self._connection.notifies():
                backoff.reset()
                self._heard(notification.payload)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

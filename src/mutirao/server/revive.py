"""When the database was lost: an embedded server that was killed is started again, and dead connections are let go."""

import asyncio
from contextlib import suppress

from mutirao.database.engine import Engine
from mutirao.errors import MutiraoError


class Reviver:
    """One attempt at a time, beside the requests that meet the loss."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._attempt: asyncio.Task[None] | None = None

    def call(self) -> None:
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.create_task(self._revive())

    async def _revive(self) -> None:
        with suppress(MutiraoError):  # whoever asks next is told so
            await self._engine.revive()

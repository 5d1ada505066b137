"""Time: due retries, ended leases, instances behind their version. Any number of clocks share the work."""

import asyncio
import logging
from contextlib import suppress

from mutirao.database.engine import Engine
from mutirao.database.listener import Listener
from mutirao.database.protocol import Backoff, Line, Ticked, is_lost
from mutirao.errors import MutiraoError, OperatorError

log = logging.getLogger(__name__)

# Never longer than this between two looks: another clock may have vanished with what it had taken.
_LONGEST = 1.0
# Never shorter: what falls due within it goes in one batch.
_SHORTEST = 0.02


class Clock:
    """Turns until stopped. A hint from the database tells it when something falls due earlier than it knew."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._hint = asyncio.Event()
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True
        self._hint.set()

    def hear(self, payload: str) -> None:
        if payload in ("clock", "*"):
            self._hint.set()

    async def run(self, *, listen: bool = True) -> None:
        """Turn until `stop`. A worker with a listener of its own passes on what it hears and says listen=False."""
        name = f"{self._engine.name} clock"
        listener = Listener(self._engine.url, name, self.hear)
        listening = asyncio.create_task(listener.run()) if listen else None
        line = Line(self._engine.url, name)
        try:
            await self._turn_until_stopped(line)
        finally:
            if listening is not None:
                listening.cancel()
            await listener.close()
            await line.close()

    async def _turn_until_stopped(self, line: Line) -> None:
        backoff = Backoff()
        while not self._stopping:
            try:
                ticked = await line.tick()
                backoff.reset()
                await self._pause(ticked)
            except MutiraoError as error:
                if not is_lost(error) and isinstance(error, OperatorError):
                    raise
                log.warning("the clock tries again: %s", error)
                await backoff.wait()
                await self._engine.revive()

    async def _pause(self, ticked: Ticked) -> None:
        seconds = _LONGEST if ticked.next_in is None else min(max(ticked.next_in, _SHORTEST), _LONGEST)
        # A hint says that something new falls due, not that it is due: the next turn tells when.
        with suppress(TimeoutError):
            # Not wait_for: up to Python 3.11 it loses a cancellation that comes together with the event.
            async with asyncio.timeout(seconds):
                await self._hint.wait()
        self._hint.clear()

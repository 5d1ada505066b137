"""Time: due retries, ended leases, instances behind their version, batches, starts. Any number of clocks share the work."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from mutirao.database.engine import Engine
from mutirao.database.listener import Listener
from mutirao.database.protocol import CLOCK_LIMIT, CLOCK_ROOM, Backoff, Line, is_lost
from mutirao.errors import MutiraoError, OperatorError, RequestError
from mutirao.worker.observer import Observer

log = logging.getLogger(__name__)

# What turn_clock does, by name. None keeps the others from being done.
_DUTIES = (
    "retries",
    "leases",
    "versions",
    "waits",
    "alarms",
    "gates",
    "limits",
    "batches",
    "workers",
    "starts",
    "children",
    "deadlines",
    "messages",
    "retention",
    "schedules",
    "access",
    "files",
    "items",
    "views",
    "answers",
)
# Never longer than this between two looks: another clock may have vanished with what it had taken.
_LONGEST = 1.0
# Never shorter: what falls due within it goes in one batch.
_SHORTEST = 0.02


class Clock:
    """Turns until stopped. A hint from the database tells it when something falls due earlier than it knew."""

    def __init__(self, engine: Engine, observers: Sequence[Observer] = ()) -> None:
        self._engine = engine
        self._observers = observers
        self._hint = asyncio.Event()
        self._stopping = False
        self._rooms = dict.fromkeys(_DUTIES, CLOCK_ROOM)

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
        line = Line(self._engine.url, name, CLOCK_LIMIT, [each.called for each in self._observers])
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
                next_in = await self.turn(line)
                backoff.reset()
                await self._pause(next_in)
            except MutiraoError as error:
                if not is_lost(error) and isinstance(error, OperatorError):
                    raise
                log.warning("the clock tries again: %s", error, extra={"worker": self._engine.name})
                await backoff.wait()
                await self._engine.revive()

    async def turn(self, line: Line) -> float:
        """Every duty, each in a transaction of its own; answers in how many seconds there is something to do again."""
        next_in = _LONGEST
        for duty in _DUTIES:
            try:
                done, due_in = await line.tick(duty, self._rooms[duty])
            except RequestError as error:
                log.warning("%s of up to %s instances, once more with fewer: %s", duty, self._rooms[duty], error)
                self._rooms[duty] = max(1, self._rooms[duty] // 2)
                again_in = _LONGEST if self._rooms[duty] == 1 else 0.0
            else:
                for observer in self._observers:
                    observer.ticked(duty, done, due_in)
                self._rooms[duty] = min(CLOCK_ROOM, self._rooms[duty] * 2)
                again_in = _LONGEST if due_in is None else due_in
            next_in = min(next_in, again_in)
        return next_in

    async def _pause(self, next_in: float) -> None:
        seconds = max(next_in, _SHORTEST)
        # A hint says that something new falls due, not that it is due: the next turn tells when.
        with suppress(TimeoutError):
            # Not wait_for: up to Python 3.11 it loses a cancellation that comes together with the event.
            async with asyncio.timeout(seconds):
                await self._hint.wait()
        self._hint.clear()

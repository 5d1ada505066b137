"""Programs that run until told to stop: the signals and the exit code.

The first SIGTERM or Ctrl-C lets them finish what runs, the second ends them at once. Whichever of them raises takes the
others with it: half a program is worse than none, since nobody would notice.
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

from mutirao.cli.session import StoppedAtOnce, run

_SIGNALED = 128  # what shells add to a signal's number
_GRACE = 3.0  # how long "at once" may take: to give jobs back, when there is a server to give them to


class Service(Protocol):
    async def run(self) -> None: ...
    def stop(self) -> None: ...


def run_service(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a program that will `serve`. Told to stop before it does, it has nothing to finish, and ends well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    run(coroutine)


async def serve(services: Sequence[Service], say: Callable[[str], None]) -> None:
    """Run them side by side until they have stopped; `say` is where people are told that they are stopping."""
    _settle()
    crew = _Crew(services, say)
    await crew.run()
    if crew.is_stopped_at_once:
        raise StoppedAtOnce(_SIGNALED + crew.signals[-1])


def _settle() -> None:
    """What is loaded by now stays until the end: looking through it for garbage would stop us for 70 ms, again and again."""
    gc.collect()
    gc.freeze()


class _Crew:
    def __init__(self, services: Sequence[Service], say: Callable[[str], None]) -> None:
        self._services = services
        self._say = say
        self._running: list[asyncio.Task[None]] = []
        self.signals: list[int] = []

    @property
    def is_stopped_at_once(self) -> bool:
        return len(self.signals) > 1

    async def run(self) -> None:
        self._running = [asyncio.create_task(service.run()) for service in self._services]
        try:
            with self._hearing_signals():
                await self._run_all_or_none()
        finally:
            self._cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _run_all_or_none(self) -> None:
        ended, others = await asyncio.wait(self._running, return_when=asyncio.FIRST_EXCEPTION)
        failed = [error for task in ended if not task.cancelled() and (error := task.exception()) is not None]
        if failed:
            self._stop()
            self._stop()  # at once: what they need to finish may be just what failed
            if others:
                await asyncio.wait(others, timeout=_GRACE)
            raise failed[0]

    @contextmanager
    def _hearing_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._hear, number)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _hear(self, number: int) -> None:
        self.signals.append(number)
        self._stop()
        if self.is_stopped_at_once:
            asyncio.get_running_loop().call_later(_GRACE, self._cancel)
        else:
            self._say("Stopping: what runs may finish. Once more to stop at once.")

    def _stop(self) -> None:
        for service in self._services:
            service.stop()

    def _cancel(self) -> None:
        for task in self._running:
            task.cancel()


async def is_set_within(event: asyncio.Event, time: timedelta) -> bool:
    """Wait for the event, but no longer than that."""
    try:
        async with asyncio.timeout(time.total_seconds()):
            await event.wait()
    except TimeoutError:
        return False
    return True

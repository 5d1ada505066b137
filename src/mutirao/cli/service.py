"""Programs that run until told to stop: the signals, the exit code, the log.

The first SIGTERM or Ctrl-C lets them finish what runs, the second ends them at once. Whichever of them raises takes the
others with it: half a program is worse than none, since nobody would notice.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from rich.text import Text

from mutirao.cli.output import progress

_SIGNALED = 128  # what shells add to a signal's number


class Service(Protocol):
    async def run(self) -> None: ...
    def stop(self) -> None: ...


async def serve(services: Sequence[Service]) -> None:
    """Run them side by side until they have stopped."""
    running = [asyncio.create_task(service.run()) for service in services]
    try:
        with _stopping_by_signal(services) as signals:
            await _all_or_none(running, services)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    if len(signals) > 1:
        sys.exit(_SIGNALED + signals[-1])


async def _all_or_none(running: Sequence[asyncio.Task[None]], services: Sequence[Service]) -> None:
    ended, others = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
    failed = [error for task in ended if (error := task.exception()) is not None]
    if failed:
        for service in services:
            service.stop()
            service.stop()  # at once: what they need to finish may be just what failed
        if others:
            await asyncio.wait(others)
        raise failed[0]


async def is_set_within(event: asyncio.Event, time: timedelta) -> bool:
    """Wait for the event, but no longer than that."""
    try:
        await asyncio.wait_for(event.wait(), time.total_seconds())
    except TimeoutError:
        return False
    return True


@contextmanager
def _stopping_by_signal(services: Sequence[Service]) -> Iterator[list[int]]:
    """The signals that have come, in order."""
    loop = asyncio.get_running_loop()
    come: list[int] = []

    def stop(number: int) -> None:
        come.append(number)
        if len(come) == 1:
            progress.print("Stopping: what runs may finish. Once more to stop at once.", style="dim")
        for service in services:
            service.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        yield come
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


class OneLineFormatter(logging.Formatter):
    """An exception is told by its type and message: a log has one line for one event."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{self.formatTime(record)} {record.levelname.lower()} {record.getMessage()}"
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line += f": {type(error).__name__}: {error}"
        return " ".join(line.split())


class _ConsoleHandler(logging.Handler):
    """Through rich, so that lines go above a live display and not into it."""

    def emit(self, record: logging.LogRecord) -> None:
        style = {logging.WARNING: "yellow", logging.INFO: "dim"}.get(record.levelno, "red")
        progress.print(Text(self.format(record), style if progress.is_terminal else ""), soft_wrap=True)


def log_to_console() -> None:
    handler = _ConsoleHandler()
    handler.setFormatter(OneLineFormatter())
    logger = logging.getLogger("mutirao")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    quiet_pool()


def quiet_pool() -> None:
    """The pool warns of each connection that it loses; whoever needed it is told by an error of ours."""
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)

"""The engine for programs without an event loop: one bridge, instead of a second copy of everything.

    with blocking_engine() as (engine, wait):
        number = wait(engine.start(Travel(city="Recife")))

The engine's loop runs in a thread of its own, so `wait` may be called from any number of threads.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from mutirao.database.engine import Engine

T = TypeVar("T")


class Wait(Protocol):
    """Waits for what a method of the engine gives."""

    def __call__(self, awaited: Coroutine[Any, Any, T], /) -> T: ...


@contextmanager
def blocking_engine(database: str | None = None, *, upgrade: bool | None = None) -> Iterator[tuple[Engine, Wait]]:
    """An engine, and the function that waits for its answers."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="mutirao-engine", daemon=True)
    thread.start()

    def wait(awaited: Coroutine[Any, Any, T], /) -> T:
        return asyncio.run_coroutine_threadsafe(awaited, loop).result()

    engine = Engine(database, upgrade=upgrade)
    try:
        wait(engine.__aenter__())
        try:
            yield engine, wait
        finally:
            wait(engine.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

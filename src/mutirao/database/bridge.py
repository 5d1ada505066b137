"""The engine for programs without an event loop: one bridge, instead of a second copy of everything.

    with blocking_engine() as (engine, wait):
        number = wait(engine.start(Travel(city="Recife")))

The engine's loop runs in a thread of its own, so `wait` may be called from any number of threads.
"""

import asyncio
import threading
from collections.abc import Awaitable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

from mutirao.database.engine import Engine

T = TypeVar("T")


class Wait:
    """Waits for what a method of the engine gives: `wait(engine.start(…))`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self, awaited: Awaitable[T], /) -> T:
        return asyncio.run_coroutine_threadsafe(_awaiting(awaited), self._loop).result()

    @contextmanager
    def inside(self, entered: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """What `async with` is elsewhere: `with wait.inside(engine.connection()) as connection`."""
        result = self(entered.__aenter__())
        try:
            yield result
        except BaseException as error:
            if not self(entered.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self(entered.__aexit__(None, None, None))


async def _awaiting(awaited: Awaitable[T]) -> T:
    return await awaited


@contextmanager
def loop_beside() -> Iterator[Wait]:
    """An event loop in a thread of its own, and the function that waits for what is awaited there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="mutirao-engine", daemon=True)
    thread.start()
    try:
        yield Wait(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def blocking_engine(database: str | None = None, *, upgrade: bool | None = None) -> Iterator[tuple[Engine, Wait]]:
    """An engine, and the function that waits for its answers."""
    with loop_beside() as wait, wait.inside(Engine(database, upgrade=upgrade)) as engine:
        yield engine, wait

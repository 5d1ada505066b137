"""Workers at work in the test's own process, on a database of the test's own."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from mutirao.database.engine import Engine
from mutirao.database.record import Instance, JobRecord
from mutirao.testing import move_clock
from mutirao.worker import Worker, WorkerOptions

T = TypeVar("T")

HOUR = timedelta(hours=1)
# What a loaded machine may need; a test that is right never waits for it.
DEADLINE = 30.0


async def until(look: Callable[[], Awaitable[T | None]]) -> T:
    """What `look` gives, as soon as it is something."""
    give_up_at = time.monotonic() + DEADLINE
    while not (found := await look()):
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"still {found!r} after {DEADLINE:g} s")
        await asyncio.sleep(0.01)
    return found


async def happens(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), DEADLINE)


class Stage:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @asynccontextmanager
    async def working(self, *flows: object, **options: Any) -> AsyncIterator[Worker]:
        """A worker that works meanwhile. It polls once an hour: what it does, it does because it was told."""
        worker = Worker(self.engine, flows, WorkerOptions(**{"name": "ann", "poll": HOUR, **options}))
        running = asyncio.create_task(worker.run())
        ready = asyncio.create_task(worker.ready.wait())
        try:
            await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                yield worker
        finally:
            ready.cancel()
            worker.stop()
            await asyncio.wait_for(running, DEADLINE)

    async def rows(self, query: str, *values: Any) -> list[Any]:
        async with self.engine.connection() as connection:
            return await (await connection.execute(query.encode(), values)).fetchall()

    async def do(self, statement: str, *values: Any) -> None:
        async with self.engine.connection() as connection:
            await connection.execute(statement.encode(), values)

    async def advance(self, **by: float) -> None:
        await move_clock(self.engine, timedelta(**by))

    async def comes_to(self, instance: int, status: str = "closed.completed") -> Instance:
        """The instance, once it has this status."""

        async def look() -> Instance | None:
            found = await self.engine.instance(instance)
            return found if found.status == status else None

        return await until(look)

    async def job_comes_to(self, instance: int, status: str) -> JobRecord:
        """The instance's first job that has this status."""

        async def look() -> JobRecord | None:
            found = await self.engine.jobs(instance, status=status)
            return found[0] if found else None

        return await until(look)

    async def all_close(self, flow: str, count: int) -> None:
        """Wait until so many instances of the flow have ended."""

        async def look() -> bool:
            [found] = await self.engine.flows(flow)
            return found.closed == count

        try:
            await until(look)
        except TimeoutError as error:
            error.add_note(f"{await self.engine.flows(flow)}, {await self.engine.backlog()}")
            raise

    async def kinds(self, instance: int) -> list[str]:
        return [row.kind for row in await self.engine.trace(instance)]


@asynccontextmanager
async def stage_on(url: str) -> AsyncIterator[Stage]:
    async with Engine(url, upgrade=False, name="test") as engine:
        yield Stage(engine)


@pytest.fixture(name="stage")
async def fresh_stage(database_url: str) -> AsyncIterator[Stage]:
    async with stage_on(database_url) as made:
        yield made

"""A clock that turns beside a test of pages: it drives batches, and looks again at circles of waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from page_kit import Place

from mutirao.worker import Clock


@asynccontextmanager
async def clock(place: Place) -> AsyncIterator[None]:
    turning = Clock(place.engine)
    task = asyncio.create_task(turning.run())
    try:
        yield
    finally:
        turning.stop()
        await task

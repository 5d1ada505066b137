"""Databases made ahead: while a test uses one, the next is made. Cloning is most of what a short test would wait for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Self

from mutirao.testing.database import Cloner


class ClonedAhead(AbstractAsyncContextManager["ClonedAhead"]):
    """Belongs to one event loop, that of a session. Left, it drops what nobody took."""

    def __init__(self, cloner: Cloner) -> None:
        self._cloner = cloner
        self._next: asyncio.Task[tuple[AsyncExitStack, str]] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._next is not None:
            stack, _ = await self._next
            await stack.aclose()

    @asynccontextmanager
    async def clone(self) -> AsyncIterator[str]:
        """As with the cloner itself: dropped when left."""
        making, self._next = self._next, None
        stack, url = await (making or self._make())
        async with stack:
            self._next = asyncio.create_task(self._make())
            yield url

    async def _make(self) -> tuple[AsyncExitStack, str]:
        stack = AsyncExitStack()
        return stack, await stack.enter_async_context(self._cloner.clone())

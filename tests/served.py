"""A real server on a real database, and clients for the persons who work there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import httpx

from mutirao.database.engine import Engine
from mutirao.people import add_token, set_password
from mutirao.server.client import Client
from mutirao.server.options import PATIENCE, ServerOptions
from mutirao.server.service import Server

S = TypeVar("S", bound="Served")

PASSWORD = "correct horse battery"


class Served:
    """One server; `client("clerk_1")` asks as that person, by a token."""

    def __init__(self, engine: Engine, server: Server, stack: AsyncExitStack) -> None:
        self.engine = engine
        self.server = server
        self.url = server.url
        self._stack = stack
        self._tokens: dict[str, str] = {}

    async def token(self, person: str) -> str:
        if person not in self._tokens:
            made = await add_token(self.engine, None, person, f"test {len(self._tokens)} {id(self)}")
            self._tokens[person] = made.secret
        return self._tokens[person]

    async def client(self, person: str) -> Client:
        return await self._stack.enter_async_context(Client(self.url, token=await self.token(person)))

    async def browser(self, person: str | None = None) -> Client:
        """Somebody who signs in, as people do."""
        client = await self._stack.enter_async_context(Client(self.url))
        if person is not None:
            await set_password(self.engine, None, person, PASSWORD)
            await client.sessions.sign_in(person, PASSWORD)
        return client

    async def http(self, person: str | None = None, **options: Any) -> httpx.AsyncClient:
        """Without the client's good manners."""
        headers = {"Authorization": f"Bearer {await self.token(person)}"} if person else {}
        client = httpx.AsyncClient(base_url=self.url, headers={**headers, **options.pop("headers", {})}, **options)
        return await self._stack.enter_async_context(client)


@asynccontextmanager
async def site_on(url: str, kind: type[S], **options: Any) -> AsyncIterator[S]:
    """A server on this database, until the block ends. There may be another one later: nothing is kept in it."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine(url, upgrade=False, name="server", patience=PATIENCE))
        server = Server(engine, ServerOptions(port=0, **options))
        running = asyncio.create_task(server.run())
        stack.push_async_callback(_ended, server, running)
        yield kind(engine, server, stack)


async def _ended(server: Server, running: "asyncio.Task[None]") -> None:
    server.stop()
    await running

"""A real server on a real database, and clients for the persons who work there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from mutirao.database.engine import Engine
from mutirao.errors import MutiraoError
from mutirao.model import Attribute, Definition, Offer, Task
from mutirao.people import add_token, set_password
from mutirao.server.client import Client
from mutirao.server.options import PATIENCE, ServerOptions
from mutirao.server.service import Server
from mutirao.testing.database import TestServer

PASSWORD = "correct horse battery"

REQUEST = Definition(
    name="request",
    creator="clerk",
    attributes=(Attribute("city", "text", searchable=True), Attribute("answer", "text"), Attribute("amount", "number")),
    tasks=(Task(name="approve", when="answer is null", offer=Offer(role="clerk"), outputs=("answer",)),),
    final="answer is not null",
)
"""Whoever is in the role clerk creates it, and one of them answers it."""

PEOPLE = {"boss": ("administrator",), "clerk_1": ("clerk",), "clerk_2": ("clerk",), "outsider": ()}


class Site:
    """One server; `client("clerk_1")` asks as that person, by a token."""

    def __init__(self, engine: Engine, server: Server, stack: AsyncExitStack) -> None:
        self.engine = engine
        self.server = server
        self.url = server.url
        self._stack = stack
        self._tokens: dict[str, str] = {}

    async def token(self, person: str) -> str:
        if person not in self._tokens:
            made = await add_token(self.engine, None, person, f"test {len(self._tokens)}")
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

    async def item(self, **state: Any) -> tuple[int, int]:
        """An instance of `request` that clerk_1 is in charge of, and its item."""
        client = await self.client("clerk_1")
        instance = await client.instances.create("request", state)
        [job] = [job async for job in client.instances.jobs(instance.id)]
        return instance.id, job.id


@asynccontextmanager
async def serving(url: str, **options: Any) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine(url, upgrade=False, name="server", patience=PATIENCE))
        await engine.roles.add(None, "clerk")
        for name, roles in PEOPLE.items():
            await engine.persons.add(None, name, roles=roles)
        await engine.apply(REQUEST)
        server = Server(engine, ServerOptions(port=0, **options))
        running = asyncio.create_task(server.run())
        stack.push_async_callback(_ended, server, running)
        yield Site(engine, server, stack)


async def _ended(server: Server, running: "asyncio.Task[None]") -> None:
    server.stop()
    await running


class Refusal:
    """What a block was refused with."""

    error: MutiraoError


@asynccontextmanager
async def refused(code: str, status: int, says: str = "") -> AsyncIterator[Refusal]:
    """The block is refused with this code and HTTP status."""
    found = Refusal()
    with pytest.raises(MutiraoError) as caught:
        yield found
    found.error = caught.value
    assert (caught.value.code, caught.value.details.get("status")) == (code, status), str(caught.value)
    assert says in caught.value.message


@pytest.fixture(name="site")
async def fresh_site(database_url: str) -> AsyncIterator[Site]:
    """On each PostgreSQL in turn."""
    async with serving(database_url) as served:
        yield served


@pytest.fixture(name="site18")
async def newest_site(servers: dict[str, TestServer]) -> AsyncIterator[Site]:
    """On the newest PostgreSQL alone, where the SQL is no matter."""
    async with servers["pg18"].clone() as url, serving(url) as served:
        yield served

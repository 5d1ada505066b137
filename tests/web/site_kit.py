"""A site with two clerks, their boss and an outsider, and one flow; and what its tests ask of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from served import Served, site_on

from mutirao.errors import MutiraoError
from mutirao.model import Attribute, Definition, Offer, Task
from mutirao.testing.database import TestServer

REQUEST = Definition(
    name="request",
    creator="clerk",
    attributes=(Attribute("city", "text", searchable=True), Attribute("answer", "text"), Attribute("amount", "number")),
    tasks=(Task(name="approve", when="answer is null", offer=Offer(role="clerk"), outputs=("answer",)),),
    final="answer is not null",
)
"""Whoever is in the role clerk creates it, and one of them answers it."""

PEOPLE = {"boss": ("administrator",), "clerk_1": ("clerk",), "clerk_2": ("clerk",), "outsider": ()}


class Site(Served):
    """A site where the flow `request` is in place."""

    async def item(self, **state: Any) -> tuple[int, int]:
        """An instance of `request` that clerk_1 is in charge of, and its item."""
        client = await self.client("clerk_1")
        instance = await client.instances.create("request", state)
        [job] = [job async for job in client.instances.jobs(instance.id)]
        return instance.id, job.id


@asynccontextmanager
async def serving(url: str, **options: Any) -> AsyncIterator[Site]:
    async with site_on(url, Site, **options) as site:
        await site.engine.roles.add(None, "clerk")
        for name, roles in PEOPLE.items():
            await site.engine.persons.add(None, name, roles=roles)
        await site.engine.apply(REQUEST)
        yield site


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

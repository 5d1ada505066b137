"""What the stories share: roles and the persons in them, and a look at somebody's worklist."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from mutirao.database.engine import Engine
from mutirao.database.item import Item
from mutirao.server.client import Client
from mutirao.testing.database import TestServer

EXAMPLES = Path(__file__).parents[2] / "examples"


async def set_up(engine: Engine, persons: Mapping[str, Sequence[str]]) -> None:
    """Persons with their roles."""
    known = {role.name for role in await engine.roles.all(None)}
    for role in dict.fromkeys(role for roles in persons.values() for role in roles if role not in known):
        await engine.roles.add(None, role)
    for name, roles in persons.items():
        await engine.persons.add(None, name, roles=roles)


@pytest.fixture(name="office")
async def office_of_three(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """Two clerks and a manager; on one PostgreSQL, since the functions are tested on all."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await set_up(engine, {"clerk_1": ["clerk"], "clerk_2": ["clerk"], "manager": ["manager"]})
        yield url


async def items(client: Client) -> list[Item]:
    return [item async for item in client.worklist.all()]


async def tasks(client: Client) -> list[str]:
    return [item.task for item in await items(client)]


async def read_all(client: Client, instance: int, file: object) -> bytes:
    return b"".join([part async for part in client.files.open(instance, file)])  # type: ignore[arg-type]

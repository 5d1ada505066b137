"""An engine with people in it: a flow whose work items a role does, and the few calls that tests make about them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from mutirao.database.engine import Engine
from mutirao.errors import MutiraoError
from mutirao.model import Attribute, Definition, Offer, Task
from mutirao.testing import advance


@pytest.fixture(name="office")
async def fresh_office(database_url: str) -> AsyncIterator[Engine]:
    """The roles `clerk` and `manager`, with nobody in them."""
    async with Engine(database_url, upgrade=False, name="operator") as engine:
        for role in ("clerk", "manager"):
            await engine.roles.add(None, role)
        yield engine


async def add_requests(engine: Engine, *, role: str = "clerk", number: int = 1) -> list[int]:
    """Open work items of a flow `request`; answers their numbers."""
    await engine.apply(
        Definition(
            name="request",
            attributes=(Attribute("answer", "text"),),
            tasks=(Task(name="approve", when="answer is null", offer=Offer(role=role)),),
            final="answer is not null",
        )
    )
    started = await engine.start_named("request", [{}] * number)
    return [each.id for each in await engine.jobs(limit=number) if each.instance in started]


async def one(engine: Engine, query: str, *values: Any) -> Any:
    async with engine.connection() as connection:
        row = await (await connection.execute(query.encode(), values)).fetchone()
    return None if row is None else row[0]


async def rows(engine: Engine, query: str, *values: Any) -> list[Any]:
    async with engine.connection() as connection:
        return await (await connection.execute(query.encode(), values)).fetchall()


async def select(engine: Engine, person: int, job: int) -> int:
    return int(await one(engine, "select mutirao.select_item(%s, %s)", person, job))


async def move(engine: Engine, by: timedelta) -> None:
    async with engine.connection() as connection:
        await advance(connection, by)


@asynccontextmanager
async def refused(code: str, says: str = "") -> AsyncIterator[None]:
    """What is done inside is refused with this code, and its line says so."""
    with pytest.raises(MutiraoError) as caught:
        yield
    assert caught.value.code == code
    assert says in caught.value.message

"""`mutirao.testing`, as users' own tests use it."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from mutirao.database.connection import connect
from mutirao.database.migrate import ensure_current, upgrade
from mutirao.errors import OperatorError, RequestError
from mutirao.testing import advance, throwaway_database


async def now(connection: AsyncConnection[Any]) -> datetime:
    row = await (await connection.execute("select mutirao.now()")).fetchone()
    assert row is not None
    return datetime.fromisoformat(str(row[0]))


async def test_throwaway_databases_are_up_to_date_and_gone_afterwards(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    async with throwaway_database() as one, throwaway_database() as other:
        assert one != other
        async with await connect(one) as connection:
            await ensure_current(connection)
    with pytest.raises(OperatorError):
        await connect(one)


async def test_clock_moves_for_every_session(database_url: str, connection: AsyncConnection[Any]) -> None:
    before = await now(connection)
    await advance(connection, timedelta(days=3))
    async with await connect(database_url) as other:
        assert timedelta(days=3) <= await now(other) - before < timedelta(days=3, minutes=1)


async def test_clock_of_a_real_database_cannot_be_moved(empty_database_url: str) -> None:
    async with await connect(empty_database_url) as connection:
        await upgrade(connection)
        with pytest.raises(RequestError) as refusal:
            await advance(connection, timedelta(days=3))
    assert refusal.value.code == "clock_not_movable"

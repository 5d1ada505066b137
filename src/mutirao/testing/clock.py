"""The moved clock. It exists only in a database made by `mutirao.testing`: elsewhere there is no table to move it by."""

from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any

from psycopg import AsyncConnection, errors

from mutirao.errors import RequestError


async def install_clock(connection: AsyncConnection[Any]) -> None:
    """Replace `mutirao.now()` by one that can be moved."""
    await connection.execute(files("mutirao.testing").joinpath("clock.sql").read_bytes())


async def advance(connection: AsyncConnection[Any], by: timedelta) -> None:
    """Move the engine's clock, for every session of this database, from the next statement on."""
    try:
        await connection.execute("update mutirao.test_clock set ahead = ahead + %s", [by])
    except errors.UndefinedTable as error:
        raise RequestError(
            "clock_not_movable",
            f"database '{connection.info.dbname}' was not made by mutirao.testing; its clock is real",
        ) from error


async def now(connection: AsyncConnection[Any]) -> datetime:
    """The engine's time."""
    found = await (await connection.execute("select mutirao.now()")).fetchone()
    if found is None:
        raise RuntimeError("a select without a table gives a row")
    moment: datetime = found[0]
    return moment

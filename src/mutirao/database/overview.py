"""What an operator wants to know about a database at a glance."""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from psycopg import AsyncConnection

from mutirao.database import migrate
from mutirao.database.connection import refusals
from mutirao.database.sql import query


@dataclass(frozen=True)
class TableSize:
    name: str
    rows: int
    """PostgreSQL's estimate; counting would read the whole table."""
    bytes: int


@dataclass(frozen=True)
class Overview:
    server: str
    database: str
    role: str
    bytes: int
    schema: int | None
    program: int
    pending: list[str]
    tables: list[TableSize]


async def overview(connection: AsyncConnection[Any]) -> Overview:
    schema = await migrate.status(connection)
    with refusals():
        cursor = await connection.execute(query("database_size"))
        size = (await cursor.fetchone() or (0,))[0]
        sizes = files("mutirao.database").joinpath("sql/table_sizes.sql").read_bytes()
        tables = [TableSize(*row) async for row in await connection.execute(sizes)]
    info = connection.info
    return Overview(
        server=info.parameter_status("server_version") or str(info.server_version),
        database=info.dbname,
        role=info.user,
        bytes=size,
        schema=schema.applied,
        program=migrate.schema().number,
        pending=[str(step) for step in schema.pending],
        tables=tables,
    )


async def grant(connection: AsyncConnection[Any], role: str, level: str) -> None:
    """Let a role of the database read, work or define; the rules are in SQL."""
    with refusals():
        await connection.execute(query("grant_role"), [role, level])


async def revoke(connection: AsyncConnection[Any], role: str) -> None:
    """Take back whatever a role was granted."""
    with refusals():
        await connection.execute(query("revoke_role"), [role])

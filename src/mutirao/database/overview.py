"""What an operator wants to know about a database at a glance."""

from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from psycopg import AsyncConnection, sql
from psycopg.errors import InsufficientPrivilege

from mutirao.database import migrate
from mutirao.database.connection import refusals
from mutirao.database.sql import query
from mutirao.errors import OperatorError

# Up to this size a table's rows are counted; that takes a few hundredths of a second.
_SMALL = 16_000_000

# What a program may say to a schema that is not its own, and an operator must still be able to look at.
_NOT_OURS = ("schema_too_new", "migration_changed")


@dataclass(frozen=True)
class TableSize:
    name: str
    rows: int | None
    """Counted in a small table, PostgreSQL's estimate in a large one; None where it has none yet."""
    bytes: int
    is_exact: bool = False


@dataclass(frozen=True)
class Overview:
    server: str
    database: str
    role: str
    bytes: int
    schema: int | None
    program: int
    pending: list[str]
    problem: str | None
    """Why this program cannot work with the schema, where it is not just behind."""
    tables: list[TableSize]


async def overview(connection: AsyncConnection[Any]) -> Overview:
    schema, problem = await _schema_status(connection)
    with refusals():
        cursor = await connection.execute(query("database_size"))
        size = (await cursor.fetchone() or (0,))[0]
        sizes = files("mutirao.database").joinpath("sql/table_sizes.sql").read_bytes()
        tables = [TableSize(*row) async for row in await connection.execute(sizes)]
        tables = [await _counted(connection, table) for table in tables]
    info = connection.info
    return Overview(
        server=info.parameter_status("server_version") or str(info.server_version),
        database=info.dbname,
        role=info.user,
        bytes=size,
        schema=schema.applied,
        program=migrate.schema().number,
        pending=[str(step) for step in schema.pending],
        problem=problem,
        tables=tables,
    )


async def _schema_status(connection: AsyncConnection[Any]) -> tuple[migrate.SchemaStatus, str | None]:
    try:
        return await migrate.status(connection), None
    except OperatorError as error:
        if error.code not in _NOT_OURS:
            raise
        with refusals():
            numbers = [number async for number, *_ in await connection.execute(query("applied_migrations"))]
        return migrate.SchemaStatus(max(numbers), ()), str(error)


async def _counted(connection: AsyncConnection[Any], table: TableSize) -> TableSize:
    """The estimate of a table that was never analysed is 0, like that of an empty one."""
    unknown = replace(table, rows=table.rows or None)
    if table.bytes > _SMALL:
        return unknown
    count = sql.SQL("select count(*) from mutirao.{}").format(sql.Identifier(table.name))
    with suppress(InsufficientPrivilege):  # who may not read it may still know its size
        row = await (await connection.execute(count)).fetchone()
        return replace(table, rows=row and row[0], is_exact=True)
    return unknown


async def grant(connection: AsyncConnection[Any], role: str, level: str) -> None:
    """Let a role of the database read, work or define; the rules are in SQL."""
    with refusals():
        await connection.execute(query("grant_role"), [role, level])


async def revoke(connection: AsyncConnection[Any], role: str) -> None:
    """Take back whatever a role was granted."""
    with refusals():
        await connection.execute(query("revoke_role"), [role])

"""Queries of flows: asked of other databases when a job begins, and written to its instance before its work does.

A query only reads: it is asked in a read-only transaction, as a part of a SELECT, by the protocol that takes one
statement, with its parameters bound. What it may take is limited: time by its database, rows and bytes here.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import psycopg
from psycopg import AsyncRawCursor
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import Jsonb

from mutirao.database.caller import Caller
from mutirao.database.sql import query
from mutirao.errors import FlowError, RequestError
from mutirao.model.query import Statement, read_expression

MOST_ROWS = 10_000
MOST_BYTES = 1_000_000

# The server has its own limit; this is for one that does not answer at all.
_GRACE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query about to be asked. `place` is how a refusal calls it; `state` has the values of its parameters."""

    place: str
    url: str = field(repr=False)
    timeout: timedelta
    expression: str
    state: Mapping[str, Any] = field(default_factory=dict)


async def run_queries(engine: Caller, job: int, attempt: int) -> bytes | None:
    """Ask what a job needs before its work begins, and write it. Answers the state that it then works on, as JSON.

    None when there is nothing to ask, or nothing any more in this attempt. Raises `query_failed` when an answer is not to be had, and whatever writing it may raise.
    """
    async with engine.connection() as connection:
        wanted = await (await connection.execute(query("queries_of"), (job, attempt))).fetchall()
    if not wanted:
        return None
    change = {}
    for attribute, database, expression, url, timeout, state in wanted:
        place = f'attribute "{attribute}", database "{database}"'
        if url is None:
            raise _failed(place, "there is no database of that name: see mutirao database list")
        change[attribute] = msgspec.Raw(await _answer(Asked(place, url, timeout, expression, state)))
    filled = msgspec.json.encode(change).decode()
    async with engine.connection() as connection:
        row = await (await connection.execute(query("fill"), (job, attempt, filled, engine.name))).fetchone()
    return None if row is None else str(row[0]).encode()


async def asking_tasks(engine: Caller, tasks: Collection[int]) -> frozenset[int]:
    """Those of these tasks whose jobs have something to ask before they begin, in any version of their flow."""
    async with engine.connection() as connection:
        found = await connection.execute(query("asking_tasks"), (list(tasks),))
        return frozenset(task for (task,) in await found.fetchall())


async def ask(asked: Asked) -> Any:
    """The rows, each as an object."""
    return msgspec.json.decode(await _answer(asked))


async def _answer(asked: Asked) -> bytes:
    """The rows as a JSON list, as the database wrote it: its numbers stay exact."""
    try:
        statement = read_expression(asked.place, asked.expression, asked.state)
        async with asyncio.timeout((asked.timeout + _GRACE).total_seconds()):
            rows = await _rows(asked, statement)
    except FlowError as error:
        raise _failed(asked.place, error.message.removeprefix(f"{asked.place}: ")) from error
    except TimeoutError as error:
        raise _failed(asked.place, f"no answer within {asked.timeout.total_seconds():g} s") from error
    except psycopg.errors.QueryCanceled as error:
        raise _failed(asked.place, f"it took longer than {asked.timeout.total_seconds():g} s") from error
    except psycopg.Error as error:
        said = " ".join((error.diag.message_primary or str(error)).split())
        raise _failed(asked.place, said) from error
    return b"[" + b",".join(rows) + b"]"


async def _rows(asked: Asked, statement: Statement) -> list[bytes]:
    """One by one, so that whoever answers too much is not listened to."""
    options = conninfo_to_dict(asked.url).get("options") or ""
    read_only = f"{options} -c default_transaction_read_only=on".strip()
    rows: list[bytes] = []
    size = 0
    connection = await psycopg.AsyncConnection.connect(
        asked.url, autocommit=True, options=read_only, application_name="mutirao query"
    )
    async with connection:
        await connection.execute("begin read only")
        milliseconds = int(asked.timeout.total_seconds() * 1000)
        await connection.execute("select set_config('statement_timeout', %s, true)", [str(milliseconds)])
        values = [_bound(asked.state[name]) for name in statement.parameters]
        cursor = AsyncRawCursor(connection)
        async for (row,) in cursor.stream(_wrapped(statement.text).encode(), values):
            rows.append(row.encode())
            size += len(rows[-1]) + 1
            if len(rows) > MOST_ROWS or size > MOST_BYTES:
                await connection.close()
                raise _failed(asked.place, f"it gives more than {MOST_ROWS:,} rows or {MOST_BYTES:,} bytes")
        # Not everything that writes knows that it may not: in PostgreSQL 15, large objects do not.
        await connection.execute("rollback")
    return rows


def _wrapped(text: str) -> str:
    """As a part of a SELECT nothing can write; and the rows come as JSON, none of them longer than is looked at."""
    return f"select left(row_to_json(q)::text, {MOST_BYTES + 1}) from (\n{text}\n) q limit {MOST_ROWS + 1}"


def _bound(value: Any) -> Any:
    return Jsonb(value) if isinstance(value, dict | list) else value


def _failed(place: str, why: str) -> RequestError:
    return RequestError("query_failed", f"{place}: {why}")

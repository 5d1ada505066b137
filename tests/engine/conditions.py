"""Conditions given to the gate and, once they have passed, evaluated."""

from typing import Any

from condition_attacks import NAMES
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

PLACE = 'condition of task "book_hotel"'

Connection = AsyncConnection[Any]


async def compile_condition(connection: Connection, condition: str | None) -> tuple[str, list[str]]:
    cursor = await connection.execute(
        "select (c).function, (c).arguments from (select mutirao.condition_function(%s, %s, %s, %s) as c offset 0) x",
        (PLACE, condition, list(NAMES), list(NAMES.values())),
    )
    row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1]


async def value(connection: Connection, query: str) -> Any:
    row = await (await connection.execute(query.encode())).fetchone()
    assert row is not None
    return row[0]


async def evaluate(connection: Connection, condition: str, **state: Any) -> bool | None:
    function, arguments = await compile_condition(connection, condition)
    holes = ", ".join(f"%s::{NAMES[name]}" for name in arguments)
    values = [Jsonb(state[name]) if NAMES[name] == "jsonb" and name in state else state.get(name) for name in arguments]
    row = await (await connection.execute(f"select {function}({holes})".encode(), values)).fetchone()
    assert row is not None
    answer: bool | None = row[0]
    return answer

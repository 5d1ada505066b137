"""One person's data: which instances keep it, and erasing it there. What is done is in sql/functions/33_erase.sql."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import AsyncConnection

from mutirao.database.sql import query

How = Literal["blank", "drop"]

_LOOKED_AT_ONCE = 500
_ERASED_AT_ONCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What is looked for: any text that holds `value`; with an attribute, exactly this value of it, now or earlier."""

    value: str
    flow: str | None = None
    attribute: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What is erased: attributes, and a value wherever it stands. `may_be_open`: also of instances that are open."""

    value: str | None = None
    attributes: Sequence[str] = ()
    how: How = "blank"
    reason: str | None = None
    may_be_open: bool = False


async def find(connection: AsyncConnection[Any], sought: Sought) -> AsyncIterator[tuple[int, list[int]]]:
    """Page by page: how many instances were looked at, and which of them keep it."""
    after, looked = 0, _LOOKED_AT_ONCE
    while looked == _LOOKED_AT_ONCE:
        values = (sought.value, sought.flow, sought.attribute, after, _LOOKED_AT_ONCE)
        row = await (await connection.execute(query("find_value"), values)).fetchone()
        last, looked, found = row or (0, 0, [])
        after = last or after
        yield looked, found


async def erase(
    connection: AsyncConnection[Any], instances: Sequence[int], erasure: Erasure, writer: str
) -> AsyncIterator[list[tuple[int, str | None]]]:
    """A few at a time, each few in a transaction: the instances, each with why it could not be, or None."""
    for first in range(0, len(instances), _ERASED_AT_ONCE):
        values = (
            list(instances[first : first + _ERASED_AT_ONCE]),
            erasure.value,
            list(erasure.attributes),
            erasure.how,
            erasure.reason,
            erasure.may_be_open,
            writer,
        )
        yield await (await connection.execute(query("erase"), values)).fetchall()

"""The arrays we write ourselves arrive as they were."""

from typing import Any

import pytest
from psycopg import AsyncConnection

from mutirao.database.array import numbers, texts

AWKWARD = [
    "",
    "plain",
    'a "quote"',
    "back\\slash",
    "{brace}",
    "a,b",
    "NULL",
    None,
    "line\nend",
    "São Tomé",
    "\\\\",
    '\\"',
]


async def test_texts_arrive_as_they_were(connection: AsyncConnection[Any]) -> None:
    found = await (await connection.execute("select %s::text[]", [texts(AWKWARD)])).fetchone()
    assert found == (AWKWARD,)


@pytest.mark.parametrize("given", [[], [1], [-(2**63), 0, 2**63 - 1]])
async def test_numbers_arrive_as_they_were(connection: AsyncConnection[Any], given: list[int]) -> None:
    found = await (await connection.execute("select %s::bigint[]", [numbers(given)])).fetchone()
    assert found == (given,)

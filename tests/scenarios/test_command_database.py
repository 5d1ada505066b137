"""`mutirao database`: add, list, remove, try; and that an address is not shown."""

from collections.abc import AsyncIterator

import pytest
from command import answer, assert_refused, mutirao

from mutirao.database.engine import Engine
from mutirao.model import Attribute, Definition, Query, Task
from mutirao.testing.database import TestServer

STOCK = Definition(
    name="reorder",
    attributes=(Attribute("articles", "json", query=Query("stock", "select 1 as one")),),
    tasks=(Task(name="order", when="true", fires="once"),),
)


@pytest.fixture
async def empty(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.sources.put("stock", url)
            await engine.apply(STOCK)
            await engine.sources.remove("stock")
        yield url


def test_a_database_is_named_tried_and_taken_away(empty: str) -> None:
    said = mutirao("database", "add", "stock", empty, "--timeout", "2.5", "--database", empty)
    assert said.returncode == 0, said
    [listed] = answer("database", "list", "--database", empty)
    assert (listed["name"], listed["timeout"], listed["flows"]) == ("stock", 2.5, ["reorder"])
    assert "reorder" in mutirao("database", "list", "--database", empty).stdout
    assert answer("database", "try", "stock", "select 7 as seven", "--database", empty) == [{"seven": 7}]
    assert "PostgreSQL" in mutirao("database", "try", "stock", "--database", empty).stdout
    assert mutirao("database", "remove", "stock", "--database", empty).returncode == 0
    assert answer("database", "list", "--database", empty) == []


def test_no_command_shows_an_address(empty: str) -> None:
    url = "postgresql://reader:s3cret@127.0.0.1:1/stock"
    words = [("add", "stock", url), ("list",), ("list", "--json"), ("try", "stock"), ("remove", "stock")]
    for each in words:
        said = mutirao("database", *each, "--database", empty)
        assert "s3cret" not in said.stdout + said.stderr
        assert "reader" not in said.stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["add", "stock", "stock.example.org"], "wrong_call", "its address is written postgresql://"),
        (["try", "stock"], "unknown_database", 'there is no database "stock"'),
        (["remove", "stock"], "unknown_database", 'there is no database "stock"'),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(empty: str, words: list[str], code: str, says: str) -> None:
    said = mutirao("database", *words, "--database", empty)
    assert_refused(said, code)
    assert says in said.stderr


def test_a_query_that_fails_is_told_in_one_line(empty: str) -> None:
    mutirao("database", "add", "stock", empty, "--database", empty)
    said = mutirao("database", "try", "stock", "select 1 / 0", "--database", empty)
    assert_refused(said, "query_failed")
    assert "division by zero" in said.stderr

"""`mutirao schedule`: add, list, show, pause, resume, drop."""

from collections.abc import AsyncIterator

import pytest
from command import answer, assert_refused, mutirao
from command_flows import Order

from mutirao.database.engine import Engine
from mutirao.testing.database import TestServer


@pytest.fixture
async def orders(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """A database that knows the flow `order`; on one PostgreSQL, since the functions are tested on all."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.apply(Order)
        yield url


def test_a_schedule_lives_and_goes(orders: str) -> None:
    words = ["schedule", "add", "nightly", "order", "30 2 * * *", "pieces=3", "--zone", "Europe/Berlin"]
    made = answer(*words, "--overlap", "skip", "--database", orders)
    assert (made["schedule"]["state"], made["schedule"]["overlap"]) == ({"pieces": 3}, "skip")
    assert len(made["times"]) == 5
    shown = mutirao("schedule", "show", "nightly", "--database", orders).stdout
    assert shown.count("02:30 CE") == 5
    mutirao("schedule", "pause", "nightly", "--database", orders)
    assert "paused" in mutirao("schedule", "list", "--database", orders).stdout
    mutirao("schedule", "resume", "nightly", "--database", orders)
    [listed] = answer("schedule", "list", "--database", orders)
    assert listed["next_at"] == made["times"][0]
    mutirao("schedule", "drop", "nightly", "--database", orders)
    assert answer("schedule", "list", "--database", orders) == []


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["add", "x", "order", "0 0 30 2 *"], "wrong_cron", "never fires"),
        (["add", "x", "order", "@daily", "--zone", "Berlin"], "unknown_zone", "did you mean Europe/Berlin?"),
        (["add", "x", "order", "@daily", "--missed", "some"], "wrong_call", "skip, once or all"),
        (["show", "x"], "unknown_schedule", 'there is no schedule "x"'),
        (["drop", "x"], "unknown_schedule", 'there is no schedule "x"'),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(orders: str, words: list[str], code: str, says: str) -> None:
    refused = mutirao("schedule", *words, "--database", orders)
    assert_refused(refused, code)
    assert says in refused.stderr

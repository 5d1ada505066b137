"""`mutirao event`, and `instance start` with a key or for later."""

import re
from pathlib import Path
from typing import Any

import pytest
from command import answer, assert_refused, mutirao
from command_flows import Order

from mutirao.database.engine import Engine
from mutirao.testing.database import TestServer


@pytest.fixture
async def orders(servers: dict[str, TestServer]) -> Any:
    """A database that knows the flow `order`; on one PostgreSQL, since the functions are tested on all."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.apply(Order)
        yield url


def start(orders: str, *words: object) -> int:
    [number] = answer("instance", "start", "order", *words, "--database", orders)["instances"]
    return int(number)


def test_a_key_starts_one_instance_and_events_find_it(orders: str) -> None:
    number = start(orders, "--key", "A-17")
    assert start(orders, "pieces=9", "--key", "A-17") == number
    again = ("instance", "start", "order", "--key", "A-17", "--database", orders)
    assert mutirao(*again).stdout == f"Key A-17 of order is instance {number} already, open.running.\n"
    assert answer(*again)["started"] is False
    assert answer("instance", "start", "order", "--key", "A-18", "--database", orders)["started"] is True
    sent = answer("event", "send", "order", "A-17", "pieces=3", "--id", "e1", "--database", orders)
    assert (sent["outcome"], sent["instance"]) == ("done", number)
    told = mutirao("event", "send", "order", "A-17", "pieces=4", "--id", "e1", "--database", orders).stdout
    assert f"was written before, to instance {number}" in told
    told = mutirao("event", "send", "order", "A-17", "pieces=4", "--only-if", "pieces > 5", "--database", orders).stdout
    assert "Not now: pieces is 3" in told
    shown = answer("instance", "show", number, "--database", orders)["instance"]
    assert (shown["key"], shown["state"]["pieces"]) == ("A-17", 3)
    assert "A-17" in mutirao("instance", "show", number, "--database", orders).stdout


def test_events_of_a_file_are_all_answered(orders: str, tmp_path: Path) -> None:
    start(orders, "--key", "A-17")
    file = tmp_path / "events.jsonl"
    file.write_text('{"key": "A-17", "change": {"pieces": 8}, "id": "e1"}\n\n{"key": "B", "change": {"pieces": 8}}\n')
    ran = mutirao("event", "load", "order", file, "--database", orders)
    assert ran.returncode == 1
    assert "2 events: 1 done, 1 refused." in ran.stdout
    assert 'B: unknown_instance: no instance has the key "B"' in ran.stdout
    file.write_text('{"key": "A-17"}\n')
    refused = mutirao("event", "load", "order", file, "--database", orders)
    assert_refused(refused, "wrong_call")
    assert "line 1 is no event" in refused.stderr


def test_an_instance_is_put_off(orders: str) -> None:
    number = start(orders, "--at", "2131-12-24T18:00Z")
    [listed] = answer("instance", "list", "--database", orders)
    assert (listed["id"], listed["status"], listed["due_at"]) == (number, "open.notrunning", "2131-12-24T18:00:00Z")
    assert "starts" in mutirao("instance", "show", number, "--database", orders).stdout
    said = mutirao(
        "instance", "start", "order", "--in", "2h", "--key", "L-1", "--database", orders, TZ="Etc/GMT+3"
    ).stdout
    assert re.match(r"To start \d{4}-\d\d-\d\d \d\d:\d\d:\d\d -03: instance \d+ of order, key L-1\.\n", said), said
    listed = mutirao("instance", "list", "--status", "open.notrunning", "--database", orders).stdout
    assert "not yet" in listed
    assert " ago" not in listed


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["instance", "start", "order", "--in", "soon"], "wrong_call", "write it as 90d, 12h, 30min or 1y"),
        (["instance", "start", "order", "--at", "noon"], "wrong_call", "2031-12-24T18:00Z"),
        (["instance", "start", "order", "--at", "2031-12-24", "--in", "1h"], "wrong_call", "not both"),
        (["instance", "start", "order", "--key", "A", "--count", "2"], "wrong_call", "one key is one instance"),
        (["event", "send", "order", "A-99", "pieces=3"], "unknown_instance", 'no instance has the key "A-99"'),
        (["event", "send", "order", "A-99"], "wrong_call", "nothing to set"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(orders: str, words: list[str], code: str, says: str) -> None:
    refused = mutirao(*words, "--database", orders)
    assert_refused(refused, code)
    assert says in refused.stderr

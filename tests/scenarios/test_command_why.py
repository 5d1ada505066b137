"""`mutirao why` and `mutirao worker list`, as people see them."""

from collections.abc import AsyncIterator

import pytest
from command import FLOWS, answer, assert_refused, mutirao, running
from command_flows import Order
from driver import Engine as Driver

from mutirao.database.engine import Engine
from mutirao.testing.database import TestServer


@pytest.fixture
async def order(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """A database with one order that has been paid, on one PostgreSQL: the answers themselves are tested on all."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.apply(Order)
            await engine.start(Order())
        async with Driver(url) as driver:
            await driver.do("order", "pay", stage="paid")
        yield url


def test_every_task_is_told_the_most_urgent_first(order: str) -> None:
    said = mutirao("why", 1, "--database", order)
    assert (said.returncode, said.stderr) == (0, "")
    first, empty, *rest = [line.rstrip() for line in said.stdout.splitlines()]
    assert first.startswith("instance 1 is open.running: ship has been ready for ")
    assert first.endswith(": no worker that does it is alive")
    assert (empty, rest[0].split()[:2]) == ("", ["●", "ship"])
    assert rest[1:] == [
        "✗ pay does not fire now",
        "└─ ✗ stage = 'new'      stage = paid",
        "✗ final does not hold",
        "└─ ✗ stage = 'shipped'  stage = paid",
    ]


async def test_what_no_condition_decides_any_more_has_no_mark_of_success_or_failure(order: str) -> None:
    async with Driver(order) as driver:
        await driver.do("order", "ship", stage="shipped")
    lines = mutirao("why", 1, "--database", order).stdout.splitlines()[2:]
    assert [line.split()[:2] for line in lines] == [["·", "pay"], ["·", "ship"], ["✓", "final"]]


def test_one_task_says_what_fired_it(order: str) -> None:
    lines = [line.rstrip() for line in mutirao("why", 1, "ship", "--database", order).stdout.splitlines()]
    assert lines[0].startswith("ship has been ready for ")
    assert lines[2].startswith("Why it fired  row ")
    assert ", after pay done, by " in lines[2]
    assert lines[3:] == ["  stage new → paid", "✓ stage = 'paid'  stage = paid"]


def test_the_past_is_asked_by_the_row_that_the_trace_shows(order: str) -> None:
    story = mutirao("instance", "trace", 1, "--database", order).stdout
    rows = [row["id"] for row in answer("instance", "trace", 1, "--database", order)]
    assert [line.split("#")[1].split()[0] for line in story.splitlines() if "#" in line] == list(map(str, rows))
    past = mutirao("why", 1, "ship", "--at", rows[0], "--database", order).stdout
    assert past.startswith("ship did not fire: stage = 'paid' is false (stage = new)\n")
    past = mutirao("why", 1, "--at", rows[1], "--database", order).stdout
    assert past.splitlines()[0].endswith("; it fired ship")
    assert "stage new → paid" in past


def test_without_utf_8_other_signs_are_used(order: str) -> None:
    said = mutirao("why", 1, "--database", order, PYTHONIOENCODING="ascii", LC_ALL="C").stdout
    assert said.isascii()
    assert "x pay does not fire now\n`- x stage = 'new' " in said
    assert "\n* ship has been ready" in said


def test_it_speaks_json(order: str) -> None:
    whole, ship, *_, final = answer("why", 1, "--database", order)
    assert (whole["task"], whole["stands"], ship["task"], ship["stands"]) == (None, "open.running", "ship", "ready")
    assert ship["job"]["waits_for"] == "worker"
    assert final["condition"] == {
        "kind": "part",
        "text": "stage = 'shipped'",
        "holds": False,
        "error": None,
        "values": {"stage": "paid"},
        "parts": [],
    }


def test_what_is_not_there_is_refused_in_one_line(order: str) -> None:
    refused = mutirao("why", 1, "shop", "--database", order)
    assert_refused(refused, "unknown_task")
    assert 'did you mean "ship"?' in refused.stderr
    assert_refused(mutirao("why", 2, "--database", order), "unknown_instance")
    assert_refused(mutirao("why", 1, "--at", 999_999, "--database", order), "wrong_call")


async def test_an_exception_is_told_with_what_can_be_done(order: str) -> None:
    async with Driver(order) as driver:
        await driver.fail_for_good(await driver.take("order", "ship"), "the van is broken")
    said = mutirao("why", 1, "--database", order).stdout
    assert said.startswith("instance 1 is an exception: ship has failed for good: the van is broken\n")
    assert "● ship has failed for good after 1 try: the van is broken; retry or skip it" in said
    assert "try it again" in said
    assert "job retry" in said


def test_workers_are_listed(order: str) -> None:
    assert mutirao("worker", "list", "--database", order).stdout == "No workers.\n"
    with running("worker", f"{FLOWS}:Order", "--name", "packer", "--database", order) as worker:
        worker.wait_for("is ready")
        while not (found := answer("worker", "list", "--database", order)):
            pass
        assert [(each["name"], each["alive"], each["tasks"]) for each in found] == [
            ("packer", True, ["order.pay", "order.ship"])
        ]
        line = mutirao("worker", "list", "--database", order).stdout.splitlines()[-1].split()
        assert (line[0], line[1], line[-3:]) == ("packer", "yes", ["order:", "pay,", "ship"])

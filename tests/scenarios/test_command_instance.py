"""`mutirao instance` and `mutirao job`: start, look, steer, and clear words for what cannot be done."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from command import FLOWS, answer, assert_refused, mutirao, running
from command_flows import Order
from rich.console import Console

from mutirao.cli import output
from mutirao.database.engine import Engine
from mutirao.testing.database import TestServer

Ask = Callable[..., Any]


@pytest.fixture
async def orders(database_url: str) -> str:
    """A database that knows the flow `order`."""
    async with Engine(database_url, upgrade=False) as engine:
        await engine.apply(Order)
    return database_url


@pytest.fixture
async def one_order(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """The same with an instance, on one PostgreSQL: the refusals themselves are tested on all, without the command."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.apply(Order)
            await engine.start(Order())
        yield url


def test_started_instance_is_listed_shown_and_traced(orders: str) -> None:
    words = ["customer=the library", "pieces=3", "price=12.50", "gift=true", "due=2031-12-24", 'lines=["a", "b"]']
    [number] = answer("instance", "start", "order", *words, "--priority", 5, "--database", orders)["instances"]
    [listed] = answer("instance", "list", "--flow", "order", "--database", orders)
    state = {"customer": "the library", "pieces": 3, "gift": True, "due": "2031-12-24", "lines": ["a", "b"]}
    assert (listed["id"], listed["status"], listed["priority"]) == (number, "open.running", 5)
    assert state.items() <= listed["state"].items()
    shown = answer("instance", "show", number, "--database", orders)
    assert [job["task"] for job in shown["jobs"]] == ["pay"]
    [row] = answer("instance", "trace", number, "--database", orders)
    assert (row["kind"], row["fired"], row["status"]) == ("start", ["pay"], "open.running")
    assert "the library" in mutirao("instance", "list", "--database", orders).stdout


def test_many_are_started_at_once_and_listed_page_by_page(orders: str) -> None:
    said = mutirao("instance", "start", "order", "--count", 30, "--database", orders)
    assert (said.stdout, said.stderr) == ("Started 30 instances, 1 to 30, of order.\n", "")
    page = answer("instance", "list", "--limit", 20, "--database", orders)
    rest = answer("instance", "list", "--before", page[-1]["id"], "--database", orders)
    assert [each["id"] for each in page + rest] == list(range(30, 0, -1))


@pytest.mark.parametrize(("wait", "quiet", "is_shown"), [(0, False, True), (0, True, False), (60, False, False)])
async def test_bar_appears_when_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, wait: float, quiet: bool, is_shown: bool
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(output, "progress", Console(file=terminal, force_terminal=True, width=80))
    monkeypatch.setattr(output, "_SOON", wait)
    with output.counting("Starting", 10, quiet=quiet) as advance:
        advance(5)
        await asyncio.sleep(0)  # lets the timer ring that is due
        await asyncio.sleep(0)
    assert ("Starting" in terminal.getvalue()) == is_shown
    assert ("50%" in terminal.getvalue()) == is_shown


def test_instances_are_found_by_a_searchable_attribute(orders: str) -> None:
    for customer in ("the school", "the library"):
        mutirao("instance", "start", "order", f"customer={customer}", "--database", orders)
    search = ("instance", "list", "--flow", "order", "--where", "customer=the school", "--database", orders)
    assert [each["state"]["customer"] for each in answer(*search)] == ["the school"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("instance start oder", "unknown_flow"),
        ("instance start order stage=lost", "nothing_fires"),
        ("instance start order peices=3", "unknown_attribute"),
        ("instance start order pieces=many", "wrong_type"),
        ("instance show 999", "unknown_instance"),
        ("instance trace 999", "unknown_instance"),
        ("instance set 999 pieces=1", "unknown_instance"),
        ("instance set 1", "wrong_call"),
        ("instance set 1 stage=shipped", "final_blocked"),
        ("instance repair 1", "not_an_exception"),
        ("instance resume 1", "not_suspended"),
        ("instance cancel 999", "unknown_instance"),
        ("instance list --where pieces=1", "wrong_call"),
        ("instance list --flow order --where pieces=1", "not_searchable"),
        ("job show 999", "unknown_job"),
        ("job retry 999", "unknown_job"),
        ("job retry 1", "job_not_failed"),
        ("job skip 1 peices=1", "unknown_attribute"),
        ("job list --status faild", "wrong_call"),
        ("job list --flow oder", "unknown_flow"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(one_order: str, command: str, code: str) -> None:
    assert_refused(mutirao(*command.split(), "--database", one_order), code)


def test_instance_is_steered(orders: str) -> None:
    def steer(*words: object) -> str:
        said = mutirao("instance", *words, "--database", orders)
        assert said.returncode == 0, said
        return said.stdout.strip()

    mutirao("instance", "start", "order", "--database", orders)
    assert steer("set", 1, "pieces=7", "--reason", "by telephone") == "Instance 1 is open.running."
    assert steer("suspend", 1) == "Instance 1 is open.notrunning.suspended."
    assert steer("resume", 1) == "Instance 1 is open.running."
    assert steer("cancel", 1, "--reason", "ordered twice") == "Instance 1 is closed.aborted."
    story = steer("trace", 1)
    assert all(words in story for words in ("pieces = 1 → 7", "by telephone", "suspended", "ordered twice"))
    assert_refused(mutirao("instance", "set", 1, "pieces=8", "--database", orders), "instance_closed")


def test_failed_job_is_shown_with_its_traceback_and_mended(orders: str) -> None:
    with running("worker", f"{FLOWS}:Order", "--name", "packer", "--database", orders) as worker:
        worker.wait_for("is ready")
        for _ in range(3):
            mutirao("instance", "start", "order", "customer=bankrupt", "--database", orders)
        failed = wait_until(lambda: answer("job", "list", "--status", "failed", "--database", orders), 3)
        shown = mutirao("job", "show", failed[0]["id"], "--database", orders).stdout
        assert "raise Failed" in shown
        assert "the bank says no" in mutirao("instance", "show", 1, "--database", orders).stdout
        retried = mutirao("job", "retry", failed[0]["id"], "--database", orders)
        assert f"Job {failed[0]['id']} (pay) is tried again" in retried.stdout
        mutirao("job", "skip", failed[1]["id"], "stage=paid", "--database", orders)
        mutirao("instance", "repair", 3, "customer=solvent", "--reason", "a slip", "--database", orders)
        closed = ("instance", "list", "--status", "closed.completed", "--database", orders)
        assert {each["id"] for each in wait_until(lambda: answer(*closed), 2)} == {2, 3}
        story = mutirao("instance", "trace", 3, "--database", orders).stdout
        assert "pay failed for good" in story
        assert story.count("by packer") == 3
        assert "customer = bankrupt → solvent" in story


def wait_until(ask: Ask, count: int) -> Any:
    """Ask until there are so many; the test's own timeout is the deadline."""
    while len(found := ask()) < count:
        pass
    return found

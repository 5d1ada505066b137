"""What people read on a narrow terminal: whole words in the head, nothing beyond the edge, long texts cut in one line."""

import io
from collections.abc import AsyncIterator

import pytest
from command import mutirao
from command_flows import Order
from rich.console import Console

from mutirao.cli import render
from mutirao.cli.listing import Listing
from mutirao.database.engine import Engine
from mutirao.testing import run_until_quiet
from mutirao.testing.database import TestServer

WIDTHS = (60, 80)
WRITER = "the-shop-in-the-old-town"


@pytest.fixture
async def stuck_order(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """A database in which an order could not be paid."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False, name=WRITER) as engine:
            await engine.apply(Order)
            await engine.start(Order(customer="bankrupt"))
            await run_until_quiet(engine, [Order])
        yield url


def shown(words: str, width: int, url: str) -> list[str]:
    said = mutirao(*words.split(), "--database", url, COLUMNS=width)
    assert said.returncode == 0, said
    lines = said.stdout.splitlines()
    # A command to copy stays whole, however long the database's address is.
    assert max(len(line) for line in lines if "--database" not in line) <= width
    return lines


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("words", "head"),
    [
        ("job list", {"job", "instance", "task", "status", "about"}),
        ("instance list", {"id", "flow", "status", "state"}),
        ("flow list", {"flow", "version", "open", "exceptions", "closed"}),
    ],
)
def test_list_keeps_whole_what_matters(stuck_order: str, words: str, head: set[str], width: int) -> None:
    [names, _, *rows] = shown(words, width, stuck_order)
    assert head <= set(names.split())
    assert "…" not in names
    assert all("order" in row or "pay" in row or "_EXCPT" in row for row in rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_error_is_cut_in_a_list_and_whole_where_it_is_shown(stuck_order: str, width: int) -> None:
    [job] = [row for row in shown("job list", width, stuck_order) if " pay " in row]
    assert "Failed: the bank" in job
    lines = shown("instance show 1", width, stuck_order)
    assert "the bank says no" in " ".join(" ".join(lines).split())
    assert any(line.split()[:3] == ["job", "task", "status"] for line in lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_trace_tells_who_wrote_each_row(stuck_order: str, width: int) -> None:
    story = shown("instance trace 1", width, stuck_order)
    who = [line.split()[1] for line in story if line.split()[:1] == ["by"]]
    assert len(who) == 2
    assert who[0] == render.writer(WRITER)


def test_long_name_of_a_writer_keeps_both_ends() -> None:
    assert render.writer("shop:1204") == "shop:1204"
    assert render.writer("shop-7f9c8d.example.org:1204") == "shop….org:1204"


@pytest.mark.parametrize("width", WIDTHS)
def test_tour_loses_nothing(width: int) -> None:
    said = mutirao("demo", "--pause", 0, COLUMNS=width)
    assert said.returncode == 0, said
    assert "…" not in said.stdout
    assert max(map(len, said.stdout.splitlines())) <= width


def rendered(listing: Listing, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    console.print(listing)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_listing_cuts_then_leaves_out_then_cuts_the_widest() -> None:
    listing = Listing("id", "name", "age", "about", numbers=("id",), loose=("about",), spare=("age",))
    listing.add_row("1", "somebody", "5 min", "a text that is rather long and goes on")
    assert rendered(listing, 80)[2] == " 1  somebody  5 min  a text that is rather long and goes on"
    assert rendered(listing, 40)[2] == " 1  somebody  5 min  a text that is rat…"
    assert rendered(listing, 35)[2] == " 1  somebody  a text that is rathe…"
    assert rendered(listing, 20)[2] == " 1  somebo…  a text…"

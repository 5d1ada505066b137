"""`mutirao erase`: found, erased and on record, and clear words for what cannot be."""

import pytest
from command import answer, assert_refused, mutirao
from command_flows import Order

from mutirao.database.batch import Filter
from mutirao.database.engine import Engine
from mutirao.database.schedule import Schedule

WHO = "the library in the harbour"


@pytest.fixture
async def orders(database_url: str) -> str:
    """Two orders of one customer, the first of which has ended, and one of another."""
    async with Engine(database_url, upgrade=False) as engine:
        await engine.apply(Order)
        first, *_ = await engine.start_named("order", [{"customer": WHO}, {"customer": WHO}, {"customer": "a school"}])
        await engine.cancel(first)
    return database_url


def test_found_erased_and_on_record(orders: str) -> None:
    found = [each["id"] for each in answer("erase", "find", WHO, "--database", orders)]
    assert len(found) == 2
    said = answer("erase", "find", "--where", f"customer={WHO}", "--flow", "order", "--database", orders)
    assert [each["id"] for each in said] == found
    run = mutirao("erase", "run", WHO, "--reason", "asked by letter", "--yes", "--database", orders)
    assert run.returncode == 1  # not everywhere
    assert "Erased in 1 instance." in run.stdout
    assert f"Not in {found[1]}: it is open.running: cancel it first" in run.stdout
    [row] = answer("erase", "list", "--database", orders)
    assert (row["instance"], row["attributes"], row["reason"]) == (found[0], ["customer"], "asked by letter")
    # The flow requires a customer, so an open order cannot be without one.
    run = mutirao("erase", "run", WHO, "--open", "--yes", "--database", orders)
    assert f"Not in {found[1]}: missing_attribute" in run.stdout
    mutirao("instance", "cancel", found[1], "--database", orders)
    run = mutirao("erase", "run", WHO, "--drop", "--yes", "--database", orders)
    assert run.returncode == 0, run
    assert answer("erase", "find", WHO, "--database", orders) == []
    assert "asked by letter" in mutirao("erase", "list", "--database", orders).stdout


async def test_schedules_and_running_batches_that_hold_it_are_named(orders: str) -> None:
    async with Engine(orders, upgrade=False) as engine:
        await engine.schedules.put(Schedule("weekly", "order", "0 9 * * 1", state={"customer": WHO}))
        await engine.schedules.put(Schedule("daily", "order", "0 9 * * *", state={"customer": "a school"}))
        batch = await engine.make_batch("set", Filter(flow="order"), change={"customer": WHO})
    found = mutirao("erase", "find", WHO, "--database", orders)
    assert "Also in schedule weekly, which erasing leaves alone: mutirao schedule drop weekly" in found.stdout
    assert f"Also in batch {batch.id}, which erasing leaves alone: mutirao batch stop {batch.id}" in found.stdout
    assert "daily" not in found.stdout
    run = mutirao("erase", "run", "the library in the", "--yes", "--database", orders)
    assert "Also in schedule weekly" in run.stdout
    assert run.returncode == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("find",), "wrong_call"),
        (("find", "ab"), "wrong_call"),
        (("find", WHO, "--flow", "nowhere"), "unknown_flow"),
        (("find", "--where", "customer=a"), "wrong_call"),
        (("run", WHO), "wrong_call"),
        (("run", WHO, "--attribute", "shoe_size", "--yes"), "unknown_attribute"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(orders: str, words: tuple[str, ...], code: str) -> None:
    assert_refused(mutirao("erase", *words, "--database", orders), code)

"""`mutirao retention` and `mutirao flow size`: rules are set, listed and taken back, and clear words for what cannot be."""

from pathlib import Path

import pytest
from command import answer, assert_refused, mutirao
from command_flows import Order

from mutirao.database.engine import Engine


@pytest.fixture
async def orders(database_url: str) -> str:
    async with Engine(database_url, upgrade=False) as engine:
        await engine.apply(Order)
    return database_url


def test_rules_are_set_listed_and_taken_back(orders: str) -> None:
    assert "for ever" in mutirao("retention", "list", "--database", orders).stdout
    said = mutirao("retention", "set", "order", "90d", "--database", orders)
    assert said.stdout == "From now on, finished instances of order are kept for 90 d and then dropped.\n"
    mutirao("retention", "set", "order", "12 hours", "--status", "aborted", "--export", "--database", orders)
    rules = answer("retention", "list", "--database", orders)
    assert [(rule["status"], rule["period"], rule["action"]) for rule in rules] == [
        ("completed", "P90D", "drop"),
        ("terminated", "P90D", "drop"),
        ("aborted", "PT43200S", "export"),
    ]
    listed = mutirao("retention", "list", "--database", orders).stdout
    assert "completed, terminated" in listed
    assert "dropped when exported" in listed
    mutirao("retention", "remove", "order", "--database", orders)
    assert answer("retention", "list", "--database", orders) == []


def test_finished_instances_are_dropped_by_hand(orders: str) -> None:
    [number] = answer("instance", "start", "order", "--database", orders)["instances"]
    mutirao("instance", "cancel", number, "--database", orders)
    said = mutirao("retention", "drop", "order", "--closed-before", "1d", "--database", orders)
    assert said.stdout == "Batch 1: 0 finished instances of order dropped, 1 younger ones kept.\n"
    said = mutirao("retention", "drop", "order", "--closed-before", "2999-01-01", "--database", orders)
    assert_refused(said, "wrong_call")
    assert "1 finished instance of order will be dropped" in said.stderr
    said = mutirao("retention", "drop", "order", "--closed-before", "2999-01-01", "--yes", "--database", orders)
    assert said.stdout == "Batch 2: 1 finished instance of order dropped, 0 younger ones kept.\n"
    assert_refused(mutirao("instance", "show", number, "--database", orders), "unknown_instance")


def test_nothing_is_dropped_by_a_rule_before_somebody_said_yes(orders: str) -> None:
    [number] = answer("instance", "start", "order", "--database", orders)["instances"]
    mutirao("instance", "cancel", number, "--database", orders)
    said = mutirao("retention", "set", "order", "0d", "--database", orders)
    assert_refused(said, "wrong_call")
    assert "1 finished instance of order ended longer ago than 0 ms, to be dropped at once" in said.stderr
    assert answer("retention", "list", "--database", orders) == []
    for harmless in (("3000y",), ("1d",), ("0d", "--export")):
        assert mutirao("retention", "set", "order", *harmless, "--database", orders).returncode == 0
    assert mutirao("retention", "set", "order", "0d", "--yes", "--database", orders).returncode == 0
    assert {rule["period"] for rule in answer("retention", "list", "--database", orders)} == {"P0D"}


def test_rule_for_one_status_is_not_replaced_without_a_word(orders: str) -> None:
    assert mutirao("retention", "set", "order", "2y", "--status", "aborted", "--database", orders).returncode == 0
    said = mutirao("retention", "set", "order", "90d", "--database", orders)
    assert_refused(said, "wrong_call")
    assert "This replaces the rule that aborted ones are kept for 730 d." in said.stderr
    assert len(answer("retention", "list", "--database", orders)) == 1
    mutirao("retention", "set", "order", "90d", "--yes", "--database", orders)
    assert mutirao("retention", "set", "order", "30d", "--database", orders).returncode == 0
    assert {rule["period"] for rule in answer("retention", "list", "--database", orders)} == {"P30D"}


def test_size_limit_is_set(orders: str) -> None:
    said = mutirao("flow", "size", "order", "--state", "2MB", "--change", "500kB", "--database", orders)
    assert said.stdout == "order takes a state of at most 2.0 MB and a change of at most 500.0 kB from now on.\n"
    large = f"customer={'x' * 100_000}"
    assert mutirao("instance", "start", "order", large, "--database", orders).returncode == 0
    mutirao("flow", "size", "order", "--change", "1000", "--database", orders)
    assert_refused(mutirao("instance", "start", "order", large, "--database", orders), "too_large")


def test_flow_that_is_not_there_is_answered_with_those_that_are(orders: str, tmp_path: Path) -> None:
    for words in (
        ("retention", "set", "ordre", "3d"),
        ("export", "ordre", "--to", tmp_path / "out"),
        ("flow", "migrate", "ordre", "--yes"),
        ("instance", "cancel", "--flow", "ordre", "--yes"),
    ):
        said = mutirao(*words, "--database", orders)
        assert_refused(said, "unknown_flow")
        assert 'did you mean "order"?' in said.stderr, words
    assert "there is order" in mutirao("retention", "set", "nowhere", "3d", "--database", orders).stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("retention", "set", "order", "soon"), "wrong_call"),
        (("retention", "set", "order", "3 parsecs"), "wrong_call"),
        (("retention", "set", "order", "999999999999y"), "wrong_call"),
        (("retention", "set", "nowhere", "3d"), "unknown_flow"),
        (("retention", "remove", "nowhere"), "unknown_flow"),
        (("retention", "drop", "order", "--closed-before", "the flood"), "wrong_call"),
        (("retention", "drop", "nowhere", "--closed-before", "1d"), "unknown_flow"),
        (("flow", "size", "order"), "wrong_call"),
        (("flow", "size", "order", "--state", "huge"), "wrong_call"),
        (("flow", "size", "order", "--state", "0"), "wrong_call"),
        (("flow", "size", "nowhere", "--state", "1MB"), "unknown_flow"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(orders: str, words: tuple[str, ...], code: str) -> None:
    assert_refused(mutirao(*words, "--database", orders), code)

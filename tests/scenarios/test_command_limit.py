"""`mutirao limit` as an operator meets it."""

import pytest
from command import FLOWS, answer, assert_refused, mutirao


def test_a_limit_is_set_shown_and_cleared(database_url: str) -> None:
    where = ("--database", database_url)
    mutirao("flow", "apply", f"{FLOWS}:Order", *where)
    assert mutirao("limit", "list", *where).stdout == "No task has a limit.\n"
    said = mutirao("limit", "set", "order", "pay", "--at-once", "20", "--per", "customer", "--each", "1", *where).stdout
    assert said == "order.pay: none → 20 at once, 1 at once for each customer; what is not said is free.\n"
    [limit] = answer("limit", "list", *where)
    assert (limit["task"], limit["at_once"], limit["per_second"], limit["each"], limit["by_hand"]) == (
        "pay",
        20,
        None,
        1,
        True,
    )
    people = mutirao("limit", "list", *where).stdout
    assert all(word in people for word in ("order", "pay", "20 at once", "by hand"))
    assert mutirao("limit", "clear", "order", "pay", *where).stdout == "order.pay: no limit\n"
    assert answer("limit", "list", *where) == []


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("pay",), "wrong_call", "say which limit"),
        (("pai", "--at-once", "1"), "unknown_task", "pay, ship"),
        (("pay", "--at-once", "0"), "wrong_call", "more than zero"),
        (("pay", "--per", "x", "--each", "1"), "unknown_attribute", '"x"'),
    ],
)
def test_a_limit_that_cannot_be_is_refused(database_url: str, words: tuple[str, ...], code: str, says: str) -> None:
    where = ("--database", database_url)
    mutirao("flow", "apply", f"{FLOWS}:Order", *where)
    refusal = mutirao("limit", "set", "order", *words, *where)
    assert_refused(refusal, code)
    assert says in refusal.stderr

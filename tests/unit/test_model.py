"""What a definition may be, and what is said about one that may not."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from mutirao.errors import FlowError
from mutirao.model import AllOf, AnyOf, Attribute, Definition, Dependency, Task, Term
from mutirao.model.name import suggest

BOOK = Task(name="book_hotel", when="hotel is null")


def flow(*tasks: Task, **fields: Any) -> Definition:
    return Definition(name="travel", tasks=tasks, **fields)


def test_a_task_with_when_fires_each_time_and_one_with_depends_once() -> None:
    assert Task(name="a", when="true").fires == "each"
    assert Task(name="a", depends=Term("b")).fires == "once"
    assert Task(name="a", when="true", fires="once").fires == "once"


def test_a_task_has_the_defaults_of_the_design() -> None:
    assert (BOOK.retries, BOOK.backoff, BOOK.timeout) == (3, timedelta(milliseconds=100), None)


def test_a_flow_may_end_by_final_without_a_final_condition() -> None:
    assert flow(BOOK, ends="final").final is None


def test_defaults_are_kept_as_the_database_gives_them_back() -> None:
    made = flow(attributes=[Attribute("price", "number", 0.1), Attribute("tags", "json", ("a", {1: 2}))])

    assert made.attributes[0].default == Decimal("0.1")
    assert made.attributes[1].default == ["a", {"1": 2}]


def test_operators_make_flat_trees() -> None:
    assert Term("a") & "b" & "c.failed" == AllOf((Term("a"), Term("b"), Term("c", "failed")))
    assert "a" | Term("b") == AnyOf((Term("a"), Term("b")))
    assert Term("a") & (Term("b") | "c") == AllOf((Term("a"), AnyOf((Term("b"), Term("c")))))


@pytest.mark.parametrize(
    "name", ["", "Travel", "1st", "_x", "a-b", "é", "a" * 49, "pg_flow", "mutirao", "public", None]
)
def test_a_bad_name_of_a_flow_is_refused(name: Any) -> None:
    with pytest.raises(FlowError, match=r"^flow_invalid: flow .*name"):
        Definition(name=name)


def test_a_task_that_runs_a_child_and_waits_is_refused() -> None:
    with pytest.raises(FlowError, match=r"^flow_invalid: .*let a task before it wait$"):
        flow(replace(BOOK, child="shipping", wait="due"), attributes=[Attribute("due", "timestamp")])


@pytest.mark.parametrize("name", ["a", "tr_a2", "a" * 48])
def test_a_good_name_is_accepted(name: str) -> None:
    assert flow(replace(BOOK, name=name), attributes=(Attribute(name, "text"),)).name == "travel"


@pytest.mark.parametrize(
    ("attribute", "code", "text"),
    [
        (Attribute("Stage", "text"), "flow_invalid", 'attribute "Stage" has no usable name: a name is a lowercase'),
        (Attribute("task_x", "text"), "attribute_reserved", "begin with task_ are the states of tasks"),
        (Attribute("wid", "integer"), "attribute_reserved", "wid is the instance's own number"),
        (Attribute("n", "int"), "flow_invalid", 'unknown type "int"; did you mean "integer"?'),  # type: ignore[arg-type]
        (Attribute("n", "integer", "5"), "wrong_type", 'its default is an integer: got "5"'),
        (Attribute("n", "integer", True), "wrong_type", "its default is an integer: got true"),
        (Attribute("n", "date", datetime.now(UTC)), "wrong_type", "a date has no time"),
        (Attribute("n", "timestamp", date(2031, 12, 24)), "wrong_type", "its default is a timestamp: got"),
        (Attribute("n", "timestamp", datetime(2031, 12, 24)), "wrong_type", "has a zone"),  # noqa: DTZ001
        (Attribute("n", "text", "a\0b"), "wrong_type", "U+0000"),
    ],
)
def test_a_bad_attribute_is_refused(attribute: Attribute, code: str, text: str) -> None:
    with pytest.raises(FlowError) as refused:
        flow(attributes=(attribute,))
    assert refused.value.code == code
    assert text in refused.value.message
    assert f'flow "travel", attribute "{attribute.name}"' in refused.value.message


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"when": None}, "flow_invalid", "either when or depends: got neither"),
        ({"depends": Term("book_hotel")}, "flow_invalid", "either when or depends: got both"),
        ({"when": "  "}, "flow_invalid", "when is empty"),
        ({"when": 5}, "flow_invalid", "when is a text: got 5"),
        ({"when": None, "depends": Term("book_hotle")}, "unknown_task", 'did you mean "book_hotel"?'),
        ({"when": None, "depends": Term("book_hotel", "faild")}, "flow_invalid", 'did you mean "failed"?'),
        ({"when": None, "depends": AllOf(())}, "flow_invalid", "a group without a term"),
        ({"when": None, "depends": 5}, "flow_invalid", "depends is a Dependency: got 5"),
        ({"fires": "twice"}, "flow_invalid", 'unknown fires "twice"; there is each, once'),
        ({"timeout": timedelta(0)}, "flow_invalid", "timeout is more than zero"),
        ({"timeout": timedelta(seconds=-1)}, "flow_invalid", "timeout is from zero to"),
        ({"timeout": timedelta.max}, "flow_invalid", "timeout is from zero to"),
        ({"timeout": 5}, "flow_invalid", "timeout is a timedelta, such as timedelta(seconds=5): got 5"),
        ({"backoff": timedelta(minutes=6)}, "flow_invalid", "backoff is from zero to 0:05:00"),
        ({"retries": -1}, "flow_invalid", "retries is a whole number from 0 to"),
        ({"retries": True}, "flow_invalid", "retries is a whole number from 0 to"),
        ({"priority": 2**40}, "flow_invalid", "priority is a whole number from"),
        ({"enabled": "no"}, "flow_invalid", "enabled is true or false: got 'no'"),
        ({"name": "Book"}, "flow_invalid", "has no usable name"),
    ],
)
def test_a_bad_task_is_refused(change: dict[str, Any], code: str, text: str) -> None:
    bad = replace(BOOK, **change)
    with pytest.raises(FlowError) as refused:
        flow(BOOK, replace(bad, name="pay") if "name" not in change else bad)
    assert refused.value.code == code
    assert text in refused.value.message
    assert refused.value.message.startswith('flow "travel", task ')


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"final": ""}, "final is empty"),
        ({"ends": "never"}, 'unknown ends "never"'),
        ({"firing_limit": 0}, "firing_limit is a whole number from 1 to"),
        ({"description": b"x"}, "description is a text"),
    ],
)
def test_a_bad_setting_is_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(FlowError, match=text):
        flow(**fields)


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(FlowError, match='duplicate_name: flow "travel": task "book_hotel" is defined twice'):
        flow(BOOK, BOOK)
    with pytest.raises(FlowError, match='duplicate_name: flow "travel": attribute "n" is defined twice'):
        flow(attributes=(Attribute("n", "text"), Attribute("n", "integer")))


@pytest.mark.parametrize("word", ["dnoe", "doen", "odne", "donne", "don"])
def test_a_slip_of_the_keys_is_told_the_word(word: str) -> None:
    assert suggest(word, ["stage", "done"]) == '; did you mean "done"?'


def test_a_tree_of_any_depth_is_refused_without_running_out_of_stack() -> None:
    tree: Dependency = Term("book_hotel")
    for _ in range(50_000):
        tree = AllOf((tree,))
    with pytest.raises(FlowError, match="nested more than 100 deep"):
        flow(BOOK, Task(name="pay", depends=tree))
    while isinstance(tree, AllOf):  # or its end would be as deep as it is
        tree = tree.parts[0]

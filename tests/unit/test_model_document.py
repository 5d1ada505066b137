"""A definition becomes a document and comes back the same."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutirao.errors import FlowError
from mutirao.model import (
    AllOf,
    AnyOf,
    Attribute,
    AttributeType,
    Definition,
    Dependency,
    Task,
    Term,
    decode_document,
    encode_document,
    from_document,
    to_document,
)
from mutirao.model.check import MAX_TIMEOUT
from mutirao.model.dependency import TASK_STATES
from mutirao.model.task import MAX_BACKOFF

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
conditions = text.filter(str.strip)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
DEFAULTS: dict[AttributeType, st.SearchStrategy[Any]] = {
    "text": text,
    "integer": st.integers(-(2**63), 2**63 - 1),
    "number": st.decimals(allow_nan=False, allow_infinity=False) | st.integers() | st.floats(-1e300, 1e300),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1), timezones=zones | st.just(UTC)),  # noqa: DTZ001
    "json": json_values,
}


def names(size: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.from_regex(r"\A[a-s][a-z0-9_]{0,47}\Z"), max_size=size, unique=True)


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    kind = draw(st.sampled_from(list(DEFAULTS)))
    return Attribute(name, kind, draw(st.none() | DEFAULTS[kind]), draw(st.booleans()))


def dependencies(tasks: list[str]) -> st.SearchStrategy[Dependency]:
    terms: st.SearchStrategy[Dependency] = st.builds(Term, st.sampled_from(tasks), st.sampled_from(TASK_STATES))
    return st.recursive(terms, lambda inner: _groups(AllOf, inner) | _groups(AnyOf, inner), max_leaves=6)


def _groups(kind: type[AllOf | AnyOf], inner: st.SearchStrategy[Dependency]) -> st.SearchStrategy[Dependency]:
    return st.lists(inner, min_size=1, max_size=3).map(lambda parts: kind(tuple(parts)))


@st.composite
def tasks(draw: st.DrawFn, name: str, known: list[str]) -> Task:
    by_condition = draw(st.booleans())
    return Task(
        name=name,
        when=draw(conditions) if by_condition else None,
        depends=None if by_condition else draw(dependencies(known)),
        fires=draw(st.sampled_from(("each", "once"))),
        timeout=draw(st.none() | st.timedeltas(timedelta(microseconds=1), MAX_TIMEOUT)),
        retries=draw(st.integers(0, 2**31 - 1)),
        backoff=draw(st.timedeltas(timedelta(0), MAX_BACKOFF)),
        priority=draw(st.integers(-1000, 1000)),
        transactional=draw(st.booleans()),
        enabled=draw(st.booleans()),
        description=draw(st.none() | text),
    )


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    known = draw(names(4))
    return Definition(
        name=draw(st.from_regex(r"\Aflow_[a-z0-9_]{0,40}\Z")),
        attributes=tuple(draw(attributes(name)) for name in draw(names(4))),
        tasks=tuple(draw(tasks(name, known)) for name in known),
        final=draw(st.none() | conditions),
        ends=draw(st.sampled_from(("final", "quiet"))),
        firing_limit=draw(st.integers(1, 2**31 - 1)),
        description=draw(st.none() | text),
    )


@given(definitions())
def test_a_definition_survives_as_a_document_and_as_json(definition: Definition) -> None:
    assert from_document(to_document(definition)) == definition
    assert decode_document(encode_document(definition)) == definition


@given(definitions())
def test_an_encoded_document_is_json_that_any_reader_takes(definition: Definition) -> None:
    document = json.loads(encode_document(definition), parse_float=Decimal, parse_constant=pytest.fail)
    assert document["name"] == definition.name


def test_the_document_has_the_shape_that_sql_takes() -> None:
    definition = Definition(
        name="travel",
        attributes=(Attribute("price", "number", Decimal("1.50")),),
        tasks=(
            Task(name="book", when="true", timeout=timedelta(minutes=5)),
            Task(name="pay", depends=Term("book") & (Term("book", "failed") | "pay")),
        ),
    )
    common = {
        "retries": 3,
        "backoff": 0.1,
        "priority": 0,
        "transactional": False,
        "enabled": True,
        "description": None,
    }
    book = {"task": "book", "state": "succeeded"}
    either = {"any": [{"task": "book", "state": "failed"}, {"task": "pay", "state": "succeeded"}]}
    assert to_document(definition) == {
        "name": "travel",
        "description": None,
        "ends": "final",
        "final": None,
        "firing_limit": 10000,
        "attributes": [
            {"name": "price", "type": "number", "default": Decimal("1.50"), "searchable": False, "required": False}
        ],
        "tasks": [
            {"name": "book", "when": "true", "depends": None, "fires": "each", "timeout": 300, **common},
            {
                "name": "pay",
                "when": None,
                "depends": {"all": [book, either]},
                "fires": "once",
                "timeout": None,
                **common,
            },
        ],
    }
    assert b'"default":1.50,' in encode_document(definition)


def test_what_a_document_leaves_out_has_its_default() -> None:
    made = from_document({"name": "travel", "tasks": [{"name": "book", "when": "true"}]})
    assert made == Definition(name="travel", tasks=(Task(name="book", when="true"),))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "missing required field `name`"),
        ({"name": "travel", "tsks": []}, "unknown field `tsks`"),
        ({"name": "travel", "tasks": [{"name": "a", "when": 5}]}, r"\$.tasks\[0\].when"),
        ({"name": "travel", "attributes": [{"name": "a", "type": "int"}]}, r"\$.attributes\[0\].type"),
        ({"name": "travel", "attributes": [{"name": "a", "type": "date", "default": "x"}]}, 'attribute "a": its default is a date'),
        ({"name": "travel", "tasks": [{"name": "a", "depends": {"none": []}}]}, 'task "a": depends is made of'),
        ({"name": "travel", "tasks": [{"name": "a", "depends": {"task": "a"}}]}, 'task "a": depends is made of'),
        ({"name": "travel", "tasks": [{"name": "a", "when": "true", "timeout": 1e300}]}, "timeout is from"),
        ({"name": "travel", "final": object()}, "made of JSON values"),
    ],
)  # fmt: skip
def test_a_bad_document_is_refused(document: dict[str, Any], said: str) -> None:
    with pytest.raises(FlowError, match=said) as refused:
        from_document(document)
    assert refused.value.code in {"flow_invalid", "wrong_type"}


def test_a_document_nested_too_deep_is_refused() -> None:
    for depth in (101, 100_000):
        tree = '{"all":[' * depth + "]}" * depth
        with pytest.raises(FlowError, match="flow_invalid"):
            decode_document('{"name":"travel","tasks":[{"name":"a","depends":' + tree + "}]}")

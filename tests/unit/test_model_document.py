"""A definition becomes a document and comes back the same."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from flow_strategies import definitions, patient
from hypothesis import given

from mutirao.errors import FlowError
from mutirao.model import (
    Attribute,
    Definition,
    Task,
    Term,
    decode_document,
    encode_document,
    from_document,
    to_document,
)


@patient
@given(definitions())
def test_a_definition_survives_as_a_document_and_as_json(definition: Definition) -> None:
    assert from_document(to_document(definition)) == definition
    assert decode_document(encode_document(definition)) == definition


@patient
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

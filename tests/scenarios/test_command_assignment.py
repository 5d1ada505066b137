"""What people type as attribute=value, by the attribute's type."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from mutirao.cli.assignment import read_assignments, search_text
from mutirao.errors import RequestError
from mutirao.model import Attribute, Definition
from mutirao.model.attribute import ATTRIBUTE_TYPES

FLOW = Definition(name="flow", attributes=tuple(Attribute(f"a_{kind}", kind) for kind in ATTRIBUTE_TYPES))


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("a_text=new", "new"),
        ("a_text=", ""),
        ("a_text=a=b", "a=b"),
        ("a_text=null", "null"),
        ("a_text:=null", None),
        ('a_text:="quoted"', "quoted"),
        ("a_integer=-3", -3),
        ("a_integer=null", None),
        ("a_number=9.90", Decimal("9.90")),
        ("a_boolean=true", True),
        ("a_date=2031-12-24", date(2031, 12, 24)),
        ("a_timestamp=2031-12-24T18:00:00Z", datetime(2031, 12, 24, 18, tzinfo=UTC)),
        ('a_json={"x": [1]}', {"x": [1]}),
    ],
)
def test_value_is_read_by_its_type(word: str, value: Any) -> None:
    [found] = read_assignments(FLOW, [word]).values()
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("word", "code", "hint"),
    [
        ("a_integer=3.5", "wrong_type", "write it as 42"),
        ("a_integer=99999999999999999999", "wrong_type", "64 bits"),
        ("a_number=abc", "wrong_type", "write it as 9.90"),
        ("a_boolean=yes", "wrong_type", "true or false"),
        ("a_date=24.12.2031", "wrong_type", "2031-12-24"),
        ("a_timestamp=2031-12-24T18:00:00", "wrong_type", "2031-12-24T18:00:00Z"),
        ("a_json={", "wrong_type", "as JSON"),
        ("a_text:=new", "wrong_type", "JSON"),
        ("a_txet=new", "unknown_attribute", 'did you mean "a_text"?'),
        ("a_text", "wrong_call", "attribute=value"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(word: str, code: str, hint: str) -> None:
    with pytest.raises(RequestError) as refused:
        read_assignments(FLOW, [word])
    assert refused.value.code == code
    assert hint in refused.value.message


def test_attribute_given_twice_is_refused() -> None:
    with pytest.raises(RequestError, match="twice"):
        read_assignments(FLOW, ["a_text=a", "a_text=b"])


def test_value_is_looked_for_as_it_is_stored() -> None:
    assert search_text(FLOW, "a_text=9.90") == ("a_text", "9.90")
    assert search_text(FLOW, "a_number=9.90") == ("a_number", "9.90")
    assert search_text(FLOW, "a_date=2031-12-24") == ("a_date", "2031-12-24")

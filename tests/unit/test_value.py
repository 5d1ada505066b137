"""Values of attributes between Python and JSON."""

import enum
import json
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutirao.errors import RequestError
from mutirao.model import Attribute, AttributeType, StateCodec
from mutirao.model.attribute import ATTRIBUTE_TYPES
from mutirao.model.plain import decode_plain, encode_plain
from mutirao.model.value import from_json, to_json

CODEC = StateCodec("travel", [Attribute(f"{kind}_", kind, required=kind == "text") for kind in ATTRIBUTE_TYPES])


class Stage(enum.StrEnum):
    NEW = "new"


class Level(enum.IntEnum):
    HIGH = 3


class Moment(datetime):
    pass


@pytest.mark.parametrize(
    ("kind", "value", "encoded"),
    [
        ("text", "Ação \\u0000 ☕", '"Ação \\\\u0000 ☕"'),
        ("text", Stage.NEW, '"new"'),
        ("integer", 2**63 - 1, "9223372036854775807"),
        ("integer", Level.HIGH, "3"),
        ("number", Decimal("123456789012345678901234567890.10"), "123456789012345678901234567890.10"),
        ("number", 0.1, "0.1"),
        ("number", 10**30, str(10**30)),
        ("boolean", True, "true"),
        ("date", date(2031, 12, 24), '"2031-12-24"'),
        ("timestamp", datetime(2031, 12, 24, 18, tzinfo=UTC), '"2031-12-24T18:00:00Z"'),
        ("timestamp", datetime(2031, 12, 24, 18, tzinfo=timezone(timedelta(hours=-3))), '"2031-12-24T21:00:00Z"'),
        ("timestamp", Moment(2031, 12, 24, tzinfo=UTC), '"2031-12-24T00:00:00Z"'),
        ("json", {"a": [1, 2.5, None, True, "x"]}, '{"a":[1,2.5,null,true,"x"]}'),
        ("json", OrderedDict(a=(1, Stage.NEW)), '{"a":[1,"new"]}'),
        ("json", "text", '"text"'),
        ("json", {"price": [Decimal("12.50")]}, '{"price":[12.50]}'),
    ],
)
def test_a_value_is_written_as_json_and_read_back(kind: str, value: Any, encoded: str) -> None:
    written = CODEC.encode({f"{kind}_": value})
    assert written.decode() == f'{{"{kind}_":{encoded}}}'

    read = CODEC.decode(written)[f"{kind}_"]
    assert read == (json.loads(encoded) if kind == "json" else Decimal(str(value)) if kind == "number" else value)


def test_an_old_local_time_keeps_its_instant_to_the_second() -> None:
    moment = datetime(1900, 1, 1, tzinfo=ZoneInfo("America/Sao_Paulo"))  # its offset was -3:06:28
    assert CODEC.decode(CODEC.encode({"timestamp_": moment}))["timestamp_"] == moment


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("text", 5, "is a text: got 5"),
        ("text", b"x", "is a text: got b'x'"),
        ("text", "a\0b", "U+0000"),
        ("text", "\ud800", "a lone surrogate is not a character"),
        ("text", None, "is a text: got null"),
        ("integer", "abc", 'is an integer: got "abc"'),
        ("integer", True, "is an integer: got true"),
        ("integer", 5.0, "is an integer: got 5.0"),
        ("integer", 2**63, "an integer has 64 bits"),
        ("number", "1.5", 'is a number: got "1.5"'),
        ("number", True, "is a number: got true"),
        ("number", float("nan"), "a number is finite"),
        ("number", Decimal("Infinity"), "a number is finite"),
        ("number", Decimal("1e200000"), "at most 131072 digits"),
        ("number", Decimal("1e-20000"), "16383 after it"),
        ("boolean", 1, "is a boolean: got 1"),
        ("date", "2031-12-24", 'is a date: got "2031-12-24"'),
        ("date", datetime(2031, 12, 24, tzinfo=UTC), "a date has no time; write .date()"),
        ("timestamp", datetime(2031, 12, 24), "a timestamp has a zone, such as datetime.now(UTC)"),  # noqa: DTZ001
        ("timestamp", date(2031, 12, 24), "is a timestamp: got"),
        ("timestamp", datetime.min.replace(tzinfo=timezone(timedelta(hours=3))), "between the years 1 and 9999"),
        ("json", {"a": date(2031, 12, 24)}, "cannot be written as JSON: Object of type date"),
        ("json", [float("nan")], "cannot be written as JSON: Out of range float"),
        ("json", [10**5000], "cannot be written as JSON: Exceeds the limit"),
        ("json", {1, 2}, "cannot be written as JSON: Object of type set"),
        ("json", ["\0"], "U+0000"),
        ("json", {"a": ["\ud800"]}, "a lone surrogate"),
    ],
)
def test_a_wrong_value_is_refused_by_name_and_type(kind: str, value: Any, said: str) -> None:
    with pytest.raises(RequestError) as refused:
        CODEC.encode({"boolean_": True, f"{kind}_": value})
    assert refused.value.code == "wrong_type"
    assert refused.value.message.startswith(f'attribute "{kind}_" of flow "travel" is ')
    assert said in refused.value.message


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(RequestError, match="cannot be written as JSON"):
        CODEC.encode({"json_": endless})


def test_a_long_value_is_shortened_in_the_message() -> None:
    with pytest.raises(RequestError) as refused:
        CODEC.encode({"integer_": "x" * 10_000})
    assert len(refused.value.message) < 200


def test_any_attribute_may_be_none_unless_it_is_required() -> None:
    assert CODEC.encode({"date_": None, "json_": None}) == b'{"date_":null,"json_":null}'


def test_an_unknown_attribute_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(RequestError, match='flow "travel" has no attribute "tekst_"; did you mean "text_"') as refused:
        CODEC.encode({"tekst_": None})
    assert refused.value.code == "unknown_attribute"
    with pytest.raises(RequestError, match="unknown_attribute"):
        CODEC.encode({5: "x"})  # type: ignore[dict-item]


@pytest.mark.parametrize("change", [None, 5, "hotel", ["hotel"], {"hotel"}])
def test_what_is_not_a_change_is_refused(change: Any) -> None:
    with pytest.raises(RequestError, match=r"a task returns its change, a mapping .* got"):
        CODEC.encode(change)
    with pytest.raises(RequestError, match=r"a task returns its change, a mapping .* got"):
        encode_plain(change)


def test_a_state_may_have_nulls_and_keys_that_the_flow_does_not_know() -> None:
    assert CODEC.decode('{"text_":null,"other":{"a":[1]}}') == {"text_": None}


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (b'{"integer_":"abc"}', 'attribute "integer_" of flow "travel" is an integer: got "abc"'),
        (b'{"timestamp_":"2031-12-24T18:00:00"}', "a timestamp is written 2031-12-24T18:00:00Z"),
        (b"[]", 'a state of flow "travel" is a JSON object'),
        (b'{"text_":', 'a state of flow "travel" is a JSON object'),
        (b'{"text_":"\xff"}', 'a state of flow "travel" is a JSON object'),
        (b'{"integer_":' + b"9" * 5000 + b"}", 'a state of flow "travel" is a JSON object'),
        (b'{"json_":' + b"[" * 100_000, 'a state of flow "travel" is a JSON object'),
    ],
)
def test_a_state_that_does_not_fit_is_refused(state: bytes, said: str) -> None:
    with pytest.raises(RequestError) as refused:
        CODEC.decode(state)
    assert refused.value.code == "wrong_type"
    assert said in refused.value.message


@given(st.text())
def test_any_text_is_either_kept_exactly_or_refused(text: str) -> None:
    writable = "\0" not in text and text.encode(errors="ignore").decode() == text
    try:
        assert CODEC.decode(CODEC.encode({"text_": text})) == {"text_": text}
        assert CODEC.decode(CODEC.encode({"json_": [text]})) == {"json_": [text]}
    except RequestError:
        assert not writable
    else:
        assert writable


@pytest.mark.parametrize(
    ("kind", "value", "as_json"),
    [
        ("date", date(2031, 12, 24), "2031-12-24"),
        ("timestamp", datetime(2031, 12, 24, tzinfo=UTC), "2031-12-24T00:00:00Z"),
        ("number", Decimal("1.50"), Decimal("1.50")),
        ("json", [1], [1]),
        ("text", None, None),
    ],
)
def test_one_value_becomes_json_and_comes_back(kind: AttributeType, value: Any, as_json: Any) -> None:
    assert to_json(kind, value) == as_json
    assert from_json(kind, as_json) == value


def test_values_of_an_unknown_flow_are_checked_by_their_own_type() -> None:
    state = decode_plain('{"a":[1],"b":"2031-12-24"}')
    assert dict(state) == {"a": [1], "b": "2031-12-24"}
    with pytest.raises(TypeError):
        state["a"] = 5  # type: ignore[index]
    change = {"a": Decimal("1.50"), "b": date(2031, 12, 24), "c": None, "d": {"e": [True]}, "f": 5, "g": "x"}
    assert encode_plain(change) == b'{"a":1.50,"b":"2031-12-24","c":null,"d":{"e":[true]},"f":5,"g":"x"}'
    with pytest.raises(RequestError, match=r'wrong_type: attribute "a" is a number: got nan; .*finite'):
        encode_plain({"a": float("nan")})

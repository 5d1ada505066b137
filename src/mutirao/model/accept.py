"""Which Python values an attribute accepts, by its type. On the hot path: the usual is tested first.

Each function takes a value and gives what the JSON encoder shall write for it, or raises `MisfitError`.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec

from mutirao.errors import RequestError
from mutirao.model.attribute import AttributeType
from mutirao.model.file import File

_FILE_FIELDS = frozenset(each.name for each in fields(File))
_SCALARS = frozenset({str, int, bool, type(None)})
_MAX_INTEGER = 2**63 - 1
# What PostgreSQL's numeric can hold: digits before the point and after it.
_DIGITS_BEFORE = 131_072
_DIGITS_AFTER = 16_383

# For the unusual in a JSON value: it takes subclasses and tuples, and refuses what is not JSON.
_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class MisfitError(Exception):
    """The value is not of the type; the text, if there is one, says what would be right."""


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if isinstance(value, str):  # a StrEnum, say: the encoder knows only str itself
        return str.__str__(value)
    raise MisfitError


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if -_MAX_INTEGER - 1 <= value <= _MAX_INTEGER:
            return value if type(value) is int else int(value)
        raise MisfitError("an integer has 64 bits; a number has no such limit")
    raise MisfitError


def _number(value: Any) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)  # written by its repr, so 0.1 is exactly 0.1
        raise MisfitError("a number is finite")
    if isinstance(value, int) and not isinstance(value, bool):
        if -_MAX_INTEGER - 1 <= value <= _MAX_INTEGER:
            return int(value)
        value = Decimal(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    raise MisfitError


def _decimal(value: Decimal) -> Decimal:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise MisfitError("a number is finite")
    if value.adjusted() >= _DIGITS_BEFORE or -exponent > _DIGITS_AFTER:
        raise MisfitError(f"a number has at most {_DIGITS_BEFORE} digits before the point and {_DIGITS_AFTER} after it")
    return value if type(value) is Decimal else Decimal(value)


def _boolean(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise MisfitError


def _date(value: Any) -> date:
    if type(value) is date:
        return value
    if isinstance(value, datetime):
        raise MisfitError("a date has no time; write .date()")
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    raise MisfitError


def _timestamp(value: Any) -> datetime:
    """In UTC: msgspec would round an offset to the minute, and old local times have seconds in theirs."""
    if not isinstance(value, datetime):
        raise MisfitError
    if type(value) is datetime and value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise MisfitError("a timestamp has a zone, such as datetime.now(UTC)")
    try:
        moved = value.astimezone(UTC)
    except OverflowError as error:
        raise MisfitError("a timestamp lies between the years 1 and 9999") from error
    return datetime.combine(moved.date(), moved.timetz())


def _json(value: Any) -> Any:
    try:
        return value if _is_plain(value) else msgspec.Raw(_encode_json(value).encode())
    except TypeError as error:
        raise MisfitError(f"it cannot be written as JSON: {error}") from error


def _is_plain(value: Any) -> bool:
    """Whether msgspec would write the value as JSON and nothing else; it takes dates, sets and NaN without a word."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        return all(type(key) is str for key in value) and all(map(_is_plain, value.values()))
    if kind is list:
        return all(map(_is_plain, value))
    if kind is Decimal:  # numbers of requests are read so, and stay exact
        return _decimal(value) is value
    return kind is float and math.isfinite(value)


def _file(value: Any) -> File:
    """What the store answered when the content was put there, or the same as a mapping."""
    if isinstance(value, File):
        return value
    if not isinstance(value, Mapping) or not value.keys() <= _FILE_FIELDS:
        raise MisfitError('it is what the file store answered: {"sha256": …, "name": …, "size": …, "media": …}')
    try:
        return File(**value)
    except TypeError as error:
        raise MisfitError("it has a sha256, a name and a size") from error
    except RequestError as error:
        raise MisfitError(error.message) from error


ACCEPT: dict[AttributeType, Callable[[Any], Any]] = {
    "text": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
    "json": _json,
    "file": _file,
}

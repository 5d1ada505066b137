"""One value of an attribute: Python to JSON and back, strictly, by the attribute's type.

A value that does not fit raises `MisfitError`; whoever knows the flow and the attribute makes a refusal of it, with
`misfit` for the wording. Whole states and changes are in `state.py`.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from mutirao.model.accept import ACCEPT, MisfitError
from mutirao.model.attribute import AttributeType
from mutirao.model.file import File

ENCODER = msgspec.json.Encoder(decimal_format="number")

PYTHON_TYPES: dict[AttributeType, Any] = {
    "text": str,
    "integer": int,
    "number": Decimal,
    "boolean": bool,
    "date": date,
    "timestamp": Annotated[datetime, msgspec.Meta(tz=True)],
    "json": Any,
    "file": File,
}

_ARTICLES: dict[AttributeType, str] = {
    "text": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "date": "a date",
    "timestamp": "a timestamp",
    "json": "JSON",
    "file": "a file",
}
_SHOWN = 60
_BACKSLASH = ord("\\")


def to_json(kind: AttributeType, value: Any) -> Any:
    """The value as JSON has it: dates as ISO strings, an exact number as a Decimal."""
    target = {"number": Decimal, "date": str, "timestamp": str}.get(kind, Any)
    return None if value is None else msgspec.json.decode(encode_value(kind, value), type=target)


def from_json(kind: AttributeType, value: Any) -> Any:
    try:
        return msgspec.convert(value, PYTHON_TYPES[kind] | None)
    except msgspec.ValidationError as error:
        raise MisfitError(_hint(kind)) from error


def normal(kind: AttributeType, value: Any) -> Any:
    """The value as it will come back from the database."""
    return None if value is None else decode_value(kind, encode_value(kind, value))


def encode_value(kind: AttributeType, value: Any) -> bytes:
    try:
        encoded = ENCODER.encode(ACCEPT[kind](value))
    except UnicodeEncodeError as error:
        raise MisfitError("a lone surrogate is not a character") from error
    except (ValueError, RecursionError) as error:
        raise MisfitError(f"it cannot be written as JSON: {error}") from error
    if has_nul(encoded):
        raise MisfitError("PostgreSQL keeps no character U+0000")
    return encoded


def decode_value(kind: AttributeType, encoded: bytes | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(encoded, type=PYTHON_TYPES[kind] | None)
    except msgspec.ValidationError as error:
        raise MisfitError(_hint(kind)) from error


def has_nul(encoded: bytes) -> bool:
    """Whether the JSON text holds a NUL, and not just the text of its escape, whose backslash is doubled."""
    # A byte is looked for many times quicker than bytes are, and few texts have a backslash at all.
    return _BACKSLASH in encoded and rb"\u0000" in encoded.replace(rb"\\", b"")


def misfit(kind: AttributeType, value: Any, reason: MisfitError) -> str:
    """`is an integer: got "abc"`, with the reason when there is one."""
    return f"is {_ARTICLES[kind]}: got {_shown(value)}" + (f"; {reason}" if str(reason) else "")


def _shown(value: Any) -> str:
    try:
        if value is None or isinstance(value, bool):
            return ENCODER.encode(value).decode()
        text = f'"{value}"' if isinstance(value, str) else repr(value)
    except Exception:  # noqa: BLE001 -- it is a user's object, and its repr may raise anything
        return "something"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _hint(kind: AttributeType) -> str:
    example = {"date": "2031-12-24", "timestamp": "2031-12-24T18:00:00Z"}.get(kind)
    return f"a {kind} is written {example}" if example else ""

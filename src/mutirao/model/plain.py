"""States and changes of a flow whose attributes this program does not know: it was defined in SQL.

Values are read as plain JSON. What is written is checked by the value's own type here, and by the attribute's type
in the database.
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import msgspec

from mutirao.errors import RequestError
from mutirao.model.accept import MisfitError
from mutirao.model.attribute import AttributeType
from mutirao.model.file import File
from mutirao.model.state import Change, not_a_change
from mutirao.model.value import ENCODER, encode_value, misfit

_TYPES_OF: dict[type, AttributeType] = {
    str: "text",
    int: "number",
    float: "number",
    Decimal: "number",
    bool: "boolean",
    date: "date",
    datetime: "timestamp",
    File: "file",
}


def decode_plain(state: bytes | str) -> Mapping[str, Any]:
    return MappingProxyType(msgspec.json.decode(state, type=dict[str, Any]))


def encode_plain(change: Change) -> bytes:
    if not isinstance(change, Mapping):
        raise not_a_change("a function bound by @handles", change)
    return ENCODER.encode({str(name): _plain(str(name), value) for name, value in change.items()})


def _plain(name: str, value: Any) -> Any:
    if value is None:
        return None
    kind = _TYPES_OF.get(type(value), "json")
    try:
        return msgspec.Raw(encode_value(kind, value))
    except MisfitError as reason:
        raise RequestError("wrong_type", f'attribute "{name}" {misfit(kind, value, reason)}') from None

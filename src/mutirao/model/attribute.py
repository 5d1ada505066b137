"""An attribute: one typed, named item of an instance's state.

Any attribute of any instance may be null: a flow learns its data step by step. That Python code declares
`stage: str` and not `str | None` is a promise of that code about its own writes, and is kept in the `StateCodec`.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

# An integer has 64 bits; a number is exact, a Decimal; a timestamp has a zone.
AttributeType = Literal["text", "integer", "number", "boolean", "date", "timestamp", "json"]
ATTRIBUTE_TYPES: tuple[AttributeType, ...] = get_args(AttributeType)


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: AttributeType
    default: Any = None
    searchable: bool = False

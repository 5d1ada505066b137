"""An attribute: one typed, named item of an instance's state.

An attribute may be null, since a flow learns its data step by step, unless it is required: then an instance starts
with a value for it, and is never without one.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

# An integer has 64 bits; a number is exact, a Decimal; a timestamp has a zone; a file stands for its content.
AttributeType = Literal["text", "integer", "number", "boolean", "date", "timestamp", "json", "file"]
ATTRIBUTE_TYPES: tuple[AttributeType, ...] = get_args(AttributeType)


@dataclass(frozen=True, slots=True)
class Query:
    """What a json attribute is read by: its rows, each time a job that takes it as an input begins."""

    database: str
    expression: str


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: AttributeType
    default: Any = None
    searchable: bool = False
    required: bool = False
    query: Query | None = None
    filename: str | None = None  # what the file is called where a program or a person meets it

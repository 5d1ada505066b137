"""From a Python annotation to an attribute's type: `Annotated[str | None, searchable]` is a searchable text.

`Annotated[list[Any] | None, Query("stock", "select …")]` is json, read by a query whenever a job begins that takes it.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar, TypeAlias, get_args, get_origin

from mutirao.errors import FlowError
from mutirao.model import AttributeType, File, Query

Json: TypeAlias = Any

_TYPES: dict[Any, AttributeType] = {
    str: "text",
    int: "integer",
    Decimal: "number",
    bool: "boolean",
    date: "date",
    datetime: "timestamp",
    File: "file",
    dict: "json",
    list: "json",
    Any: "json",
}
_KNOWN = "str, int, Decimal, bool, date, datetime, File, dict[str, Any], list[Any] or Json, each also with | None"


class Searchable:
    """The mark of an attribute that people will filter by: `Annotated[str, searchable]`."""

    def __repr__(self) -> str:
        return "searchable"


searchable = Searchable()


@dataclass(frozen=True, slots=True)
class Reading:
    type: AttributeType
    optional: bool = False
    searchable: bool = False
    query: Query | None = None


def resolve(annotation: Any, known: dict[str, Any], names: Mapping[str, Any]) -> Any:
    """The annotation itself, also when it was kept as a string: by a module's `known` names and those at its place."""
    holder = type("holder", (), {"__annotations__": {"it": annotation}})
    return typing.get_type_hints(holder, known, dict(names), include_extras=True)["it"]


def is_class_variable(annotation: Any) -> bool:
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def read_annotation(place: str, annotation: Any) -> Reading:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = read_annotation(place, parts[0])
        query = next((each for each in parts[1:] if isinstance(each, Query)), inner.query)
        return Reading(inner.type, inner.optional, inner.searchable or searchable in parts[1:], query)
    if origin in (typing.Union, types.UnionType):
        return _read_union(place, annotation)
    kind = "json" if typing.is_typeddict(annotation) else _TYPES.get(origin or annotation)
    if kind is None:
        raise FlowError("wrong_type", f"{place}: no attribute can be {_shown(annotation)}; {_advice(annotation)}")
    return Reading(kind, optional=annotation is Any)


def _read_union(place: str, annotation: Any) -> Reading:
    others = [part for part in get_args(annotation) if part is not type(None)]
    if len(others) != 1:
        raise FlowError("wrong_type", f"{place}: no attribute can be {_shown(annotation)}; it is {_KNOWN}")
    inner = read_annotation(place, others[0])
    return Reading(inner.type, optional=True, searchable=inner.searchable, query=inner.query)


def _advice(annotation: Any) -> str:
    if annotation is float:
        return "numbers are exact here: write Decimal"
    return f"it is {_KNOWN}"


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)

"""The small checks that a definition is made of: each names the place, what is wrong, and what would be right."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mutirao.errors import FlowError
from mutirao.model.name import quote, suggest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mutirao.model.attribute import Attribute

MAX_INT = 2**31 - 1
MAX_CONDITION = 4000
MAX_PRIORITY = 1_000_000
NO_TIME = timedelta(0)
MAX_TIMEOUT = timedelta(days=36_500)  # up to here, seconds in a JSON number are exact to the microsecond


def named(place: str, field: str, name: Any, attributes: Iterable[Attribute]) -> Attribute:
    known = {each.name: each for each in attributes}
    if name not in known:
        text = f"{place}: {field} names the unknown attribute {quote(name)}{suggest(name, known)}"
        raise FlowError("unknown_attribute", text)
    return known[name]


def check_unique(place: str, kind: str, names: list[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise FlowError("duplicate_name", f"{place}: {kind} {quote(name)} is defined twice; give one another name")


def check_condition(place: str, field: str, text: Any) -> None:
    check_text(place, field, text)
    if text is not None and not text.strip():
        raise FlowError("flow_invalid", f"{place}: {field} is empty; write a SQL condition, such as \"stage = 'new'\"")
    if text is not None and len(text) > MAX_CONDITION:
        told = f"{field} has {len(text)} characters; {MAX_CONDITION} are allowed"
        raise FlowError("condition_too_long", f"{place}: {told}")


def check_text(place: str, field: str, value: Any) -> None:
    if value is not None:
        check_type(place, field, value, str)
        if "\0" in value:
            raise FlowError("flow_invalid", f"{place}: {field} has a character U+0000, which PostgreSQL cannot keep")


def check_choice(place: str, field: str, value: Any, choices: Collection[str]) -> None:
    if value not in choices:
        raise FlowError("flow_invalid", f"{place}: unknown {field} {quote(value)}{suggest(value, choices)}")


def check_integer(place: str, field: str, value: Any, *, least: int, most: int = MAX_INT) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise FlowError("flow_invalid", f"{place}: {field} is a whole number from {least} to {most}: got {value!r}")


def check_duration(place: str, field: str, value: Any, *, most: timedelta) -> None:
    if not isinstance(value, timedelta):
        raise FlowError("flow_invalid", f"{place}: {field} is a timedelta, such as timedelta(seconds=5): got {value!r}")
    if not NO_TIME <= value <= most:
        raise FlowError("flow_invalid", f"{place}: {field} is from zero to {_shown(most)}: got {_shown(value)}")


def _shown(span: timedelta) -> str:
    return str(span).removesuffix(", 0:00:00")


def check_span(place: str, field: str, value: Any) -> None:
    """A time that passes, or None."""
    if value is not None:
        check_duration(place, field, value, most=MAX_TIMEOUT)
        if value <= NO_TIME:
            raise FlowError("flow_invalid", f"{place}: {field} is more than zero; without it there is no limit")


def check_priority(place: str, priority: Any) -> None:
    check_integer(place, "priority", priority, least=-MAX_PRIORITY, most=MAX_PRIORITY)


def check_type(place: str, field: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        wanted = {str: "a text", bool: "true or false"}.get(kind, f"a {kind.__name__}")
        raise FlowError("flow_invalid", f"{place}: {field} is {wanted}: got {value!r}")

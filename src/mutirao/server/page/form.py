"""Fields for attributes: what a form shows for each type, and with what it begins."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from mutirao.model.value import ENCODER


@dataclass(frozen=True, slots=True)
class Field:
    """`name` is its place in what is sent, `text` what it begins with."""

    name: str
    label: str
    type: str
    required: bool = False
    text: str = ""

    @property
    def id(self) -> str:
        return "field-" + self.name.replace(".", "-")


def field_for(  # noqa: PLR0913 what a field has
    name: str, kind: str, *, within: str, required: bool = False, value: Any = None, zone: tzinfo = UTC
) -> Field:
    """A field for an attribute, such as `change.days`; times are in this zone."""
    return Field(f"{within}.{name}", label_of(name), kind, required, text_of(value, kind, zone))


def label_of(name: str) -> str:
    """An attribute's name as people read it."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def text_of(value: Any, kind: str, zone: tzinfo = UTC) -> str:
    """A value as a field holds it: a field for times knows no zone."""
    if value is None:
        return ""
    if kind == "timestamp":
        return _local(value, zone)
    if kind in ("json", "file", "boolean"):
        return ENCODER.encode(value).decode()
    return str(value)


def _local(value: Any, zone: tzinfo) -> str:
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return at.astimezone(zone).replace(tzinfo=None, microsecond=0).isoformat()
    except (ValueError, OverflowError):  # PostgreSQL has times that Python has not, such as infinity
        return ""

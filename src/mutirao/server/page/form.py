"""Fields for attributes: what a form shows for each type, and with what it begins."""

from dataclasses import dataclass
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


def field_for(name: str, kind: str, *, within: str, required: bool = False, value: Any = None) -> Field:
    """A field for an attribute, such as `change.days`."""
    return Field(f"{within}.{name}", label_of(name), kind, required, text_of(value, kind))


def label_of(name: str) -> str:
    """An attribute's name as people read it."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def text_of(value: Any, kind: str) -> str:
    """A value as a field holds it."""
    if value is None:
        return ""
    if kind in ("json", "file", "boolean"):
        return ENCODER.encode(value).decode()
    return str(value)

"""What was ordered by a batch, in words: which instances were chosen, and what they are given."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mutirao.database.batch import Batch
from mutirao.server.page.catalogue import marked
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.reason import words

_CHOSEN = {
    "flow": marked("Flow"),
    "key": marked("Key"),
    "ids": marked("Instances"),
    "status": marked("State"),
    "version": marked("Version"),
    "started_after": marked("Started after"),
    "started_before": marked("Started before"),
    "task": marked("Failed task"),
    "error": marked("Error"),
    "exception": marked("Exception"),
    "where": marked("Condition"),
}
_GIVEN = {
    "change": marked("New values"),
    "task": marked("Task"),
    "safe_point": marked("Back to"),
    "to": marked("To version"),
    "tasks": marked("Tasks called otherwise"),
    "attributes": marked("Attributes called otherwise"),
    "version": marked("Version"),
    "closed_before": marked("Closed before"),
}
_TIMES = ("started_after", "started_before", "closed_before")
_LISTED = 50


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was said. What it is, `kind` tells the page: it leads to flows and instances, and has words for a status."""

    label: str
    kind: str
    values: tuple[Any, ...]
    left: int = 0
    """How many more there are."""


def chosen_by(chosen: dict[str, Any], reader: Reader) -> list[Line]:
    """What a filter says."""
    return [Line(_CHOSEN.get(name, name), name, *_values(name, value, reader)) for name, value in chosen.items()]


def order_of(batch: Batch, reader: Reader) -> list[Line]:
    given = (
        # Its task is the one that is done, not one that has failed; no page about a status or a flow is meant.
        Line(_GIVEN.get(name, name), "", *_values(name, value, reader))
        for name, value in batch.arguments.items()
    )
    return [*chosen_by(batch.filter, reader), *given]


def _values(name: str, value: Any, reader: Reader) -> tuple[tuple[Any, ...], int]:
    if name == "ids":
        return tuple(value[:_LISTED]), len(value) - len(value[:_LISTED])
    if isinstance(value, dict):
        return tuple(_pairs(name, value, reader)), 0
    if name == "exception":
        return (words(reader, value, None)[0],), 0
    if name in _TIMES:
        return (_moment(value, reader),), 0
    return (value if isinstance(value, str) else reader.value(value),), 0


def _pairs(name: str, value: dict[str, Any], reader: Reader) -> Iterator[str]:
    """New values, or names of before and now."""
    for key, each in value.items():
        yield f"{label_of(key)}: {reader.value(each)}" if name == "change" else f"{key} → {each}"


def _moment(text: str, reader: Reader) -> str:
    try:
        return reader.moment(datetime.fromisoformat(text))
    except ValueError:  # PostgreSQL has times that Python has not, such as infinity
        return text

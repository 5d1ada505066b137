"""What happened to an instance, step by step, and what each step changed: before and after."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mutirao.database.record import TraceStep
from mutirao.model import Definition
from mutirao.model.wording import shortened
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.story import Line, of_trace

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Change:
    """One attribute, as it was and as it is since."""

    label: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the trace: told, what it changed, and which tasks it started."""

    id: int
    line: Line
    changes: tuple[Change, ...]
    fired: tuple[str, ...]


def steps_of(reader: Reader, definition: Definition, rows: Iterable[TraceStep]) -> list[Step]:
    types = {each.name: each.type for each in definition.attributes}
    found = list(rows)
    lines = of_trace(reader, found)
    return [
        Step(row.id, line, tuple(_changes(reader, types, row)), tuple(label_of(each) for each in row.fired))
        for row, line in zip(found, lines, strict=True)
    ]


def _changes(reader: Reader, types: Mapping[str, str], row: TraceStep) -> list[Change]:
    if row.state is None:
        return []
    before = row.was or {}
    names = [*types, *(name for name in (*before, *row.state) if name not in types)]
    return [
        Change(
            label_of(name),
            _text(reader, types, name, before.get(name)),
            _text(reader, types, name, row.state.get(name)),
        )
        for name in dict.fromkeys(names)
        if before.get(name) != row.state.get(name)
    ]


def _text(reader: Reader, types: Mapping[str, str], name: str, value: Any) -> str:
    try:
        text = reader.typed(value, types.get(name, "json"))
    except (ValueError, OverflowError):  # PostgreSQL has times that Python has not, such as infinity
        text = str(value)
    return shortened(text, _LONGEST)

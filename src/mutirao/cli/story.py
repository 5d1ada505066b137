"""A trace, told: what happened, what it changed since the state before, what that set off."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from mutirao.cli import render
from mutirao.database.record import TraceRow
from mutirao.model import Definition

EXCEPTION_TASK = "_EXCPT"

_KINDS = {
    "start": "started",
    "finish": "{task} done",
    "fail": "{task} failed for good",
    "drop": "{task} ended, not kept",
    "skip": "{task} skipped",
    "parked": "{task} waits with its change",
    "reach": "{task} is running",
    "look": "looked at by a new version",
    "set": "set from outside",
    "repair": "repaired",
    "cancel": "cancelled",
    "suspend": "suspended",
    "resume": "resumed",
}
_BAD = frozenset({"fail", "parked", "drop"})


@dataclass(frozen=True, slots=True)
class Event:
    """One row of a trace against the state before it."""

    at: datetime
    what: str
    is_bad: bool
    who: str
    """The worker, or whoever did it from outside."""
    changed: Mapping[str, tuple[Any, Any]]
    note: str
    fired: Sequence[str]
    status: str
    """Where the instance went by this; empty when it stayed as it was."""


def tell(rows: Sequence[TraceRow], definition: Definition) -> list[Event]:
    events: list[Event] = []
    before: Mapping[str, Any] = {}
    status = ""
    for row in rows:
        events.append(
            Event(
                at=row.at,
                what=_what(row),
                is_bad=row.kind in _BAD or _is_failed_try(row),
                who=row.writer,
                changed={} if row.state is None else _changes(before, render.ordered(row.state, definition)),
                note=_note(row),
                fired=[task for task in row.fired if task != EXCEPTION_TASK],
                status=row.status if row.status != status else "",
            )
        )
        before = before if row.state is None else row.state
        status = row.status
    return events


def story_table(events: Sequence[Event], started_at: datetime) -> Table:
    """Times count from the start of the instance, so that one sees where they went."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("after", justify="right", no_wrap=True)
    for name in ("what", "which changed", "and set off"):
        table.add_column(name, overflow="fold")
    for event in events:
        table.add_row(render.span(event.at - started_at), _headline(event), _details(event), _outcome(event))
    return table


def in_short(rows: Sequence[TraceRow]) -> str:
    """The whole story in one line: `book_hotel, book_flight (2 tries), confirm`."""
    failed_tries: dict[str, int] = {}
    done: list[str] = []
    for row in rows:
        if row.task is None:
            continue
        if _is_failed_try(row):
            failed_tries[row.task] = failed_tries.get(row.task, 0) + 1
        elif row.kind == "finish":
            tries = failed_tries.pop(row.task, 0) + 1
            done.append(row.task if tries == 1 else f"{row.task} ({tries} tries)")
        elif row.kind == "fail":
            done.append(f"{row.task} failed")
    return ", ".join(done)


def _what(row: TraceRow) -> str:
    if _is_failed_try(row):
        return f"{row.task} failed, to be tried again"
    if row.kind == "retry":
        return f"{row.task} retried"
    return _KINDS.get(row.kind, row.kind).format(task=row.task or "")


def _is_failed_try(row: TraceRow) -> bool:
    """A person's retry writes a state; an attempt that failed writes none."""
    return row.kind == "retry" and row.state is None


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    names = [*after, *(name for name in before if name not in after)]
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _note(row: TraceRow) -> str:
    note = row.note or {}
    return str(note.get("reason") or render.error(note.get("error") or "") or note.get("code") or "")


def _headline(event: Event) -> Text:
    line = Text(event.what, "red" if event.is_bad else "")
    return line.append(f"\nby {render.writer(event.who)}", "dim") if event.who else line


def _details(event: Event) -> Text:
    lines = Text("\n").join(_change(name, old, new) for name, (old, new) in event.changed.items())
    if not event.note:
        return lines
    note = Text(render.shortened(event.note, 200), "red" if event.is_bad else "italic")
    return Text("\n").join([lines, note]) if event.changed else note


def _change(name: str, old: Any, new: Any) -> Text:
    line = Text(name).append(" = ", "dim")
    if old is not None:
        line.append(f"{render.value(old)} → ", "dim")
    return line.append(render.value(new))


def _outcome(event: Event) -> Text:
    line = Text(", ".join(event.fired))
    if event.status:
        line.append("\n" if event.fired else "").append_text(render.status(event.status))
    return line

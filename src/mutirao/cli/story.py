"""A trace as a table for the terminal."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from mutirao.cli import render
from mutirao.database.story import Event


def story_table(events: Sequence[Event], started_at: datetime) -> Table:
    """Times count from the start of the instance, so that one sees where they went; `why --at` takes the number after #."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("after", justify="right", no_wrap=True)
    for name in ("what", "which changed", "and set off"):
        table.add_column(name, overflow="fold")
    for event in events:
        table.add_row(render.span(event.at - started_at), _headline(event), _details(event), _outcome(event))
    return table


def _headline(event: Event) -> Text:
    line = Text(event.what, "red" if event.is_bad else "")
    return line.append(f"\nby {render.writer(event.who)} #{event.row}", "dim")


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

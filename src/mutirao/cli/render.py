"""How the engine's things look on a terminal. What users wrote goes through Text, never through markup."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from rich import box
from rich.table import Table
from rich.text import Text

from mutirao.model.wording import error, shortened, size, span, state, value, visible

__all__ = [
    "GAP",
    "ago",
    "duration",
    "error",
    "facts",
    "moment",
    "moment_to_come",
    "one_line",
    "shortened",
    "size",
    "span",
    "state",
    "status",
    "table",
    "value",
    "visible",
    "writer",
]

_COLOURS = {
    "open.running": "cyan",
    "open.exception": "bold red",
    "open.notrunning.suspended": "yellow",
    "closed.completed": "green",
    "closed.aborted": "magenta",
    "running": "cyan",
    "waiting": "yellow",
    "synchronizing": "yellow",
    "closed.terminated": "magenta",
    "failed": "bold red",
    "parked": "red",
    "succeeded": "green",
    "aborted": "magenta",
    "blocked": "red",
    "compensated": "magenta",
    "not_ready": "dim",
}
_HELD = {"cancelled": "being cancelled", "undoing": "being rolled back"}
_LONG_NAME = 14

GAP = 2
"""Between two columns of a table; the box takes one of them."""


def table(*columns: str, numbers: Iterable[str] = ()) -> Table:
    """A table with a rule under its head; `numbers` stand to the right. For long ones there is `Listing`."""
    made = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", no_wrap=True)
    return made


def one_line(text: Text | str) -> Text:
    """Cut where its column ends, not wrapped."""
    line = Text(text) if isinstance(text, str) else text
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def facts(rows: Mapping[str, Any]) -> Table:
    """Names to the left, what they are to the right."""
    made = Table(show_header=False, box=None, pad_edge=False)
    for name, what in rows.items():
        made.add_row(Text(name, "bold"), what if isinstance(what, Text | Table) else Text(str(what)))
    return made


def status(word: str, hold: str | None = None) -> Text:
    """What holds an instance is told where its status does not: it is to end, but something is still to be done."""
    found = Text(word, _COLOURS.get(word, ""))
    return found.append(f", {_HELD[hold]}", "magenta") if hold in _HELD else found


def writer(name: str) -> str:
    """Who it was. Of a long name both ends: a worker's has the host in front and the process behind."""
    return name if len(name) <= _LONG_NAME else f"{name[:4]}…{name[5 - _LONG_NAME :]}"


def moment(at: datetime | None) -> str:
    """A time of day, with the date if it is not today's."""
    if at is None:
        return ""
    local = at.astimezone()
    return local.strftime("%H:%M:%S" if local.date() == datetime.now().astimezone().date() else "%Y-%m-%d %H:%M:%S")


def moment_to_come(at: datetime) -> str:
    """With its date and its zone: what is due is due by some clock on a wall."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def ago(at: datetime) -> str:
    return f"{span(datetime.now(UTC) - at)} ago"


def duration(length: timedelta) -> str:
    """A duration as it was given, to the microsecond: 3 d 18 h, 1 min 30 s, 0.25 s."""
    minutes, seconds = divmod(length, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    if seconds or not parts:
        parts.append(f"{seconds.seconds + seconds.microseconds / 1_000_000:.6f}".rstrip("0").rstrip(".") + " s")
    return " ".join(parts)


class Limited(Protocol):
    @property
    def at_once(self) -> int | None: ...
    @property
    def per_second(self) -> float | None: ...
    @property
    def per(self) -> str | None: ...
    @property
    def each(self) -> int | None: ...


def limit(limit: Limited) -> str:
    parts = (
        f"{limit.at_once:,} at once" if limit.at_once is not None else None,
        f"{limit.per_second:g} per second" if limit.per_second is not None else None,
        f"{limit.each:,} at once for each {limit.per}" if limit.each is not None else None,
    )
    return ", ".join(part for part in parts if part is not None) or "none"

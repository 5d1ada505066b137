"""How the engine's things look on a terminal. What users wrote goes through Text, never through markup."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from mutirao.model import Definition
from mutirao.model.value import ENCODER

_COLOURS = {
    "open.running": "cyan",
    "open.exception": "bold red",
    "open.notrunning.suspended": "yellow",
    "closed.completed": "green",
    "closed.aborted": "magenta",
    "running": "cyan",
    "waiting": "yellow",
    "failed": "bold red",
    "parked": "red",
}
_LONG = 60
_LONG_NAME = 14
_MODULE = re.compile(r"^(?:\w+\.)+(?=\w+(?:: |$))")

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
    for name, value in rows.items():
        made.add_row(Text(name, "bold"), value if isinstance(value, Text | Table) else Text(str(value)))
    return made


def status(word: str) -> Text:
    return Text(word, _COLOURS.get(word, ""))


def value(given: Any) -> str:
    """As JSON, but a text without its quotes where that is clear."""
    if isinstance(given, str) and given and given == given.strip() and given not in ("null", "true", "false"):
        return shortened(given)
    return shortened(ENCODER.encode(given).decode())


def state(values: Mapping[str, Any]) -> str:
    """What is known, in one line."""
    return ", ".join(f"{name} {value(given)}" for name, given in values.items() if given is not None)


def ordered(values: Mapping[str, Any], definition: Definition) -> dict[str, Any]:
    """A state as its flow declares it: jsonb keeps no order."""
    names = [each.name for each in definition.attributes if each.name in values]
    return {name: values[name] for name in [*names, *(name for name in values if name not in names)]}


def shortened(text: str, length: int = _LONG) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def error(text: str) -> str:
    """An exception without the module that it comes from: in one line, its message needs the room."""
    return _MODULE.sub("", " ".join(text.split()))


def writer(name: str) -> str:
    """Who it was. Of a long name both ends: a worker's has the host in front and the process behind."""
    return name if len(name) <= _LONG_NAME else f"{name[:4]}…{name[5 - _LONG_NAME :]}"


def moment(at: datetime | None) -> str:
    """A time of day, with the date if it is not today's."""
    if at is None:
        return ""
    local = at.astimezone()
    return local.strftime("%H:%M:%S" if local.date() == datetime.now().astimezone().date() else "%Y-%m-%d %H:%M:%S")


def ago(at: datetime) -> str:
    return f"{span(datetime.now(UTC) - at)} ago"


def span(length: timedelta) -> str:
    """A duration in one unit: 250 ms, 3.2 s, 12 min, 5 h, 9 d."""
    seconds = max(length.total_seconds(), 0.0)
    for limit, size, unit, digits in _UNITS:
        if seconds < limit:
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def duration(length: timedelta) -> str:
    """A duration as it was given, to the microsecond: 3 d 18 h, 1 min 30 s, 0.25 s."""
    minutes, seconds = divmod(length, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    if seconds or not parts:
        parts.append(f"{seconds.seconds + seconds.microseconds / 1_000_000:.6f}".rstrip("0").rstrip(".") + " s")
    return " ".join(parts)


_UNITS = ((1, 0.001, "ms", 0), (60, 1, "s", 1), (3600, 60, "min", 0), (86_400, 3600, "h", 0))

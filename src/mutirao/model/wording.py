"""How values, states, errors and durations read in a line of plain text, wherever people read them."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from mutirao.model.definition import Definition
from mutirao.model.value import ENCODER

_LONG = 60
_FILE = {"sha256", "name", "size", "media"}
_MODULE = re.compile(r"^(?:\w+\.)+(?=\w+(?:: |$))")
_UNITS = ((1, 0.001, "ms", 0), (60, 1, "s", 1), (3600, 60, "min", 0), (86_400, 3600, "h", 0))


def value(given: Any) -> str:
    """As JSON, but a text without its quotes where that is clear, and a file by its name."""
    if isinstance(given, Mapping) and given.keys() == _FILE:
        return f"{shortened(str(given['name']))} ({size(given['size'])})"
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


def visible(values: Mapping[str, Any], definition: Definition) -> dict[str, Any]:
    """The same without what this version lacks: it is kept for a migration back, and out of sight."""
    known = {each.name for each in definition.attributes}
    return {name: value for name, value in ordered(values, definition).items() if name in known}


def shortened(text: str, length: int = _LONG) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def error(text: str) -> str:
    """An exception without the module that it comes from: in one line, its message needs the room."""
    return _MODULE.sub("", " ".join(text.split()))


def span(length: timedelta) -> str:
    """A duration in one unit: 250 ms, 3.2 s, 12 min, 5 h, 9 d."""
    seconds = max(length.total_seconds(), 0.0)
    for limit, size, unit, digits in _UNITS:
        if seconds < limit:
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def size(length: float) -> str:
    """Such as `8.4 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if length < 1000:  # noqa: PLR2004 kilo
            return f"{length:.0f} {unit}" if unit == "bytes" else f"{length:.1f} {unit}"
        length /= 1000
    return f"{length:.1f} TB"

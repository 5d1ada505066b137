"""Values of attributes as a page shows them: a line, a long text, JSON, rows as a table, a file to look at and to download."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from mutirao.model.definition import Definition
from mutirao.model.value import ENCODER
from mutirao.model.wording import visible
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader

MOST_ROWS, MOST_COLUMNS = 100, 30
_LONG = 80
_LONGEST_JSON = 20_000

_TEXTS = ("text/", "application/json", "application/xml", "application/x-ndjson", "image/svg+xml")
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp")

Kind = Literal["line", "long", "json", "table", "file"]


@dataclass(frozen=True, slots=True)
class FileShown:
    """`preview` is what can be seen of it here, if anything."""

    name: str
    size: int
    address: str
    mark: str
    preview: Literal["text", "image", "pdf"] | None


@dataclass(frozen=True, slots=True)
class Shown:
    """`text` is the value unless it is a table or a file; `left` says how many rows or characters are not shown."""

    name: str
    label: str
    kind: Kind
    text: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    left: int = 0
    file: FileShown | None = None


def shown_state(reader: Reader, definition: Definition, values: dict[str, Any], instance: int) -> list[Shown]:
    """The values of a state that are known, as its flow declares them."""
    types = {each.name: each.type for each in definition.attributes}
    ordered = visible(values, definition)
    return [shown(reader, name, types[name], value, instance) for name, value in ordered.items() if value is not None]


def shown(reader: Reader, name: str, kind: str, value: Any, instance: int) -> Shown:
    label = label_of(name)
    match kind, value:
        case "file", {"sha256": str(), "name": str()}:
            return Shown(name, label, "file", file=_file(value, instance))
        case "json", [{}, *_] if all(isinstance(row, dict) for row in value):
            return _table(reader, name, value)
        case "json", dict() | list():
            text = pretty(value)
            return Shown(name, label, "json", text[:_LONGEST_JSON], left=max(0, len(text) - _LONGEST_JSON))
        case _, str() if len(value) > _LONG or "\n" in value:
            return Shown(name, label, "long", value)
    return Shown(name, label, "line", _line(reader, kind, value))


def pretty(value: Any) -> str:
    """JSON for people; its numbers stay exact."""
    return msgspec.json.format(ENCODER.encode(value), indent=2).decode()


def _line(reader: Reader, kind: str, value: Any) -> str:
    try:
        return reader.typed(value, kind)
    except (ValueError, ArithmeticError):  # PostgreSQL has times that Python has not, such as infinity
        return str(value)


def _table(reader: Reader, name: str, rows: list[dict[str, Any]]) -> Shown:
    first = rows[:MOST_ROWS]
    columns = tuple(dict.fromkeys(column for row in first for column in row))[:MOST_COLUMNS]
    cells = tuple(tuple(_cell(reader, row.get(column)) for column in columns) for row in first)
    return Shown(name, label_of(name), "table", columns=columns, rows=cells, left=len(rows) - len(first))


def _cell(reader: Reader, value: Any) -> str:
    """As it is: 2026 may be a year, and 4711 the number of an order."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return reader.number(value, is_grouped=False)
    return reader.value(value)


def _file(value: dict[str, Any], instance: int) -> FileShown:
    name, sha256 = value["name"], value["sha256"]
    address = f"/api/instances/{instance}/files/{sha256}?name={quote(name, safe='')}"
    return FileShown(name, int(value.get("size", 0)), address, sha256[:12], _preview(str(value.get("media", ""))))


def _preview(media: str) -> Literal["text", "image", "pdf"] | None:
    plain = media.partition(";")[0].strip().lower()
    if plain in _PICTURES:
        return "image"
    if plain == "application/pdf":
        return "pdf"
    return "text" if plain.startswith(_TEXTS) else None

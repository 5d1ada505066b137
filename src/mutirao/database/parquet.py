"""Parquet: one row an instance. `state` has the attributes as the flow's newest version types them, `trace` is a list.

A number is a double there, as readers expect; `state_json` and the states in the trace have all values exactly, and those
that other versions knew.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

_TIME = pa.timestamp("us", tz="UTC")
_TYPES = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": _TIME,
    "json": pa.string(),
}
_TRACE = pa.struct(
    [
        ("id", pa.int64()),
        ("kind", pa.string()),
        ("task", pa.string()),
        ("job", pa.int64()),
        ("attempt", pa.int64()),
        ("cause", pa.int64()),
        ("fired", pa.list_(pa.string())),
        ("status", pa.string()),
        ("state", pa.string()),
        ("writer", pa.string()),
        ("note", pa.string()),
        ("at", _TIME),
    ]
)
_ROWS = 1_000


class _Line(msgspec.Struct):
    """A line as JSON lines has it; what is only passed on stays as it is."""

    instance: int
    flow: str
    version: int
    status: str
    priority: int
    started_at: datetime
    closed_at: datetime
    state: msgspec.Raw
    trace: list[dict[str, Any]]
    key: str | None = None


class Parquet:
    def __init__(self, raw: IO[bytes], types: Mapping[str, str]) -> None:
        self._types = dict(types)
        attributes = pa.struct([(name, _TYPES[kind]) for name, kind in types.items()])
        columns = [
            ("instance", pa.int64()),
            ("flow", pa.string()),
            ("version", pa.int32()),
            ("status", pa.string()),
            ("priority", pa.int32()),
            ("key", pa.string()),
            ("started_at", _TIME),
            ("closed_at", _TIME),
            *([("state", attributes)] if types else []),
            ("state_json", pa.string()),
            ("trace", pa.list_(_TRACE)),
        ]
        self._schema = pa.schema(columns)
        self._out = pq.ParquetWriter(raw, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def write(self, lines: Sequence[bytes]) -> None:
        self._rows += [self._row(msgspec.json.decode(line, type=_Line)) for line in lines]
        if len(self._rows) >= _ROWS:
            self._flush()

    def finish(self) -> None:
        self._flush()
        self._out.close()

    def _flush(self) -> None:
        if self._rows:
            self._out.write_table(pa.Table.from_pylist(self._rows, self._schema))
            self._rows = []

    def _row(self, line: _Line) -> dict[str, Any]:
        state = msgspec.json.decode(line.state)
        return {
            **{name: getattr(line, name) for name in line.__struct_fields__ if name not in ("state", "trace")},
            "state": {name: _typed(kind, state.get(name)) for name, kind in self._types.items()},
            "state_json": bytes(line.state).decode(),
            "trace": [
                {
                    **row,
                    "state": _text(row["state"]),
                    "note": _text(row["note"]),
                    "at": datetime.fromisoformat(row["at"]),
                }
                for row in line.trace
            ],
        }


def _typed(kind: str, value: Any) -> Any:
    """None where an older version had another type: `state_json` has it."""
    if value is None or kind == "json":
        return _text(value)
    try:
        return msgspec.convert(value, _PYTHON[kind], strict=kind != "number")
    except msgspec.ValidationError:
        return None


_PYTHON: dict[str, Any] = {
    "text": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "date": date,
    "timestamp": datetime,
}


def _text(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()

"""What somebody intended and what they were told, on paper before and after each operation.

A line is written, whole and at once, before an operation begins (`intends`) and when its outcome is known: `done`,
`refused`, or `unknown`, when the connection broke and nobody can tell. Whoever is killed in between leaves an intention
without an outcome, which is unknown, too. The system's cache outlives a killed process, so nothing has to be synced.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Outcome = Literal["done", "refused", "unknown"]


@dataclass
class Entry:
    """One operation, or several of a kind that were asked for in one call. `count` is how many were acknowledged."""

    what: str
    began_at: float
    details: dict[str, Any]
    outcome: Outcome = "unknown"
    ended_at: float | None = None
    count: int = 0
    answer: dict[str, Any] = field(default_factory=dict)


class Ledger:
    """One writer's paper: append-only."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._next = 0

    def intends(self, what: str, **details: Any) -> int:
        """Answers the number by which the outcome is told."""
        self._next += 1
        self._write({"n": self._next, "says": "intends", "what": what, "at": time.time(), **details})
        return self._next

    def done(self, number: int, count: int = 1, **answer: Any) -> None:
        self._write({"n": number, "says": "done", "at": time.time(), "count": count, **answer})

    def refused(self, number: int, code: str) -> None:
        self._write({"n": number, "says": "refused", "at": time.time(), "code": code})

    def unknown(self, number: int, code: str) -> None:
        self._write({"n": number, "says": "unknown", "at": time.time(), "code": code})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")


def read(paths: Iterable[Path]) -> Iterator[Entry]:
    """All entries of these ledgers. A last line that a kill cut off is as if it had not been written."""
    for path in sorted(paths):
        entries: dict[int, Entry] = {}
        for line in path.read_bytes().split(b"\n")[:-1]:
            said = json.loads(line)
            number, says, at = said.pop("n"), said.pop("says"), said.pop("at")
            if says == "intends":
                entries[number] = Entry(said.pop("what"), at, said)
            else:
                entry = entries[number]
                entry.outcome, entry.ended_at, entry.count = says, at, said.pop("count", 0)
                entry.answer = said
        yield from entries.values()

"""What happened, told in words of the reader's language: rows of a trace, and what was done with a work item."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mutirao.database.item import StoryRow
from mutirao.database.record import TraceRow
from mutirao.server.page.catalogue import marked
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.reason import error_words

KINDS = {
    "start": marked("Started"),
    "due": marked("Its time has come"),
    "finish": marked("{task}: done"),
    "fail": marked("{task}: failed for good"),
    "try": marked("{task}: failed, to be tried again"),
    "retry": marked("{task}: to be done once more"),
    "drop": marked("{task}: ended, and nothing of it was kept"),
    "skip": marked("{task}: skipped"),
    "parked": marked("{task}: done, and waits for others before it is written"),
    "reach": marked("{task}: running"),
    "look": marked("Looked at by a new version"),
    "removed": marked("{task}: removed by a new version"),
    "reopen": marked("Reopened by a new version"),
    "set": marked("Changed from outside"),
    "query": marked("{task}: rows were read from another database"),
    "output": marked("{task}: said something"),
    "repair": marked("Repaired"),
    "cancel": marked("Cancelled"),
    "suspend": marked("Suspended"),
    "resume": marked("Resumed"),
    "erase": marked("Data erased"),
    "migrate": marked("Moved from version {from} to version {to}"),
    "select": marked("{task}: taken"),
    "lock": marked("{task}: taken, to be done elsewhere"),
    "return": marked("{task}: given back"),
    "delegate": marked("{task}: delegated to {to}"),
    "insert": marked("{task}: put into the list of {to}"),
    "remove": marked("{task}: taken out of the list of {from}"),
    "transfer": marked("{task}: moved to {to}"),
    "extend": marked("{task}: to be done by {to}"),
    "hand_over": marked("Handed over to {to}"),
    "roll_back": marked("To be rolled back"),
    "compensate": marked("{task}: done, which undoes earlier work"),
    "rolled_back": marked("Rolled back"),
    "alarm": marked("{task}: has waited long enough"),
    "start_task": marked("{task}: started by hand"),
    "go_back": marked("Gone back to {task}"),
}
_BAD = frozenset({"fail", "try", "parked", "drop"})


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened: what, by whom, why, when."""

    what: str
    who: str
    why: str
    at: datetime
    is_bad: bool


def of_item(reader: Reader, task: str, rows: Iterable[StoryRow]) -> list[Line]:
    """What was done with one work item."""
    return [_line(reader, row.kind, task, row) for row in rows]


def of_trace(reader: Reader, rows: Iterable[TraceRow]) -> list[Line]:
    """What happened to an instance."""
    return [_line(reader, _kind(row), row.task or "", row) for row in rows]


def _kind(row: TraceRow) -> str:
    """A person's retry writes a state; an attempt that failed writes none."""
    return "try" if row.kind == "retry" and row.state is None else row.kind


def _line(reader: Reader, kind: str, task: str, row: StoryRow | TraceRow) -> Line:
    note = row.note or {}
    known = _Known(note)
    known["task"] = label_of(task or str(note.get("task") or ""))  # acts on a task have no job of it
    if kind == "extend" and "to" in note:
        known["to"] = reader.moment(datetime.fromisoformat(note["to"]))
    what = reader.say(KINDS[kind]).format_map(known) if kind in KINDS else kind
    return Line(what, row.writer, _why(note), row.at, kind in _BAD)


def _why(note: Mapping[str, Any]) -> str:
    return str(note.get("reason") or error_words(note.get("error")) or note.get("code") or "")


class _Known(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "?"

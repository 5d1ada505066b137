"""A trace, told: what happened, what it changed since the state before, what that set off. And reasons, in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mutirao.database.record import TraceRow
from mutirao.model import Definition, wording

EXCEPTION_TASK = "_EXCPT"

Reason = Mapping[str, Any]

_KINDS = {
    "start": "started",
    "due": "its time has come",
    "finish": "{task} done",
    "fail": "{task} failed for good",
    "drop": "{task} ended, not kept",
    "skip": "{task} skipped",
    "parked": "{task} waits with its change",
    "reach": "{task} is running",
    "look": "looked at by a new version",
    "removed": "{task} removed by a new version",
    "reopen": "reopened by a new version",
    "set": "set from outside",
    "query": "{task} begins with what it asked for",
    "output": "{task} said something",
    "repair": "repaired",
    "cancel": "cancelled",
    "suspend": "suspended",
    "resume": "resumed",
    "erase": "data erased",
    "migrate": "moved from version {from} to version {to}",
    "select": "{task} taken",
    "lock": "{task} taken, to be done elsewhere",
    "return": "{task} returned",
    "delegate": "{task} delegated to {to}",
    "insert": "{task} put into the list of {to}",
    "remove": "{task} taken out of the list of {from}",
    "transfer": "{task} moved to {to}",
    "extend": "{task} to be done by {to}",
    "hand_over": "handed over to {to}",
    "roll_back": "to be rolled back to {since}",
    "compensate": "{task} done, which undoes {undoes}",
    "rolled_back": "rolled back to {since}",
    "alarm": "{task} has waited long enough",
    "start_task": "{task} started by hand",
    "go_back": "gone back to {task}",
}
_BAD = frozenset({"fail", "parked", "drop"})
_LONG_STATE = 120


@dataclass(frozen=True, slots=True)
class Event:
    """One row of a trace against the state before it."""

    row: int
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
    tasks: dict[int, str] = {}
    for row in rows:
        tasks[row.id] = row.task or ""
        events.append(
            Event(
                row=row.id,
                at=row.at,
                what=_what(row, tasks),
                is_bad=row.kind in _BAD or _is_failed_try(row),
                who=row.writer,
                changed={} if row.state is None else _changes(before, wording.ordered(row.state, definition)),
                note=_note(row),
                fired=[task for task in row.fired if task != EXCEPTION_TASK],
                status=row.status if row.status != status else "",
            )
        )
        before = before if row.state is None else row.state
        status = row.status
    return events


def in_short(rows: Sequence[TraceRow]) -> str:
    """The whole story in one line: `book_hotel, book_flight (2 tries), confirm`."""
    failed_tries: dict[str, int] = {}
    done: list[str] = []
    for row in rows:
        if row.task is None:
            continue
        if _is_failed_try(row):
            failed_tries[row.task] = failed_tries.get(row.task, 0) + 1
        elif row.kind in {"finish", "compensate"}:
            tries = failed_tries.pop(row.task, 0) + 1
            done.append(row.task if tries == 1 else f"{row.task} ({tries} tries)")
        elif row.kind == "fail":
            done.append(f"{row.task} failed")
    return ", ".join(done)


def _what(row: TraceRow, tasks: Mapping[int, str]) -> str:
    if _is_failed_try(row):
        return f"{row.task} failed, to be tried again"
    if row.kind == "retry":
        return f"{row.task} retried"
    note = row.note or {}
    # Of a rollback, rows say which rows they are about: told are the tasks that ended by these.
    about = {name: tasks.get(note[name], "") if name in note else "the start" for name in ("undoes", "since")}
    return _done(row.kind, row.task or "", {**note, **about})


def told(kind: str, task: str, note: Mapping[str, Any] | None) -> str:
    """One thing that was done with a work item, and why."""
    what, why = _done(kind, task, note or {}), _reason(note or {})
    return f"{what}: {why}" if why else what


def _done(kind: str, task: str, note: Mapping[str, Any]) -> str:
    known = _Known(note)
    known.update({"task": task} if task else {})
    if kind == "extend" and "to" in known:
        known["to"] = datetime.fromisoformat(known["to"]).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return _KINDS.get(kind, kind).format_map(known)


class _Known(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "?"


def _is_failed_try(row: TraceRow) -> bool:
    """A person's retry writes a state; an attempt that failed writes none."""
    return row.kind == "retry" and row.state is None


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    names = [*after, *(name for name in before if name not in after)]
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _note(row: TraceRow) -> str:
    note = row.note or {}
    return "; ".join(_moves(note)) if row.kind == "migrate" else _reason(note)


def _reason(note: Mapping[str, Any]) -> str:
    said = "; ".join(f"{name}: {note[name]}" for name in ("stdout", "stderr") if note.get(name))
    return str(note.get("reason") or wording.error(note.get("error") or "") or said or note.get("code") or "")


def _moves(note: Mapping[str, Any]) -> Iterator[str]:
    """What a migration did to jobs, tasks and attributes, and why it was made."""
    if removed := note.get("removed"):
        yield "removed: " + ", ".join(f"{each['task']} (job {each['job']})" for each in removed)
    for old, new in {**note.get("tasks", {}), **note.get("attributes", {})}.items():
        yield f"{old} became {new}"
    if reason := note.get("reason"):
        yield str(reason)


def in_words(reason: Reason, state: Mapping[str, Any] | None = None) -> str:
    """What has happened, without the code; `state` is that of the instance where it is known."""
    words = wording.error(str(reason.get("error") or ""))
    match reason:
        case {"code": "nothing_fires"}:
            words = f"no condition holds on {_equations(state)}" if state else "no condition holds"
        case {"code": "final_blocked"}:
            words = "each pending job would end it, and waits for the others"
        case {"code": "runaway"}:
            words = f"it fired {reason.get('firings', 0):,} times without an end"
        case {"code": "condition_failed", "task": "_FINAL"}:
            words = f"the final condition: {words}"
        case {"code": "condition_failed", "task": task}:
            words = f"the condition of {task}: {words}"
        case {"task": task, "job": job}:
            words = f"{task}, job {job}: {words}"
    return words


def _equations(state: Mapping[str, Any]) -> str:
    known = (f"{name} = {wording.value(value)}" for name, value in state.items())
    return wording.shortened(", ".join(known), _LONG_STATE)

"""A trace in words: who did what, to whom it went, what was said, and why."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mutirao.database.record import TraceRow
from mutirao.database.story import in_short, tell, told
from mutirao.model import Definition

NOW = datetime(2031, 12, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "note", "words"),
    [
        ("select", None, "reply taken"),
        ("lock", None, "reply taken, to be done elsewhere"),
        ("return", {"reason": "no time"}, "reply returned: no time"),
        ("delegate", {"to": "clerk_2", "reason": "you know it"}, "reply delegated to clerk_2: you know it"),
        ("insert", {"to": "clerk_3"}, "reply put into the list of clerk_3"),
        ("remove", {"from": "clerk_3"}, "reply taken out of the list of clerk_3"),
        ("transfer", {"from": "clerk_1", "to": "manager"}, "reply moved to manager"),
        ("extend", {"to": "2032-01-01T12:00:00.25092+02:00"}, "reply to be done by 2032-01-01 10:00 UTC"),
        ("hand_over", {"to": "manager"}, "handed over to manager"),
        (
            "output",
            {"stdout": "3 pages", "stderr": "low ink"},
            "reply said something: stdout: 3 pages; stderr: low ink",
        ),
        ("delegate", None, "reply delegated to ?"),
        ("unheard_of", {"reason": "why not"}, "unheard_of: why not"),
    ],
)
def test_what_was_done_says_to_whom_and_why(kind: str, note: dict[str, Any] | None, words: str) -> None:
    assert told(kind, "reply", note) == words
    row = TraceRow(1, kind, "reply", 2, 3, None, "open.running", None, "clerk_1", note, NOW, [])
    [event] = tell([row], Definition(name="letter", attributes=(), tasks=()))
    assert words == (f"{event.what}: {event.note}" if event.note else event.what)


def test_a_rollback_is_told_by_the_tasks_it_is_about() -> None:
    rows = [
        ("finish", "pack", None),
        ("finish", "book", None),
        ("roll_back", None, {"since": 1, "reason": "no hotel"}),
        ("compensate", "free", {"undoes": 2}),
        ("rolled_back", None, {"since": 1}),
        ("roll_back", None, {}),
        ("go_back", None, {"task": "pack", "since": 1}),
        ("start_task", None, {"task": "call"}),
        ("alarm", None, {"task": "call"}),
    ]
    trace = [
        TraceRow(number, kind, task, 2, 3, None, "open.running", None, "clerk_1", note, NOW, [])
        for number, (kind, task, note) in enumerate(rows, 1)
    ]
    assert [event.what for event in tell(trace, Definition(name="trip", attributes=(), tasks=()))] == [
        "pack done",
        "book done",
        "to be rolled back to pack",
        "free done, which undoes book",
        "rolled back to pack",
        "to be rolled back to the start",
        "gone back to pack",
        "call started by hand",
        "call has waited long enough",
    ]
    assert in_short(trace) == "pack, book, free"

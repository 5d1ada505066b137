"""Which commands get an instance out of an exception: those that fit the reason, and none that would be refused."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mutirao.cli.reason import ways_out
from mutirao.database.record import Instance, TaskStanding
from mutirao.model import Definition, Task
from mutirao.model.recovery import Recovery

PACKED = datetime(2031, 5, 12, 8, tzinfo=UTC)
SENT = datetime(2031, 5, 12, 9, tzinfo=UTC)
FLOW = Definition(
    name="parcel",
    tasks=(
        Task(name="pack", when="true", recovery=Recovery(safe_point=True, compensation="unpack")),
        Task(name="send", when="true"),
        Task(name="unpack"),
    ),
)
TASKS = [
    TaskStanding("pack", "succeeded", None, PACKED, 1),
    TaskStanding("send", "succeeded", None, SENT, 1),
    TaskStanding("unpack", "not_ready", None, None, 0),
]


def commands(*reasons: dict[str, Any], hold: str | None = None) -> list[str]:
    found = Instance(17, "parcel", 1, "open.exception", {}, list(reasons), PACKED, None, 0, hold=hold)
    return [way.command for way in ways_out(found, FLOW, TASKS)]


FAILED = {"code": "task_failed", "job": 4, "task": "send"}


@pytest.mark.parametrize(
    ("reasons", "hold", "expected"),
    [
        (
            [FAILED],
            None,
            [
                "job retry 4",
                "job skip 4 attribute=value",
                "instance repair 17 attribute=value",
                "instance roll-back 17 --to pack",
                "instance cancel 17",
            ],
        ),
        (
            [{"code": "nothing_fires"}],
            None,
            [
                "instance repair 17 attribute=value",
                "instance start-task TASK 17",
                "instance go-back send 17",
                "instance roll-back 17 --to pack",
                "instance cancel 17",
            ],
        ),
        (
            [{"code": "compensation_failed", "job": 9, "task": "unpack"}],
            "undoing",
            ["job retry 9", "job skip 9", "instance cancel 17"],
        ),
        (
            [{"code": "wait_circle", "job": 5}],
            None,
            ["job skip 5 attribute=value", "class waits", "instance cancel 17"],
        ),
        (
            [FAILED, {"code": "critical_task", "job": 4}],
            None,
            ["job retry 4", "job skip 4 attribute=value", "instance repair 17 attribute=value", "instance cancel 17"],
        ),
        ([{"code": "critical_task"}], None, ["instance cancel 17"]),
    ],
)
def test_ways_fit_the_reason(reasons: list[dict[str, Any]], hold: str | None, expected: list[str]) -> None:
    assert commands(*reasons, hold=hold) == expected

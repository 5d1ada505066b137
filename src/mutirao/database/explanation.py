"""What `why` answers: about a task or an instance, what it waits for and how its condition stands, part by part."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Part:
    """A condition or a part of one, in its author's words. `holds` is None where it is unknown, or raises `error`.

    `kind` is `all`, `any` or `not` with `parts`; or `part`, a piece of SQL; or `term`, that a task has reached a state.
    """

    kind: str
    text: str
    holds: bool | None = None
    error: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    """What it saw: attributes by name, states of tasks as `task_<name>`."""
    parts: list["Part"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Firing:
    """The row of the trace that fired a task: what happened there, and the attributes that it changed."""

    row: int
    at: datetime
    event: str
    writer: str
    times: int = 1
    """How often the task has fired up to here."""
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the attributes that the condition names: `before` and `after`."""
    condition: Part | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """Why a task has fired or not; without a task, why its instance stands as it does.

    `stands` is the status of the task's job, or else what keeps it from firing: `condition`, `disabled`, `fired_once`,
    `suspended`, `cancelled`, `final`, `runaway`, `blocked`, `closed`; or `next_look`, nothing. With `alarm` it starts at
    a certain time whatever the others do; `undoing` and `undone` are of a rollback. In the past it may be `fired`, or
    `absent`: the flow had no such task then.
    """

    task: str | None
    answer: str
    """One line."""
    stands: str
    holds: bool | None = None
    condition: Part | None = None
    job: dict[str, Any] | None = None
    """What is known of the pending job, what it `waits_for` and, as `says`, that in words."""
    fired: Firing | None = None

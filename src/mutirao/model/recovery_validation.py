"""What makes the part of a task wrong that says what becomes of it when it fails or is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from mutirao.errors import FlowError
from mutirao.model.check import check_choice, check_span, check_type
from mutirao.model.name import quote, suggest
from mutirao.model.recovery import OnFailure, Recovery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutirao.model.task import Task


def standing_by(tasks: Mapping[str, Task]) -> dict[str, str]:
    """Tasks that start in the place of another or to undo it, and which of the two."""
    named = [(each.recovery.contingency, "contingency") for each in tasks.values()]
    named += [(each.recovery.compensation, "compensation") for each in tasks.values()]
    return {task: what for task, what in named if task is not None}


def check_recovery(place: str, task: Task, tasks: Mapping[str, Task], standing: Mapping[str, str]) -> None:
    recovery = task.recovery
    check_type(place, "recovery", recovery, Recovery)
    check_choice(place, "on_failure", recovery.on_failure, get_args(OnFailure))
    for field in ("force", "critical", "safe_point"):
        check_type(place, field, getattr(recovery, field), bool)
    _check_together(place, task)
    for field in ("contingency", "compensation"):
        if (name := getattr(recovery, field)) is not None:
            _check_stand_in(place, field, name, tasks, standing)
    if task.name in standing and task.wait is not None:
        text = f"it is the {standing[task.name]} of another task, and waits for {quote(task.wait)}; it starts at once"
        raise FlowError("flow_invalid", f"{place}: {text}")
    if standing.get(task.name) == "compensation" and recovery != Recovery(force=recovery.force):
        text = "it undoes another task, so it has no compensation, contingency, safe_point or failure action of its own"
        raise FlowError("flow_invalid", f"{place}: {text}")


def _check_together(place: str, task: Task) -> None:
    recovery = task.recovery
    is_acting = recovery.contingency is not None or recovery.on_failure != "block"
    if recovery.force and is_acting:
        text = "a forced task is tried until it succeeds, so it has neither a contingency nor an on_failure"
        raise FlowError("flow_invalid", f"{place}: {text}")
    if recovery.contingency is not None and recovery.on_failure != "block":
        text = f"it has the contingency {quote(recovery.contingency)} and on_failure {recovery.on_failure}: choose one"
        raise FlowError("flow_invalid", f"{place}: {text}")
    if recovery.contingency is not None and recovery.contingency == recovery.compensation:
        text = f"{quote(recovery.contingency)} is both its contingency and its compensation; give it two tasks"
        raise FlowError("flow_invalid", f"{place}: {text}")
    if recovery.critical and recovery.compensation is not None:
        text = f"it is critical, which cannot be undone, and has the compensation {quote(recovery.compensation)}"
        raise FlowError("flow_invalid", f"{place}: {text}")
    if task.by_clock and task.task_class is not None:
        raise FlowError("flow_invalid", f"{place}: nobody does it, so it has no task_class")
    check_span(place, "time_to_wait", task.time_to_wait)
    if task.time_to_wait is not None and (task.depends is None or task.fires != "once"):
        raise FlowError("flow_invalid", f"{place}: time_to_wait goes with depends, and with a task that fires once")


def _check_stand_in(place: str, field: str, name: str, tasks: Mapping[str, Task], standing: Mapping[str, str]) -> None:
    if name not in tasks:
        raise FlowError("unknown_task", f"{place}: its {field} is the unknown task {quote(name)}{suggest(name, tasks)}")
    other = tasks[name]
    if other.when is not None or other.depends is not None:
        text = f"its {field} {quote(name)} has a when or depends of its own; it starts in its place, so it has neither"
        raise FlowError("flow_invalid", f"{place}: {text}")
    if standing[name] != field:
        raise FlowError("flow_invalid", f"{place}: its {field} {quote(name)} is the {standing[name]} of another task")


def check_contingencies(place: str, tasks: Mapping[str, Task]) -> None:
    """One after another, they come to an end; and each takes the place of one task."""
    done: set[str] = set()
    for name in tasks:
        seen: list[str] = []
        at: str | None = name
        while at is not None and at in tasks and at not in done:
            if at in seen:
                way = " → ".join((*seen[seen.index(at) :], at))
                raise FlowError("flow_invalid", f'{place}, task "{at}": its contingency leads back to it: {way}')
            seen.append(at)
            at = tasks[at].recovery.contingency
        done.update(seen)
    taken: dict[str, str] = {}
    for name, task in tasks.items():
        contingency = task.recovery.contingency
        if contingency in taken:
            text = f"its contingency {quote(contingency)} is that of {quote(taken[contingency])}; each has its own"
            raise FlowError("flow_invalid", f'{place}, task "{name}": {text}')
        if contingency is not None:
            taken[contingency] = name

"""Why an instance is an exception, in words, and which commands get it out of there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from mutirao.cli import render
from mutirao.cli.invocation import Invocation
from mutirao.database.record import Instance, TaskStanding
from mutirao.database.story import Reason, in_words
from mutirao.model import Definition

EXCEPTION = "open.exception"

_LONG = 200


@dataclass(frozen=True)
class Way:
    """Something a person can do, and the command for it."""

    does: str
    command: str


def ways_out(instance: Instance, definition: Definition | None = None, tasks: Iterable[TaskStanding] = ()) -> list[Way]:
    """The likeliest first. The ways back are known where the flow and how its tasks stand are given."""
    if instance.status != EXCEPTION:
        return []
    number, codes = instance.id, {str(reason["code"]) for reason in instance.reasons or ()}
    found = [way for reason in instance.reasons or () for way in _ways(reason, number)]
    if instance.hold == "undoing":
        return list(dict.fromkeys([*found, Way("stop it, and undo no more", f"instance cancel {number}")]))
    if codes - {"wait_circle", "critical_task"}:
        found.append(Way("correct it", f"instance repair {number} attribute=value"))
    if definition is not None:
        found += _ways_back(number, codes, definition, tasks)
    return list(dict.fromkeys([*found, Way("stop it", f"instance cancel {number}")]))


def standing(instance: Instance, before: Instance, call: Invocation) -> Text:
    """How it stands after somebody did something, for the end of a sentence; and what to do if that was not enough."""
    if instance.status != EXCEPTION:
        return Text("is ").append_text(render.status(instance.status, instance.hold)).append(".")
    still = "still " if before.status == EXCEPTION else ""
    why = ", ".join(_coded(reason, instance.state) for reason in instance.reasons or ())
    way = ways_out(instance)[0]
    return Text("is ").append(f"{still}an exception", "bold red").append(f": {why}; {way.does}: {call(way.command)}")


def _ways(reason: Reason, instance: int) -> Iterator[Way]:
    match reason:
        case {"code": "task_failed" | "critical_task", "job": job}:
            yield Way("try it again", f"job retry {job}")
            yield Way("end it as if it had succeeded", f"job skip {job} attribute=value")
        case {"code": "compensation_failed", "job": job}:
            yield Way("try it again", f"job retry {job}")
            yield Way("take it as undone", f"job skip {job}")
        case {"code": "wait_circle", "job": job}:
            yield Way("end the job that waits as if it had succeeded", f"job skip {job} attribute=value")
            yield Way("see who waits for whom", "class waits")
        case {"code": "condition_failed", "job": job}:
            yield Way("end the job with another change", f"job skip {job} attribute=value")
        case {"code": "final_blocked"}:
            yield Way("see which jobs, and skip one", f"job list --instance {instance} --status parked")
        case {"code": "runaway"}:
            yield Way("let it go on", f"instance repair {instance}")


def _ways_back(instance: int, codes: set[str], definition: Definition, tasks: Iterable[TaskStanding]) -> Iterator[Way]:
    """To the last safe-point; and where nothing fires, to what was done last, or on by hand."""
    undo = {task.recovery.compensation for task in definition.tasks}
    done = sorted((each.since, each.task) for each in tasks if each.since is not None and each.state == "succeeded")
    ended = [name for _, name in done if name not in undo]
    safe_points = {task.name for task in definition.tasks if task.recovery.safe_point}
    if "nothing_fires" in codes:
        yield Way("start a task by hand", f"instance start-task TASK {instance}")
        if ended:
            yield Way("do its last task again", f"instance go-back {ended[-1]} {instance}")
    if codes & {"nothing_fires", "task_failed"} and "critical_task" not in codes:
        for name in [name for name in ended if name in safe_points][-1:]:
            yield Way("undo back to the last safe-point", f"instance roll-back {instance} --to {name}")


def _coded(reason: Reason, state: Mapping[str, Any]) -> str:
    return f"{reason['code']} ({render.shortened(in_words(reason, state), _LONG)})"

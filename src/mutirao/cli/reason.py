"""Why an instance is an exception, in words, and which commands get it out of there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from mutirao.cli import render
from mutirao.cli.invocation import Invocation
from mutirao.database.record import Instance

Reason = Mapping[str, Any]

EXCEPTION = "open.exception"

_LONG_STATE = 120
_LONG = 200


@dataclass(frozen=True)
class Way:
    """Something a person can do, and the command for it."""

    does: str
    command: str


def in_words(reason: Reason, state: Mapping[str, Any] | None = None) -> str:
    """What has happened, without the code; `state` is that of the instance where it is known."""
    words = render.error(str(reason.get("error") or ""))
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


def ways_out(instance: Instance) -> list[Way]:
    """The likeliest first."""
    number = instance.id
    if instance.status != EXCEPTION:
        return []
    found = [way for reason in instance.reasons or () for way in _ways(reason, number)]
    correct = Way("correct it", f"instance repair {number} attribute=value")
    return list(dict.fromkeys([*found, correct, Way("stop it", f"instance cancel {number}")]))


def standing(instance: Instance, before: Instance, call: Invocation) -> Text:
    """How it stands after somebody did something, for the end of a sentence; and what to do if that was not enough."""
    if instance.status != EXCEPTION:
        return Text("is ").append_text(render.status(instance.status)).append(".")
    still = "still " if before.status == EXCEPTION else ""
    why = ", ".join(_coded(reason, instance.state) for reason in instance.reasons or ())
    way = ways_out(instance)[0]
    return Text("is ").append(f"{still}an exception", "bold red").append(f": {why}; {way.does}: {call(way.command)}")


def _ways(reason: Reason, instance: int) -> Iterator[Way]:
    match reason:
        case {"code": "task_failed", "job": job}:
            yield Way("try it again", f"job retry {job}")
            yield Way("end it as if it had succeeded", f"job skip {job} attribute=value")
        case {"code": "condition_failed", "job": job}:
            yield Way("end the job with another change", f"job skip {job} attribute=value")
        case {"code": "final_blocked"}:
            yield Way("see which jobs, and skip one", f"job list --instance {instance} --status parked")
        case {"code": "runaway"}:
            yield Way("let it go on", f"instance repair {instance}")


def _coded(reason: Reason, state: Mapping[str, Any]) -> str:
    return f"{reason['code']} ({render.shortened(in_words(reason, state), _LONG)})"


def _equations(state: Mapping[str, Any]) -> str:
    known = (f"{name} = {render.value(value)}" for name, value in state.items())
    return render.shortened(", ".join(known), _LONG_STATE)

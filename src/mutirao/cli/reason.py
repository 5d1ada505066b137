"""Why an instance is an exception, in words, and which commands get it out of there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from mutirao.cli import render
from mutirao.cli.invocation import Invocation
from mutirao.database.record import Instance
from mutirao.database.story import Reason, in_words

EXCEPTION = "open.exception"

_LONG = 200


@dataclass(frozen=True)
class Way:
    """Something a person can do, and the command for it."""

    does: str
    command: str


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
        return Text("is ").append_text(render.status(instance.status, instance.hold)).append(".")
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

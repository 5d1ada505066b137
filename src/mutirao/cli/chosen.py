"""The options by which a command chooses instances, said once for all commands that have them."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from mutirao.cli.arguments import (
    InstanceIds,
    OfError,
    OfException,
    OfFlow,
    OfKey,
    OfStatus,
    OfTask,
    OfVersion,
    StartedAfter,
    StartedBefore,
    Where,
)
from mutirao.cli.measure import read_past
from mutirao.database.batch import Filter

_OPTIONS: dict[str, Any] = {
    "ids": InstanceIds,
    "flow": OfFlow,
    "key": OfKey,
    "task": OfTask,
    "error": OfError,
    "status": OfStatus,
    "exception": OfException,
    "version": OfVersion,
    "started_before": StartedBefore,
    "started_after": StartedAfter,
    "where": Where,
}
# What is about failed jobs, and not about their instances.
OF_JOBS = ("task", "error")

Command = Callable[..., None]
_KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD


def choosing(*, but: tuple[str, ...] = OF_JOBS) -> Callable[[Command], Command]:
    """Gives a command these options in the place of its parameter `chosen`, which is the Filter that they make."""
    names = [name for name in _OPTIONS if name not in but]
    options = [inspect.Parameter(n, _KEYWORD, default=None, annotation=_OPTIONS[n]) for n in names]

    def give(command: Command) -> Command:
        own = inspect.signature(command)
        parameters = [each for name, one in own.parameters.items() for each in (options if name == "chosen" else [one])]

        @wraps(command)
        def called(**said: Any) -> None:
            command(chosen=_filter({name: said.pop(name) for name in names}), **said)

        called.__annotations__ = {each.name: each.annotation for each in parameters}
        called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined] # read by inspect, and so by typer
        return called

    return give


def _filter(said: dict[str, Any]) -> Filter:
    """With times as people type them."""
    times = {name: said[name] and read_past(said[name]) for name in ("started_before", "started_after")}
    return Filter(**{**said, **times, "ids": tuple(said.get("ids") or ()) or None})

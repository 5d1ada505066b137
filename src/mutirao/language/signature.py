"""What a task's function asks for: the state first, then by annotation the job and the transaction's connection.

async def pay(self, job: Job, connection: AsyncConnection) -> Change: ...
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_origin

from psycopg import AsyncConnection, Connection

from mutirao.errors import FlowError
from mutirao.language.annotation import resolve
from mutirao.language.place import place_of
from mutirao.model import Job

_SPECIAL: dict[str, type] = {each.__name__: each for each in (Job, AsyncConnection, Connection)}


@dataclass(frozen=True, slots=True)
class Signature:
    """`job` and `connection` are the names of the parameters that take them."""

    is_async: bool
    job: str | None = None
    connection: str | None = None


def read_signature(
    name: str, function: Callable[..., Any], *, transactional: bool, names: Mapping[str, Any]
) -> Signature:
    """`names` are those known where the function stands, besides its module's own."""
    place = f'task "{name}" ({place_of(function)})'
    is_async = _is_async(place, function)
    wanted: dict[type, str] = {}
    for parameter in _beyond_state(place, function):
        kind = _kind(place, parameter, function, names)
        if kind is None:
            continue
        if kind in wanted:
            raise _wrong(place, f'"{wanted[kind]}" and "{parameter.name}" ask for the same')
        wanted[kind] = parameter.name
    right, wrong = (AsyncConnection, Connection) if is_async else (Connection, AsyncConnection)
    if wrong in wanted:
        kind_of_function = "an async" if is_async else "a sync"
        raise _wrong(place, f"{kind_of_function} function takes a psycopg {right.__name__}, not {wrong.__name__}")
    if right in wanted and not transactional:
        raise _wrong(place, "only a task with transactional=True has a connection")
    return Signature(is_async, wanted.get(Job), wanted.get(right))


def _is_async(place: str, function: Any) -> bool:
    if not callable(function):
        raise _wrong(place, f"a task is a function: got {type(function).__name__}")
    called = function if inspect.isroutine(function) or isinstance(function, partial) else type(function).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise _wrong(place, "a task returns its change; this one yields")
    return inspect.iscoroutinefunction(called)


def _beyond_state(place: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise _wrong(place, "its first parameter is the state")
    return parameters[1:]


def _kind(
    place: str, parameter: inspect.Parameter, function: Callable[..., Any], names: Mapping[str, Any]
) -> type | None:
    """Which of the special types the parameter asks for; None when it has a default and asks for nothing."""
    kind = _annotated(parameter.annotation, function, names)
    if kind is None and parameter.default is not parameter.empty:
        return None
    by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    if kind is None or not by_name:
        asked = "besides the state, it may ask for a Job and for a psycopg AsyncConnection or Connection"
        raise _wrong(place, f'the engine has nothing for parameter "{parameter}"; {asked}')
    return kind


def _annotated(annotation: Any, function: Callable[..., Any], names: Mapping[str, Any]) -> type | None:
    try:
        known = getattr(inspect.unwrap(function), "__globals__", {})
        annotation = resolve(annotation, known, names)
    except NameError:
        # Imported for type checkers only: then its name has to do.
        return _SPECIAL.get(str(annotation).partition("[")[0].rpartition(".")[2])
    annotation = get_origin(annotation) or annotation
    return annotation if annotation in _SPECIAL.values() else None


def _wrong(place: str, text: str) -> FlowError:
    return FlowError("signature_invalid", f"{place}: {text}")

"""Puts stand-ins in the place of tasks' functions: finds which task is meant, and plays them as the worker calls."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mutirao.errors import RequestError
from mutirao.language.handler import Handler
from mutirao.language.task import TaskMethod
from mutirao.model import Job
from mutirao.model.name import suggest
from mutirao.testing.stand_in import Call, StandIn, TaskName, Wanted

# What a wrapped function is handed by the worker, whatever the user's own asks for.
_JOB = "job"
_CONNECTION = "connection"

MakeCall = Callable[[Handler, Any, Job], Call]


class EndOfAttempt(BaseException):
    """Takes a blocking function's thread out of an attempt that has ended already: nobody hears of it."""


def find(task: TaskName, handlers: Sequence[Handler]) -> Handler:
    """The one that is meant: by the name of its task, by `flow.task` where several have one of that name, or itself."""
    __tracebackhide__ = True
    if isinstance(task, TaskMethod):
        found = [each for each in handlers if each.function is task.function]
        name = task.name
    else:
        found = [each for each in handlers if task in (each.task, f"{each.flow}.{each.task}")]
        name = task
    if not found:
        known = {each.task for each in handlers}
        raise RequestError("unknown_task", f'no flow of this worker has a task "{name}"{suggest(name, known)}')
    if len(found) > 1:
        names = " or ".join(f'"{each.flow}.{each.task}"' for each in found)
        raise RequestError("wrong_call", f'several flows have a task "{name}": say {names}')
    return found[0]


def bind(handlers: Sequence[Handler], stand_ins: Sequence[StandIn], make_call: MakeCall) -> list[Handler]:
    """The handlers, with stand-ins where some are meant."""
    __tracebackhide__ = True
    chosen: dict[int, list[StandIn]] = {}
    for each in stand_ins:
        chosen.setdefault(id(find(each.task, handlers)), []).append(each)
    return [_wrapped(each, chosen[id(each)], make_call) if id(each) in chosen else each for each in handlers]


def _wrapped(handler: Handler, stand_ins: Sequence[StandIn], make_call: MakeCall) -> Handler:
    """Async if the function is, so that it runs where it would. The job tells stand-ins which attempt it is."""

    def real(state: Any, job: Job, connection: Any) -> Any:
        return handler.call(state, job, connection)

    async def call_async(state: Any, *, job: Job, connection: Any = None) -> Any:
        return await _play_async(stand_ins, make_call(handler, state, job), partial(real, state, job, connection))

    def call(state: Any, *, job: Job, connection: Any = None) -> Any:
        return _play(stand_ins, make_call(handler, state, job), partial(real, state, job, connection))

    wanted = _CONNECTION if handler.transactional else None
    signature = replace(handler.signature, job=_JOB, connection=wanted)
    return replace(handler, function=call_async if handler.is_async else call, signature=signature)


def _play(stand_ins: Sequence[StandIn], call: Call, function: Callable[[], Any]) -> Any:
    """The first one acts; when it wants the function, the others stand before that."""
    if not stand_ins:
        return function()
    first, *others = stand_ins
    if not first.steps_in():
        return _play(others, call, function)
    acting = first.act(call)
    result: Any = None
    while True:
        try:
            wanted = acting.send(result)
        except StopIteration as stop:
            return stop.value
        match wanted:
            case Wanted.FUNCTION:
                result = _play(others, call, function)
            case Wanted.END:
                raise EndOfAttempt
            case awaited:
                result = awaited.result()


async def _play_async(stand_ins: Sequence[StandIn], call: Call, function: Callable[[], Any]) -> Any:
    if not stand_ins:
        return await function()
    first, *others = stand_ins
    if not first.steps_in():
        return await _play_async(others, call, function)
    acting = first.act(call)
    result: Any = None
    while True:
        try:
            wanted = acting.send(result)
        except StopIteration as stop:
            return stop.value
        match wanted:
            case Wanted.FUNCTION:
                result = await _play_async(others, call, function)
            case Wanted.END:
                await asyncio.get_running_loop().create_future()
            case awaited:
                # Shielded: an attempt that is cancelled at a gate must not break the gate.
                result = await asyncio.shield(asyncio.wrap_future(awaited))

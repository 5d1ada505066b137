"""A job inside user code, and how it comes out of it: with a change, or with an error worth keeping."""

import traceback
from asyncio import Task, TimerHandle
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from mutirao.database.protocol import Done, Told
from mutirao.errors import Failed, MutiraoError
from mutirao.language.handler import Handler
from mutirao.model import Job

RETURNED_NONE = "the function returned None: return the change, {} if there is none"

_KEPT_CHARACTERS = 8_000


class Outcome(msgspec.Struct, frozen=True):
    """Either a change as JSON text, or an error as JSON text."""

    change: str | None = None
    error: str | None = None


class Running:
    """One job of ours. `ended` is set once its outcome is known, so that a late one is not reported again."""

    __slots__ = ("ended", "handler", "task", "timer", "told")

    def __init__(self, handler: Handler, told: Told) -> None:
        self.handler = handler
        self.told = told
        self.task: Task[None] | None = None
        self.timer: TimerHandle | None = None
        self.ended = False

    @property
    def job(self) -> Job:
        told, handler = self.told, self.handler
        return Job(told.job, told.instance, handler.flow, handler.task, told.attempt, told.failures)

    def done(self, outcome: Outcome) -> Done:
        return Done(self.told.job, self.told.attempt, outcome.change, outcome.error)

    def call(self, connection: Any = None) -> Any:
        """Begin the user's function: what it returns is a change, or something to await for one."""
        handler = self.handler
        state = handler.load(self.told.state)
        return handler.call(state, self.job if handler.wants_job else None, connection)


def outcome_of(running: Running, change: Any) -> Outcome:
    if change is None:
        return failure(RETURNED_NONE, code="returned_none")
    return Outcome(change=running.handler.encode_change(change).decode())


def failure(text: str, *, code: str, final: bool = False) -> Outcome:
    return Outcome(error=msgspec.json.encode({"code": code, "error": text, "final": final}).decode())


def failure_of(error: BaseException) -> Outcome:
    """What is kept of an exception: its traceback, without our own frames above the user's."""
    if isinstance(error, MutiraoError):
        return failure(str(error), code=error.code)
    frames = "".join(traceback.format_exception(error))
    code = "failed" if isinstance(error, Failed) else type(error).__name__
    text = msgspec.json.encode(
        {
            "code": code,
            "error": f"{type(error).__name__}: {error}"[:1000],
            "traceback": frames[-_KEPT_CHARACTERS:],
            "final": isinstance(error, Failed),
        }
    )
    return Outcome(error=text.decode())


def run_blocking(running: Running) -> Outcome:
    """In a thread: the whole of a blocking job."""
    if running.ended:
        return Outcome()
    try:
        return outcome_of(running, running.call())
    except Exception as error:  # noqa: BLE001 whatever user code raises is its outcome
        return failure_of(error)


async def run_async(running: Running, finished: Callable[[Running, Outcome], None]) -> None:
    """On the loop: the whole of an async job. Cancelled, it says nothing: whoever cancelled it knows why."""
    try:
        coroutine: Awaitable[Any] = running.call()
        outcome = outcome_of(running, await coroutine)
    except Exception as error:  # noqa: BLE001 whatever user code raises is its outcome
        outcome = failure_of(error)
    finished(running, outcome)

"""A job inside user code, and how it comes out of it: with a change, or with an error worth keeping."""

import traceback
from asyncio import CancelledError, Task, TimerHandle
from types import TracebackType
from typing import Any

import msgspec

from mutirao.database.protocol import Done, Told
from mutirao.errors import Failed, MutiraoError
from mutirao.language.handler import Handler
from mutirao.model import Job

_KEPT_CHARACTERS = 8_000
_KEPT_LINE = 1_000
_OURS = "mutirao."


class Outcome(msgspec.Struct, frozen=True):
    """Either a change or an error, as JSON text. `is_written`: the database has it, there is nothing to report."""

    change: str | None = None
    error: str | None = None
    is_written: bool = False

    @property
    def said(self) -> str:
        """The error in one line, for a log."""
        return str(msgspec.json.decode(self.error or "{}").get("error", "")).partition("\n")[0][:300]


class Running:
    """One job of ours. `ended` is set once its outcome is known, so that a late one is not reported again."""

    __slots__ = ("ended", "handler", "task", "timer", "told")

    def __init__(self, handler: Handler, told: Told) -> None:
        self.handler = handler
        self.told = told
        self.task: Task[None] | None = None
        self.timer: TimerHandle | None = None
        self.ended = False

    def __str__(self) -> str:
        return f"job {self.told.job} ({self.handler.task} of instance {self.told.instance})"

    @property
    def job(self) -> Job:
        told, handler = self.told, self.handler
        return Job(told.job, told.instance, handler.flow, handler.task, told.attempt, told.failures)

    def done(self, outcome: Outcome) -> Done:
        return Done(self.told.job, self.told.attempt, outcome.change, outcome.error)

    def _call(self, connection: Any) -> Any:
        """Begin the user's function: what it returns is a change, or something to await for one."""
        handler = self.handler
        state = handler.load(self.told.state)
        return handler.call(state, self.job if handler.wants_job else None, connection)

    def call(self, connection: Any = None) -> Outcome:
        """The whole of a blocking function. In a thread nothing is above us, so nothing may pass."""
        try:
            return self._outcome_of(self._call(connection))
        except BaseException as error:  # noqa: BLE001 whatever user code raises is its outcome
            return failure_of(error)

    async def call_async(self, connection: Any = None) -> Outcome:
        """The whole of an async function. Cancelled by us it gives no outcome: whoever cancelled it knows why."""
        try:
            return self._outcome_of(await self._call(connection))
        except CancelledError as error:
            if self.ended:
                raise
            return failure_of(error)  # by user code itself
        except (Exception, SystemExit) as error:  # noqa: BLE001 whatever user code raises is its outcome
            return failure_of(error)

    def _outcome_of(self, change: Any) -> Outcome:
        if change is None:
            return failure("the function returned None: return the change, {} if there is none", code="returned_none")
        try:
            return Outcome(change=self.handler.encode_change(change).decode())
        except MutiraoError as error:
            return failure(error.message, code=error.code)


def failure(text: str, *, code: str) -> Outcome:
    return Outcome(error=_as_json(code=code, error=text))


def failure_of(error: BaseException) -> Outcome:
    """What is kept of an exception: its code, its last line, and its traceback from the user's code on."""
    frames = traceback.format_exception(type(error), error, _from_user_code(error.__traceback__))
    said = "".join(traceback.format_exception_only(error)).strip().removeprefix(f"{MutiraoError.__module__}.")
    match error:
        case Failed():
            code = "failed"
        case MutiraoError():
            code = error.code
        case _:
            code = type(error).__name__
    final = {"final": True} if isinstance(error, Failed) else {}
    kept = "".join(frames)[-_KEPT_CHARACTERS:]
    return Outcome(error=_as_json(code=code, error=said[:_KEPT_LINE], traceback=kept, **final))


def _from_user_code(frames: TracebackType | None) -> TracebackType | None:
    """Without our own frames on top, unless there are no others."""
    found = frames
    while found is not None and found.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        found = found.tb_next
    return found or frames


def _as_json(**values: Any) -> str:
    """User code says anything, also what PostgreSQL cannot keep: half a surrogate pair, a zero character."""
    plain = {name: _keepable(value) if isinstance(value, str) else value for name, value in values.items()}
    return msgspec.json.encode(plain).decode()


def _keepable(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()

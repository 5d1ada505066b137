"""A job inside user code, and how it comes out of it: with a change, or with an error worth keeping."""

import time
import traceback
from asyncio import CancelledError, Task, TimerHandle
from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any

import msgspec

from mutirao.database.protocol import Done, Told
from mutirao.errors import Failed, MutiraoError
from mutirao.language.handler import Handler
from mutirao.model import Job
from mutirao.worker.observer import Observer, suppressed

_KEPT_CHARACTERS = 8_000
_KEPT_LINE = 1_000
_OURS = "mutirao."

# Of those whom nobody observes.
_NOTHING: dict[Observer, Any] = {}

_CURRENT: ContextVar["Running | None"] = ContextVar("mutirao_job", default=None)


def current() -> "Running | None":
    """The job inside whose user code we are."""
    return _CURRENT.get()


def current_job() -> Job | None:
    """The job that this code works for, wherever it is called from; None outside of a job."""
    running = _CURRENT.get()
    return None if running is None else running.job


class Outcome(msgspec.Struct, frozen=True):
    """Either a change or an error, as JSON text. `is_written`: the database has it, there is nothing to report.

    `is_given_back`: it was not for us, and goes to another worker without being counted.
    """

    change: str | None = None
    error: str | None = None
    is_written: bool = False
    is_given_back: bool = False

    @property
    def problem(self) -> dict[str, Any]:
        """The error as it is kept: code, error, and a traceback where there is one."""
        found: dict[str, Any] = msgspec.json.decode(self.error or "{}")
        return found


class Ended(Exception):
    """Raised by a function of ours that knows the outcome itself."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error)
        self.outcome = outcome


class Running:
    """One job of ours. `ended` is set once its outcome is known, so that a late one is not reported again."""

    __slots__ = ("ended", "handler", "observed", "observers", "taken_at", "task", "timer", "told", "worker")

    def __init__(self, handler: Handler, told: Told, worker: str = "", observers: Sequence[Observer] = ()) -> None:
        self.handler = handler
        self.told = told
        self.worker = worker
        self.observers = observers
        self.observed: dict[Observer, Any] = {} if observers else _NOTHING
        """What observers keep about it until its end."""
        self.task: Task[None] | None = None
        self.timer: TimerHandle | None = None
        self.ended = False
        self.taken_at = time.monotonic()

    def __str__(self) -> str:
        return f"job {self.told.job} ({self.handler.task} of instance {self.told.instance})"

    @property
    def job(self) -> Job:
        told, handler = self.told, self.handler
        return Job(told.job, told.instance, handler.flow, handler.task, told.attempt, told.failures)

    @property
    def extra(self) -> dict[str, object]:
        """The fields of a log line about it."""
        told, handler = self.told, self.handler
        return {
            "instance": told.instance,
            "job": told.job,
            "task": handler.task,
            "flow": handler.flow,
            "attempt": told.attempt,
            "worker": self.worker,
        }

    def done(self, outcome: Outcome) -> Done:
        told = self.told
        known = (told.instance, told.task, told.failures, self.taken_at)
        return Done(told.job, told.attempt, outcome.change, outcome.error, 0, *known)

    def _call(self, connection: Any) -> Any:
        """Begin the user's function: what it returns is a change, or something to await for one."""
        handler = self.handler
        state = handler.load(self.told.state)
        return handler.call(state, self.job if handler.wants_job else None, connection)

    def call(self, connection: Any = None) -> Outcome:
        """The whole of a blocking function. In a thread nothing is above us, so nothing may pass."""
        self._begin()
        try:
            outcome = self._outcome_of(self._call(connection))
        except BaseException as error:  # noqa: BLE001 whatever user code raises is its outcome
            outcome = failure_of(error)
        self._end(outcome)
        return outcome

    async def call_async(self, connection: Any = None) -> Outcome:
        """The whole of an async function. Cancelled by us it gives no outcome: whoever cancelled it knows why."""
        self._begin()
        try:
            outcome = self._outcome_of(await self._call(connection))
        except CancelledError as error:
            if self.ended:
                self._end(None)
                raise
            outcome = failure_of(error)  # by user code itself
        except Ended as ended:
            outcome = ended.outcome
        except (Exception, SystemExit) as error:  # noqa: BLE001 whatever user code raises is its outcome
            outcome = failure_of(error)
        self._end(None if outcome.is_given_back else outcome)
        return outcome

    def _begin(self) -> None:
        """From here on, log lines and spans of user code are known to be of this job."""
        _CURRENT.set(self)
        for observer in self.observers:
            with suppressed(observer):
                observer.begins(self)

    def _end(self, outcome: Outcome | None) -> None:
        _CURRENT.set(None)
        for observer in self.observers:
            with suppressed(observer):
                observer.ends(self, outcome)

    def _outcome_of(self, change: Any) -> Outcome:
        if change is None:
            return failure("the function returned None: return the change, {} if there is none", code="returned_none")
        try:
            return Outcome(change=self.handler.encode_change(change).decode())
        except MutiraoError as error:
            return failure(error.message, code=error.code)


def failure(text: str, *, code: str, **more: str) -> Outcome:
    return Outcome(error=_as_json(code=code, error=text[:_KEPT_CHARACTERS], **more))


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

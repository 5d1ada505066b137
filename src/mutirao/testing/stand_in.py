"""Failures, crashes, pauses and replies on demand: what a worker in a test runs in place of a task's function.

    charge = fails("charge_card", times=2)
    hotel = replaced(Travel.book_hotel, returns={"hotel": "Ritz"})
    async with working(engine, [Travel], charge, hotel) as worker: ...

A stand-in is written once, as a generator, for functions that are async and for those that block in a thread: it
yields what is to be waited for, and `binding` waits in the way that fits. Several for one task act one inside the other,
the first one given outermost; each steps aside when it has acted as often as it was to.
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Literal, TypeAlias, get_args

from mutirao.errors import Failed, RequestError
from mutirao.language.task import TaskMethod
from mutirao.model import Change, Job

TaskName: TypeAlias = "str | TaskMethod[Any, ..., Any]"
Moment = Literal["before", "after", "reported"]

# What a loaded machine may need; a test that is right never waits for it.
PATIENCE = timedelta(seconds=20)


class Wanted(Enum):
    """What a stand-in may wait for, besides a future."""

    FUNCTION = "what the real function returns"
    END = "the end of the worker, or of this attempt: it does not go on"


Acting: TypeAlias = "Generator[Wanted | Future[None], Any, Any]"


@dataclass(frozen=True)
class Call:
    """One call of a task's function; `die`, `doom` and `time_out` are done by the worker that makes it."""

    state: Any
    job: Job
    die: "Callable[[Crash], None]"
    doom: "Callable[[Crash], None]"
    time_out: Callable[[], None]


class StandIn(ABC):
    """Acts so many `times`, or each time when that is None, then lets the real function do its work."""

    def __init__(self, what: str, task: TaskName, times: int | None) -> None:
        if times is not None and times < 1:
            raise RequestError("wrong_call", f"{what}: times is 1 or more, or None for each time; got {times}")
        self.task = task
        self.times = times
        self.acted = 0
        self._what = what
        self._entering = threading.Lock()

    def __str__(self) -> str:
        name = self.task if isinstance(self.task, str) else self.task.name
        times = "" if self.times in (1, None) else f", times={self.times}"
        return f'{self._what}("{name}"{times})'

    def steps_in(self) -> bool:
        """Whether it acts this time, which then counts; blocking functions ask from several threads."""
        with self._entering:
            if self.times is not None and self.acted >= self.times:
                return False
            self.acted += 1
            return True

    @property
    def missed(self) -> str | None:
        """What is to be said at the end, when it did not act as often as it was to."""
        if self.acted >= (self.times or 1):
            return None
        return f"{self} {'acted only ' + _times(self.acted) if self.acted else 'never acted'}: the task did not run"

    @abstractmethod
    def act(self, call: Call) -> Acting: ...

    def leave(self) -> None:  # noqa: B027 most kinds hold nobody
        """The worker is gone: let go of whoever still waits for something here."""


class _Fails(StandIn):
    def __init__(
        self, what: str, task: TaskName, times: int | None, error: BaseException | type[BaseException]
    ) -> None:
        super().__init__(what, task, times)
        self._error = error

    def act(self, _: Call) -> Acting:
        yield from ()
        # Anew each time: the same exception raised again would drag its earlier tracebacks along.
        raise self._error if isinstance(self._error, type) else self._error.with_traceback(None)


class _TimesOut(StandIn):
    def act(self, call: Call) -> Acting:
        call.time_out()
        yield Wanted.END


class Crash(StandIn):
    """A death of the worker."""

    def __init__(self, task: TaskName, when: Moment, times: int | None) -> None:
        super().__init__("crashes", task, times)
        self._when = when
        self._death: Future[None] = Future()

    async def happened(self, patience: timedelta = PATIENCE) -> None:
        """Wait until the worker is dead; of several deaths, for the next one that was not waited for."""
        __tracebackhide__ = True
        await _within(patience, self._death, f"{self}: no worker has died of it")
        self._death = Future()

    def is_done(self) -> None:
        """Said by the worker's successor."""
        if not self._death.done():
            self._death.set_result(None)

    def act(self, call: Call) -> Acting:
        if self._when != "before":
            change = yield Wanted.FUNCTION
            if self._when == "reported":
                call.doom(self)
                return change
        call.die(self)
        yield Wanted.END
        return None


class Pause(StandIn):
    """A gate in front of the function. `await reached()`, look around, then `open()`."""

    def __init__(self, task: TaskName) -> None:
        super().__init__("pauses", task, None)
        self._reached: Future[None] = Future()
        self._gate: Future[None] = Future()

    async def reached(self, patience: timedelta = PATIENCE) -> None:
        """Wait until somebody waits at the gate."""
        __tracebackhide__ = True
        await _within(patience, self._reached, f"{self}: nobody came to the gate")

    def open(self) -> None:
        """Let all go on that wait here, and all that come."""
        if not self._gate.done():
            self._gate.set_result(None)

    def leave(self) -> None:
        self._gate.cancel()

    def act(self, _: Call) -> Acting:
        if not self._reached.done():
            self._reached.set_result(None)
        yield self._gate
        return (yield Wanted.FUNCTION)


class Replacement(StandIn):
    """A function of the test's own; `calls` are the states that it was called with."""

    def __init__(self, task: TaskName, returns: Change | Callable[[Any], Change], times: int | None) -> None:
        super().__init__("replaced", task, times)
        self.calls: list[Any] = []
        self._returns = returns

    def act(self, call: Call) -> Acting:
        yield from ()
        self.calls.append(call.state)
        return self._returns if isinstance(self._returns, Mapping) else self._returns(call.state)


def fails(
    task: TaskName, *, times: int | None = 1, error: BaseException | type[BaseException] | str = "the test wants it so"
) -> StandIn:
    """Raises in place of the function, so many times; a text becomes a RuntimeError. Retries are used up by it."""
    return _Fails("fails", task, times, RuntimeError(error) if isinstance(error, str) else error)


def fails_for_good(task: TaskName, error: str = "the test wants it so") -> StandIn:
    """Raises `Failed` in place of the function: the job is not tried again."""
    return _Fails("fails_for_good", task, 1, Failed(error))


def times_out(task: TaskName, *, times: int | None = 1) -> StandIn:
    """The attempt is out of time at once, whatever its timeout is; nobody waits."""
    return _TimesOut("times_out", task, times)


def crashes(task: TaskName, when: Moment = "before", *, times: int | None = 1) -> Crash:
    """The worker dies as if killed: its connections are gone, and nothing is given back or reported any more.

    "before" the function, "after" it but before its report, or when that is "reported" but not answered. A new worker
    takes its place at once; the jobs of the dead one come back when their lease ends: move the clock.
    """
    if when not in get_args(Moment):
        raise RequestError("wrong_call", f'crashes: when is "before", "after" or "reported", not {when!r}')
    return Crash(task, when, times)


def pauses(task: TaskName) -> Pause:
    """Holds each call at a gate that the test opens."""
    return Pause(task)


def replaced(task: TaskName, returns: Change | Callable[[Any], Change], *, times: int | None = None) -> Replacement:
    """Returns a change of the test's own, or what a function of its own makes of the state; keeps the calls."""
    return Replacement(task, returns, times)


async def _within(patience: timedelta, awaited: Future[None], otherwise: str) -> None:
    __tracebackhide__ = True
    try:
        async with asyncio.timeout(patience.total_seconds()):
            await asyncio.shield(asyncio.wrap_future(awaited))
    except TimeoutError:
        raise AssertionError(f"{otherwise} in {patience.total_seconds():g} s") from None


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"

"""What a worker has on its desk: jobs inside user code, and those that have ended and wait to be reported."""

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from mutirao.database.protocol import Done, Line, is_lost
from mutirao.errors import LeaseLost, MutiraoError
from mutirao.language.handler import Handler
from mutirao.worker.asking import Asking
from mutirao.worker.observer import Observer
from mutirao.worker.options import WorkerOptions
from mutirao.worker.pace import Pace
from mutirao.worker.programs import Programs
from mutirao.worker.running import Outcome, Running, failure
from mutirao.worker.thread import Threads
from mutirao.worker.transaction import Transactions

log = logging.getLogger(__name__)

# Between two reports of a job whose instance somebody else is writing; doubled each time.
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 1.0


class Place(Enum):
    """Where a job is done. Each place has room of its own."""

    LOOP = "loop"
    THREAD = "thread"
    TRANSACTION = "transaction"
    PROCESS = "process"

    @classmethod
    def of(cls, handler: Handler) -> "Place":
        if handler.is_program:
            return cls.PROCESS
        if handler.transactional:
            return cls.TRANSACTION
        return cls.LOOP if handler.is_async else cls.THREAD


class Desk:
    """Jobs are known by their attempt, which is never used twice.

    `reporting` is called when something has ended that can be reported, `freed` when a place has become free without.
    """

    def __init__(
        self,
        line: Line,
        options: WorkerOptions,
        reporting: Callable[[], None],
        freed: Callable[[], None],
        observers: Sequence[Observer] = (),
    ) -> None:
        self.asking: Asking | None = None
        """Set by a worker that lets jobs ask other databases before they begin."""
        self.running: dict[int, Running] = {}
        self.ended: deque[Done] = deque()
        self.returned: deque[Running] = deque()
        """What was not for us, to be given back."""
        self.postponed: dict[int, Done] = {}
        self._being_reported: dict[int, Done] = {}
        self.done = 0
        self.failed = 0
        self.pace = Pace()
        self._observers = observers
        self._reporting = reporting
        self._freed = freed
        self._loop = asyncio.get_running_loop()
        self._threads = Threads(options.threads, self._finish)
        self._transactions = Transactions(line, options, self._finish, freed)
        self._programs = Programs(options.processes, self._run_async)

    @property
    def is_empty(self) -> bool:
        return not (self.running or self.ended or self.postponed or self.returned)

    def room_in(self, place: Place) -> int:
        """How many more jobs can be begun there soon."""
        match place:
            case Place.LOOP:
                return sys.maxsize
            case Place.THREAD:
                return self._threads.room
            case Place.TRANSACTION:
                return self._transactions.room
            case Place.PROCESS:
                return self._programs.room

    def begin(self, jobs: Iterable[Running]) -> None:
        for running in jobs:
            told = running.told
            self.running[told.attempt] = running
            if told.timeout is not None:
                running.timer = self._loop.call_later(told.timeout, self.time_out, running)
            if self.asking is not None and self.asking.is_due(running):
                running.task = self._loop.create_task(self._ask_and_place(running, self.asking))
            else:
                self._place(running)
        self._dispatch()

    def _dispatch(self) -> None:
        self._transactions.dispatch()
        self._threads.dispatch()
        self._programs.dispatch()

    def _place(self, running: Running) -> None:
        match Place.of(running.handler):
            case Place.LOOP:
                running.task = self._loop.create_task(self._run_async(running))
            case Place.PROCESS:
                self._programs.submit(running)
            case Place.THREAD:
                self._threads.submit(running)
            case Place.TRANSACTION:
                self._transactions.submit(running)

    def take_ended(self, most: int) -> list[Done]:
        """To be reported now. They stay ours until `reported`: that may take long where one of them spoils the report."""
        batch = [self.ended.popleft() for _ in range(min(most, len(self.ended)))]
        self._being_reported |= {done.attempt: done for done in batch}
        return batch

    def reported(self, batch: Sequence[Done]) -> None:
        for done in batch:
            self._being_reported.pop(done.attempt, None)

    def report(self, done: Done) -> None:
        """Let something be reported with the next turn."""
        self.ended.append(done)
        self._reporting()

    def postpone(self, done: Done) -> None:
        """Let something be reported after a pause, which grows from one time to the next."""
        self.postponed[done.attempt] = done._replace(postponed=done.postponed + 1)
        pause = min(_SHORTEST_PAUSE * 2**done.postponed, _LONGEST_PAUSE)
        self._loop.call_later(pause, self._resume, done.attempt)

    def leased(self) -> list[tuple[int, int]]:
        """Job and attempt of everything whose lease must be kept up."""
        running = [(each.told.job, each.told.attempt) for each in self.running.values()]
        ended = (*self._being_reported.values(), *self.postponed.values(), *self.ended)
        return running + [(each.job, each.attempt) for each in ended]

    def withdraw(self) -> list[Running]:
        """What has been leased but not begun: taken off the desk."""
        waiting = self._threads.withdraw() + self._transactions.withdraw() + self._programs.withdraw()
        return [running for running in waiting if self._take_off(running)]

    def clear(self) -> list[Running]:
        """Everything that has not ended: stopped and taken off the desk."""
        return [running for running in list(self.running.values()) if self._stop(running)]

    def lose(self, attempt: int) -> None:
        """Somebody else has the job by now: what we still do for it is of no use."""
        running = self.running.get(attempt)
        if running is not None:
            log.warning("%s: the lease of attempt %s is lost", running, attempt, extra=running.extra)
            for observer in self._observers:
                observer.lost(running.handler)
            self._stop(running)
            self._freed()

    async def close(self, within: float) -> None:
        await self._transactions.end(within)
        self._threads.close()

    def _resume(self, attempt: int) -> None:
        self.report(self.postponed.pop(attempt))

    def _stop(self, running: Running) -> bool:
        was_here = self._take_off(running)
        if running.task is not None:
            running.task.cancel()
        return was_here

    def _take_off(self, running: Running) -> bool:
        """False if it was off already: an outcome that comes late is not reported."""
        if running.timer is not None:
            running.timer.cancel()
        running.ended = True
        return self.running.pop(running.told.attempt, None) is not None

    def _finish(self, running: Running, outcome: Outcome | None) -> None:
        if not self._take_off(running):
            self._freed()  # too late to be reported, but its place is free
            return
        if outcome is None:
            return
        if outcome.is_given_back:
            self.returned.append(running)
            self._reporting()
            return
        if outcome.error is None:
            self.done += 1
        else:
            self.failed += 1
        for observer in self._observers:
            observer.finished(running, outcome)
        if outcome.is_written:
            self.pace.count(running.told.task, running.taken_at)
        else:
            self.report(running.done(outcome))

    def time_out(self, running: Running) -> None:
        self._finish(running, failure(f"did not end within its timeout of {running.told.timeout:g} s", code="timeout"))
        if running.task is not None:
            running.task.cancel()

    async def _ask_and_place(self, running: Running, asking: Asking) -> None:
        """What the job takes from other databases comes first; where it is not to be had, the attempt has failed."""
        try:
            await asking.ask(running)
        except LeaseLost:
            self.lose(running.told.attempt)
        except MutiraoError as error:
            # Without the server nobody can be told: the job comes back when its lease ends.
            self._finish(running, None if is_lost(error) else failure(error.message, code=error.code))
        else:
            self._place(running)
            self._dispatch()

    async def _run_async(self, running: Running) -> None:
        self._finish(running, await running.call_async())

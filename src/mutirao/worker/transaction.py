"""Tasks that do their work in the job's own transaction: it and the job's end are committed together, or neither is.

The user's function gets a connection inside an open transaction; when it returns, the change is written in the same
transaction. Where the change may not be written now, the transaction is rolled back and the job is parked without one:
it will run again.

When the connection breaks nobody knows whether the transaction was committed, so nothing is reported: the job is gone,
or it comes back when its lease ends.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from mutirao.database.protocol import Backoff, Line, is_lost
from mutirao.database.transaction import (
    NOTHING_HAS_BEGUN,
    blocking_transaction,
    end_job,
    end_job_blocking,
    transaction,
)
from mutirao.errors import LeaseLost, MutiraoError
from mutirao.worker.options import WorkerOptions
from mutirao.worker.running import Outcome, Running, failure, failure_of
from mutirao.worker.thread import in_thread

log = logging.getLogger(__name__)

_PARKING = ("final_blocked", "condition_failed")
# The server stops what we cannot, a function that blocks; but later than we do, so that it is we who say why.
_GRACE = timedelta(seconds=2)


class _Undo(Exception):
    """Raised inside a transaction to have it rolled back."""

    def __init__(self, outcome: Outcome | None) -> None:
        super().__init__()
        self.outcome = outcome


class Transactions:
    """Runs transactional jobs on `line`'s server, each on a connection of its own, some of them at once.

    `finished` is called with each job and its outcome; None when there is none that is worth a report. `freed` is called
    when a place has become free.
    """

    def __init__(
        self,
        line: Line,
        options: WorkerOptions,
        finished: Callable[[Running, Outcome | None], None],
        freed: Callable[[], None],
    ) -> None:
        self._line = line
        self._size = options.transactions
        self._limit = options.transaction_limit.total_seconds()
        milliseconds = int((options.transaction_limit + _GRACE).total_seconds() * 1000)
        self._options: dict[str, Any] = {
            "application_name": f"{line.name} transaction",
            "options": f"-c statement_timeout={milliseconds} -c idle_in_transaction_session_timeout={milliseconds}",
        }
        self._finished = finished
        self._freed = freed
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Running] = deque()
        self._under_way = 0
        self._is_waiting = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads: dict[Running, asyncio.Future[None]] = {}

    async def end(self, within: float) -> None:
        """Let what was cancelled roll back and close its connection."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within)

    @property
    def room(self) -> int:
        """How many more jobs keep us busy without hoarding."""
        return self._size * 2 - self._under_way - len(self._queue)

    def submit(self, running: Running) -> None:
        """To be run with the next `dispatch`."""
        self._queue.append(running)

    def dispatch(self) -> None:
        while self._queue and self._under_way < self._size:
            running = self._queue.popleft()
            if not running.ended:
                self._under_way += 1
                running.task = self._loop.create_task(self._run(running))
                self._tasks.add(running.task)
                running.task.add_done_callback(partial(self._ended, running))

    def withdraw(self) -> list[Running]:
        """What has not been begun: taken back."""
        waiting = list(self._queue)
        self._queue.clear()
        return waiting

    async def _run(self, running: Running) -> None:
        timer = self._loop.call_later(self._limit, self._stop, running)
        try:
            self._finished(running, await self._attempt(running))
        finally:
            timer.cancel()

    def _ended(self, running: Running, task: "asyncio.Task[None]") -> None:
        """Also of a task that was cancelled before it began."""
        self._tasks.discard(task)
        thread = self._threads.pop(running, None)
        if thread is None or thread.done():
            self._free()
        else:  # a thread cannot be stopped: its place is taken until it comes back
            thread.add_done_callback(self._free)

    def _free(self, _: object = None) -> None:
        self._under_way -= 1
        self.dispatch()
        self._freed()

    def _stop(self, running: Running) -> None:
        text = f"its transaction did not end within {self._limit:g} s, the longest that this worker allows"
        self._finished(running, failure(text, code="timeout"))
        if running.task is not None:
            running.task.cancel()

    async def _attempt(self, running: Running) -> Outcome | None:
        backoff = Backoff()
        while True:
            try:
                if running.handler.is_async:
                    await self._do_async(running)
                else:
                    self._threads[running] = in_thread(partial(self._do_blocking, running))
                    await asyncio.shield(self._threads[running])
                return Outcome(is_written=True)
            except _Undo as undone:
                return undone.outcome
            except MutiraoError as error:
                if error.code != NOTHING_HAS_BEGUN:
                    return await self._refused(running, error)
                if not self._is_waiting:
                    self._is_waiting = True
                    log.warning("transactional jobs wait for the server: %s", error)
                await backoff.wait()
            except Exception as error:  # noqa: BLE001 a job must come out of here with an outcome, whatever happens
                return failure_of(error)

    async def _do_async(self, running: Running) -> None:
        async with transaction(self._line.url, **self._options) as connection:
            self._is_waiting = False
            outcome = await running.call_async(connection)
            await end_job(connection, *_ending(running, outcome, connection.broken))

    def _do_blocking(self, running: Running) -> None:
        with blocking_transaction(self._line.url, **self._options) as connection:
            self._is_waiting = False
            outcome = running.call(connection)
            end_job_blocking(connection, *_ending(running, outcome, connection.broken))

    async def _refused(self, running: Running, error: MutiraoError) -> Outcome | None:
        """The change was not written, and with it nothing that user code did in the transaction."""
        job, extra = running.told.job, running.extra
        if isinstance(error, LeaseLost):
            log.info("job %s is no longer ours: its transaction was rolled back", job, extra=extra)
            for observer in running.observers:
                observer.lost(running.handler)
        elif is_lost(error):
            log.warning(
                "job %s: %s; if it was not committed, it comes back when its lease ends", job, error, extra=extra
            )
        elif error.code in _PARKING:
            await self._park(running, error)
        else:
            return failure(error.message, code=error.code)
        return None

    async def _park(self, running: Running, error: MutiraoError) -> None:
        problem = msgspec.json.encode({"code": error.code, "error": error.message}).decode()
        try:
            await self._line.park(running.told.job, running.told.attempt, None, problem)
        except MutiraoError as refused:
            job = running.told.job
            log.warning(
                "job %s is not parked, it comes back when its lease ends: %s", job, refused, extra=running.extra
            )
        else:
            log.info("job %s is parked: %s", running.told.job, error.code, extra=running.extra)
            for observer in running.observers:
                observer.parked(running.handler)


def _ending(running: Running, outcome: Outcome, is_broken: bool) -> tuple[int, int, str]:
    if outcome.change is None:
        # What user code makes of a connection that breaks under it is not its own failure.
        raise _Undo(None if is_broken else outcome)
    return running.told.job, running.told.attempt, outcome.change

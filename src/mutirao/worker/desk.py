"""What a worker has on its desk: jobs inside user code, and those that have ended and wait to be reported."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable

from mutirao.database.protocol import Done
from mutirao.worker.running import Outcome, Running, failure, run_async
from mutirao.worker.thread import Threads
from mutirao.worker.transaction import Transactions

log = logging.getLogger(__name__)


class Desk:
    """`woken` is called when something has ended. Jobs are known by their attempt, which is never used twice."""

    def __init__(self, transactions: Transactions, threads: int, woken: Callable[[], None]) -> None:
        self.running: dict[int, Running] = {}
        self.ended: deque[Done] = deque()
        self.done = 0
        self.failed = 0
        self._transactions = transactions
        self._threads = Threads(threads, self._finish)
        self._woken = woken
        self._loop = asyncio.get_running_loop()

    @property
    def blocking_is_full(self) -> bool:
        """Whether the threads have enough to do."""
        blocking = sum(1 for running in self.running.values() if not running.handler.is_async)
        return blocking >= self._threads.capacity

    def begin(self, jobs: Iterable[Running]) -> None:
        for running in jobs:
            told = running.told
            self.running[told.attempt] = running
            if told.timeout is not None:
                running.timer = self._loop.call_later(told.timeout, self._time_out, running)
            if running.handler.transactional:
                running.task = self._loop.create_task(self._run_transaction(running))
            elif running.handler.is_async:
                running.task = self._loop.create_task(run_async(running, self._finish))
            else:
                self._threads.submit(running)
        self._threads.dispatch()

    def take_ended(self, most: int) -> list[Done]:
        return [self.ended.popleft() for _ in range(min(most, len(self.ended)))]

    def report(self, done: Done) -> None:
        """Let something be reported with the next turn."""
        self.ended.append(done)
        self._woken()

    def withdraw(self) -> list[Running]:
        """What has been leased but not begun: taken off the desk."""
        return [running for running in self._threads.withdraw() if self._take_off(running)]

    def clear(self) -> list[Running]:
        """Everything that has not ended: stopped and taken off the desk."""
        return [running for running in list(self.running.values()) if self._stop(running)]

    def lose(self, jobs: Iterable[int]) -> None:
        """Somebody else has these jobs by now: what we still do for them is of no use."""
        lost = set(jobs)
        for running in list(self.running.values()):
            if running.told.job in lost:
                log.warning("job %s: the lease of attempt %s is lost", running.told.job, running.told.attempt)
                self._stop(running)

    def close(self) -> None:
        self._threads.close()

    def _stop(self, running: Running) -> bool:
        if running.task is not None:
            running.task.cancel()
        return self._take_off(running)

    def _take_off(self, running: Running) -> bool:
        """False if it was off already: an outcome that comes late is not reported."""
        if running.timer is not None:
            running.timer.cancel()
        running.ended = True
        return self.running.pop(running.told.attempt, None) is not None

    def _finish(self, running: Running, outcome: Outcome | None) -> None:
        if not self._take_off(running):
            return
        if outcome is None or outcome.error is None:
            self.done += 1
        else:
            self.failed += 1
            log.info("job %s of instance %s failed: %s", running.told.job, running.told.instance, outcome.error[:300])
        if outcome is not None:
            self.ended.append(running.done(outcome))
        self._woken()

    def _time_out(self, running: Running) -> None:
        if running.task is not None:
            running.task.cancel()
        self._finish(running, failure(f"did not end within its timeout of {running.told.timeout:g} s", code="timeout"))

    async def _run_transaction(self, running: Running) -> None:
        self._finish(running, await self._transactions.run(running))

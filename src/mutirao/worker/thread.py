"""Blocking functions run in threads: quick ones many to a hop, slow ones each on its own.

A hop to a thread costs as much as a hundred quick calls. So the time a job takes is measured, and as many jobs go in one
hop as fit into a few milliseconds. Should one of them take long after all, those behind it are taken back.

Threads are daemons: a function that does not return cannot be stopped, but it must not keep the process from ending.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import TypeVar

from mutirao.worker.running import Outcome, Running

T = TypeVar("T")

_HOP_SECONDS = 0.005
_MOST_IN_A_HOP = 100
# A hop that is still under way after this long is stuck in one of its jobs.
_STUCK_SECONDS = 0.05


class _Hop:
    """Jobs that go through a thread one after another. The loop may take out at both ends meanwhile."""

    __slots__ = ("current", "ended", "seconds", "size", "waiting", "watch")

    def __init__(self, jobs: Iterable[Running]) -> None:
        self.waiting = deque(jobs)
        self.size = len(self.waiting)
        self.ended: deque[tuple[Running, Outcome]] = deque()
        self.current: Running | None = None
        self.seconds = 0.0
        self.watch: asyncio.TimerHandle | None = None

    def run(self) -> None:
        began = time.perf_counter()
        while True:
            try:
                self.current = running = self.waiting.popleft()
            except IndexError:
                break
            self.ended.append((running, Outcome() if running.ended else running.call()))
        self.seconds = time.perf_counter() - began

    @property
    def is_given_up(self) -> bool:
        """Whether nobody waits any more for what the thread is doing."""
        return self.current is not None and self.current.ended


class Threads:
    """Runs blocking jobs; `finished` is called on the loop with each job and its outcome."""

    def __init__(self, size: int, finished: Callable[[Running, Outcome], None]) -> None:
        self._size = size
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._inbox: SimpleQueue[_Hop | None] = SimpleQueue()
        self._started = 0
        self._queue: deque[Running] = deque()
        self._under_way: set[_Hop] = set()
        self._load = 0
        self._seconds_each = _HOP_SECONDS

    @property
    def room(self) -> int:
        """How many more jobs keep the threads busy without hoarding."""
        usable = self._size - sum(hop.is_given_up for hop in self._under_way)
        return usable * self._hop_size * 2 - self._load

    @property
    def _hop_size(self) -> int:
        return max(1, min(_MOST_IN_A_HOP, int(_HOP_SECONDS / max(self._seconds_each, 1e-9))))

    def submit(self, running: Running) -> None:
        """To be run with the next `dispatch`."""
        self._load += 1
        self._queue.append(running)

    def dispatch(self) -> None:
        """Send what is queued to the threads that are free."""
        while self._queue and len(self._under_way) < self._size:
            hop = _Hop(self._queue.popleft() for _ in range(min(self._hop_size, len(self._queue))))
            self._under_way.add(hop)
            if len(self._under_way) > self._started:
                self._started += 1
                threading.Thread(target=self._work, name=f"mutirao-job-{self._started}", daemon=True).start()
            if hop.size > 1:
                hop.watch = self._loop.call_later(_STUCK_SECONDS, self._rescue, hop)
            self._inbox.put(hop)

    def withdraw(self) -> list[Running]:
        """What no thread has begun: taken back."""
        for hop in self._under_way:
            self._take_back(hop)
        waiting = list(self._queue)
        self._queue.clear()
        self._load -= len(waiting)
        return waiting

    def close(self) -> None:
        for _ in range(self._started):
            self._inbox.put(None)

    def _work(self) -> None:
        while (hop := self._inbox.get()) is not None:
            hop.run()
            if not _call_on(self._loop, self._landed, hop):
                return

    def _landed(self, hop: _Hop) -> None:
        self._under_way.discard(hop)
        if hop.watch is not None:
            hop.watch.cancel()
        if hop.size:
            self._seconds_each += (hop.seconds / hop.size - self._seconds_each) * 0.2
        self._hand_over(hop)
        self.dispatch()

    def _rescue(self, hop: _Hop) -> None:
        self._hand_over(hop)
        self._take_back(hop)
        self.dispatch()

    def _hand_over(self, hop: _Hop) -> None:
        while hop.ended:
            self._load -= 1
            self._finished(*hop.ended.popleft())

    def _take_back(self, hop: _Hop) -> None:
        while True:
            try:
                self._queue.append(hop.waiting.popleft())
            except IndexError:
                return
            hop.size -= 1


def in_thread(function: Callable[[], T]) -> "asyncio.Future[T]":
    """Run a function in a thread of its own. Unlike asyncio's own way, the process may end before it does."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type] # None only beside an error

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 it is raised where the result is awaited
            _call_on(loop, settle, None, error)
        else:
            _call_on(loop, settle, result, None)

    threading.Thread(target=run, name="mutirao-transaction", daemon=True).start()
    return future


def _call_on(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> bool:
    """False if the loop is gone: whoever waited for the thread has left."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        return False
    return True

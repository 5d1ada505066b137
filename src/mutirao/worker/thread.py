"""Blocking functions run in threads: quick ones many to a hop, slow ones each on its own.

A hop to a thread costs as much as a hundred quick calls. So the time a function takes is measured, and as many of its
jobs go in one hop as fit into a few milliseconds; a function that takes longer gets one job a hop, and so all threads.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from mutirao.worker.running import Outcome, Running, run_blocking

_HOP_SECONDS = 0.005
_MOST_IN_A_HOP = 100


class Threads:
    """Runs blocking jobs; `finished` is called on the loop with each job and its outcome."""

    def __init__(self, size: int, finished: Callable[[Running, Outcome], None]) -> None:
        self.size = size
        self._finished = finished
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="mutirao-job")
        self._queue: deque[Running] = deque()
        self._busy = 0
        self._seconds_each = _HOP_SECONDS

    @property
    def capacity(self) -> int:
        """How many jobs keep the threads busy without hoarding."""
        return self.size * self._hop_size * 2

    @property
    def _hop_size(self) -> int:
        return max(1, min(_MOST_IN_A_HOP, int(_HOP_SECONDS / max(self._seconds_each, 1e-9))))

    def submit(self, running: Running) -> None:
        self._queue.append(running)

    def dispatch(self) -> None:
        """Send what is queued to the threads that are free."""
        while self._queue and self._busy < self.size:
            hop = [self._queue.popleft() for _ in range(min(self._hop_size, len(self._queue)))]
            self._busy += 1
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._pool, _run_hop, hop)
            future.add_done_callback(self._landed)

    def withdraw(self) -> list[Running]:
        """What no thread has begun: taken back."""
        waiting = list(self._queue)
        self._queue.clear()
        return waiting

    def _landed(self, future: "asyncio.Future[tuple[list[tuple[Running, Outcome]], float]]") -> None:
        self._busy -= 1
        if future.cancelled():
            return
        outcomes, seconds = future.result()
        self._seconds_each += (seconds / len(outcomes) - self._seconds_each) * 0.2
        for running, outcome in outcomes:
            self._finished(running, outcome)
        self.dispatch()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _run_hop(hop: list[Running]) -> tuple[list[tuple[Running, Outcome]], float]:
    began = time.perf_counter()
    outcomes = [(running, run_blocking(running)) for running in hop]
    return outcomes, time.perf_counter() - began

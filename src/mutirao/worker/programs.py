"""The jobs that programs do: so many at once, and the others wait."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from mutirao.worker.running import Running


class Programs:
    """`run` is awaited for each job in a task of its own, which may be cancelled."""

    def __init__(self, size: int, run: Callable[[Running], Coroutine[Any, Any, None]]) -> None:
        self._size = size
        self._run = run
        self._queue: deque[Running] = deque()
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def room(self) -> int:
        return self._size - len(self._under_way) - len(self._queue)

    def submit(self, running: Running) -> None:
        """To be run with the next `dispatch`."""
        self._queue.append(running)

    def dispatch(self) -> None:
        while self._queue and len(self._under_way) < self._size:
            running = self._queue.popleft()
            if not running.ended:
                running.task = asyncio.create_task(self._run(running))
                self._under_way.add(running.task)
                running.task.add_done_callback(self._ended)

    def withdraw(self) -> list[Running]:
        """What has not been begun: taken back."""
        waiting = list(self._queue)
        self._queue.clear()
        return waiting

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        self.dispatch()

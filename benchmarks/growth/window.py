"""How many steps are done in some seconds, where there is more to do than that."""

import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from typing import Any

import psycopg

from benchmarks.measure import BrokenRunError, one

_PATIENCE = 120.0
_LOOK_EVERY = 0.005


class Window:
    """Opens when the first step has been done since it was made.

    Every write of an instance takes a number for its row in the trace, and while nobody starts any, the writes are
    steps: reading how far the numbers are costs next to nothing.
    """

    def __init__(self, probe: psycopg.Connection[Any]) -> None:
        self._probe = probe
        self._before = self._number()

    def measure(self, seconds: float, steps: int, processes: Sequence[BaseProcess]) -> tuple[float, float]:
        """Steps and seconds, from the first until all are done or so many seconds have passed."""
        deadline = time.monotonic() + _PATIENCE
        while not self._done():
            if time.monotonic() > deadline or not all(each.is_alive() for each in processes):
                raise BrokenRunError("no worker has begun with the queue")
            time.sleep(_LOOK_EVERY)
        began, first = time.perf_counter(), self._done()
        done, took = first, 0.0
        while done < steps and took < seconds:
            time.sleep(_LOOK_EVERY)
            done, took = self._done(), time.perf_counter() - began
            if not all(each.is_alive() for each in processes):
                raise BrokenRunError("a worker ended before its work was done")
        return done - first, max(took, _LOOK_EVERY)

    def _done(self) -> int:
        return self._number() - self._before

    def _number(self) -> int:
        return int(one(self._probe, "select last_value from mutirao.trace_id"))

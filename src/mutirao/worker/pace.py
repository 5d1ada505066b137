"""How much a worker does, and how long it takes: counted here, and handed in with its announcements.

On the way of a job this is one count in a dictionary. What was counted since the last time is lost with a worker that is
killed, and where the server does not answer: it is for people who look at a chart, and no job depends on it.
"""

import math
import time
from collections import Counter
from collections.abc import Collection, Sequence

from mutirao.database.protocol import Done

FAILED = -1
LONGEST = 63


class Pace:
    """Attempts by second, task and how long they took: see the comment on the table mutirao.minute_pace."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, int, int]] = Counter()

    def count(self, task: int, taken_at: float) -> None:
        """What went well and needs no report."""
        now = time.monotonic()
        self._counts[int(now), task, _rank(now - taken_at)] += 1

    def count_all(self, batch: Sequence[Done], apart: Collection[int]) -> None:
        """What was reported, but for the attempts that were not simply taken."""
        now = time.monotonic()
        second = int(now)
        counts = self._counts
        for done in batch:
            if done.attempt not in apart:
                counts[second, done.task, _rank(now - done.taken_at) if done.error is None else FAILED] += 1

    def take(self) -> list[tuple[int, int, int, int]]:
        """All of it, to be handed in: how many seconds ago, the task, how long it took, how many."""
        counts, self._counts = self._counts, Counter()
        now = int(time.monotonic())
        return [(now - second, task, rank, count) for (second, task, rank), count in counts.items()]


def _rank(seconds: float) -> int:
    """0 up to a millisecond; each next one ends at the root of two times as long."""
    return min(LONGEST, max(0, math.ceil(2 * math.log2(max(seconds, 0.001) * 1000))))

"""How fast something grows, over the last seconds."""

import time
from collections import deque

_SECONDS = 5.0


class Rate:
    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, count: int) -> float:
        """Note how much there is by now; answers how much came each second."""
        now = time.monotonic()
        self._seen.append((now, count))
        while now - self._seen[0][0] > _SECONDS:
            self._seen.popleft()
        first, before = self._seen[0]
        return (count - before) / (now - first) if now > first else 0.0

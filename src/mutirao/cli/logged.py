"""Which lines `mutirao up` writes where nobody watches, such as into a log: what matters must not scroll away among them."""

import time

from mutirao.cli.board import View

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0


class Logged:
    """What was written last. New trouble is written at once, other news ever more rarely, and nothing twice."""

    def __init__(self) -> None:
        self._line = ""
        self._trouble = View().trouble
        self._pause = _FIRST_PAUSE
        self._next_at = 0.0

    def is_due(self, line: str, view: View, *, is_last: bool) -> bool:
        now = time.monotonic()
        is_awaited = now >= self._next_at or is_last or view.trouble != self._trouble
        if line == self._line or not is_awaited:
            return False
        self._line, self._trouble = line, view.trouble
        self._next_at = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True

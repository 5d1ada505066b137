"""Notices when something holds up the event loop, and says who it is while it is still at it.

The loop beats a few times a second. A thread of its own listens: when a beat is a second late, it looks at what the loop's
thread is doing at that moment. Nothing of this is on the way of a job.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

from mutirao.worker.observer import Observer
from mutirao.worker.running import Running

log = logging.getLogger(__name__)

_BEAT = 0.25
_TOO_LATE = 1.0
# A process that was stopped and goes on has missed beats too: within this, its loop has beaten again.
_SECOND_LOOK = 0.1

_INSIDE_A_JOB = Running.call_async.__code__


class Pulse:
    def __init__(self, worker: str, observers: Sequence[Observer]) -> None:
        self._worker = worker
        self._observers = observers
        self._beaten_at = 0.0
        self._ended = threading.Event()

    async def run(self) -> None:
        """Beat until cancelled."""
        self._beaten_at = time.monotonic()
        loop = threading.get_ident()
        threading.Thread(target=self._listen, args=(loop,), name="mutirao-pulse", daemon=True).start()
        try:
            while True:
                await asyncio.sleep(_BEAT)
                now = time.monotonic()
                lag, self._beaten_at = now - self._beaten_at - _BEAT, now
                for observer in self._observers:
                    observer.lagged(max(lag, 0.0))
        finally:
            self._ended.set()

    def _listen(self, loop: int) -> None:
        told = 0.0
        while not self._ended.wait(_BEAT):
            beaten_at = self._beaten_at
            if beaten_at == told or time.monotonic() - beaten_at < _BEAT + _TOO_LATE:
                continue
            if not self._ended.wait(_SECOND_LOOK) and self._beaten_at == beaten_at:
                told = beaten_at
                self._tell(time.monotonic() - beaten_at - _BEAT, sys._current_frames().get(loop))  # noqa: SLF001 documented

    def _tell(self, late: float, frame: FrameType | None) -> None:
        running, at = _job_at(frame)
        where = f"{at.f_code.co_filename}:{at.f_lineno}" if at is not None else "an unknown place"
        if running is None:
            extra = {"worker": self._worker}
            log.warning("the event loop is held up for %.1f s, by no job, at %s", late, where, extra=extra)
        else:
            log.warning(
                "the event loop is held up for %.1f s by %s at %s: what blocks belongs in a function without async, "
                "which runs in a thread",
                *(late, running, where),
                extra=running.extra,
            )


def _job_at(frame: FrameType | None) -> tuple[Running | None, FrameType | None]:
    """The job whose code stands on this stack, and where its own function is; else only the place."""
    inner = outer = frame
    while outer is not None:
        if outer.f_code is _INSIDE_A_JOB:
            return outer.f_locals["self"], inner
        inner, outer = outer, outer.f_back
    return None, frame

"""Whoever wants to know what a worker does: metrics, spans, a test.

Every method does nothing until it is overridden. A worker without observers loops over an empty tuple, and so pays
nothing; an observer must be quick, since it stands on the way of each job.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mutirao.database.engine import Engine
from mutirao.errors import MutiraoError
from mutirao.language.handler import Handler

if TYPE_CHECKING:  # a job tells its observers, and they are told of a job
    from mutirao.worker.running import Outcome, Running
    from mutirao.worker.worker import Worker

log = logging.getLogger(__name__)


class Observer:
    """Given to a `Worker` or a `Clock`. All but `begins` and `ends` are called on the event loop."""

    def watch(self, engine: Engine, worker: "Worker | None" = None) -> None:
        """A program tells it in which database it works, and by which worker."""

    async def prepare(self, engine: Engine, jobs: "Sequence[Running]") -> None:
        """These came with one turn and are about to begin. `observed` of each is for what you keep about it."""

    def begins(self, running: "Running") -> None:
        """User code is about to be called, in this thread and context."""

    def ends(self, running: "Running", outcome: "Outcome | None") -> None:
        """User code has come back, in the same thread and context; without an outcome when it was stopped."""

    def finished(self, running: "Running", outcome: "Outcome") -> None:
        """An attempt came out well or badly, and somebody still waited for it."""

    def failed(self, handler: Handler, fate: str) -> None:
        """What became of a failed attempt: `retried`, `given_up`, or `dropped` with an instance that was cancelled."""

    def parked(self, handler: Handler) -> None:
        """A job is done, but its change must wait."""

    def lost(self, handler: Handler) -> None:
        """Somebody else has the job by now."""

    def called(self, call: str, seconds: float, error: MutiraoError | None) -> None:
        """The database has answered, or has not."""

    def ticked(self, duty: str, done: int, next_in: float | None) -> None:
        """A clock did one of its duties; the next is due in so many seconds, less than nothing where it is late."""

    def lagged(self, seconds: float) -> None:
        """How much later than asked for the event loop came back."""


@contextmanager
def suppressed(observer: Observer) -> Iterator[None]:
    """Jobs go on, whatever becomes of those who only look."""
    try:
        yield
    except Exception:
        log.exception("%s failed; the job goes on", type(observer).__name__)

"""What became of failed attempts: tried again, given up, or seen to by the flow. It is the database that knows, and it is asked aside.

The rules are in SQL, and may change while we work. To have every turn answer this would cost those who do not fail. So
failures are gathered for a moment and asked for in one go; they are in the log and in the metrics a little later.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from mutirao.database.engine import Engine
from mutirao.database.protocol import Backoff, Done, may_pass
from mutirao.errors import MutiraoError
from mutirao.language.handler import Handler
from mutirao.worker.observer import Observer

log = logging.getLogger(__name__)

# Of a failure for good that the flow sees to.
_SEEN_TO = {
    "replaced": "its contingency takes its place",
    "released": "what depends on it goes on",
    "rolled_back": "its instance is rolled back",
}

_GATHER_SECONDS = 0.2
_MOST_AT_ONCE = 1_000
# More than these are not kept while the server is away.
_MOST_KEPT = 10_000


class Fates:
    def __init__(
        self, engine: Engine, worker: str, handlers: Mapping[int, Handler], observers: Sequence[Observer]
    ) -> None:
        self._engine = engine
        self._worker = worker
        self._handlers = handlers
        self._observers = observers
        self._failed: deque[Done] = deque(maxlen=_MOST_KEPT)
        self._some = asyncio.Event()

    def ask(self, done: Done) -> None:
        """The database has been told of this failure."""
        self._failed.append(done)
        self._some.set()

    async def run(self) -> None:
        """Ask now and then, until cancelled."""
        backoff = Backoff()
        while True:
            await self._some.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            try:
                await self._ask_some()
                backoff.reset()
            except MutiraoError as error:
                if not may_pass(error):  # a worker does its jobs, also where it may not know this
                    extra = {"worker": self._worker}
                    log.warning(
                        "what became of %s failed attempts is not known: %s", len(self._failed), error, extra=extra
                    )
                    self._failed.clear()
                    self._some.clear()
                await backoff.wait()

    async def flush(self, within: float) -> None:
        """The last ones, if the server answers."""
        with suppress(MutiraoError, TimeoutError):
            async with asyncio.timeout(within):
                while self._failed:
                    await self._ask_some()

    async def _ask_some(self) -> None:
        batch = [self._failed.popleft() for _ in range(min(len(self._failed), _MOST_AT_ONCE))]
        try:
            found = await self._engine.fates([(each.job, each.attempt, each.instance, each.failures) for each in batch])
        except BaseException:
            self._failed.extendleft(reversed(batch))
            raise
        if not self._failed:
            self._some.clear()
        for done in batch:
            self._tell(done, found[done.attempt])

    def _tell(self, done: Done, fate: str) -> None:
        handler = self._handlers[done.task]
        for observer in self._observers:
            observer.failed(handler, fate)
        level = logging.ERROR if fate == "given_up" else logging.INFO
        if not log.isEnabledFor(level):
            return
        error = msgspec.json.decode(done.error or "{}")
        said = str(error.get("error", "")).partition("\n")[0][:300]
        extra = {
            **described(handler, done, self._worker),
            "fate": fate,
            "tries": done.failures + 1,
            "code": error.get("code"),
        }
        match fate:
            case "given_up":
                log.error(
                    "job %s failed for good, try %s was its last: %s", done.job, done.failures + 1, said, extra=extra
                )
            case "replaced" | "released" | "rolled_back":
                log.info("job %s failed for good, and %s: %s", done.job, _SEEN_TO[fate], said, extra=extra)
            case "retried":
                log.info("job %s failed, try %s, to be tried again: %s", done.job, done.failures + 1, said, extra=extra)
            case _:
                log.info("job %s failed, and goes with its instance: %s", done.job, said, extra=extra)


def described(handler: Handler, done: Done, worker: str) -> dict[str, object]:
    """The fields of a log line about a job that has ended."""
    return {
        "instance": done.instance,
        "job": done.job,
        "task": handler.task,
        "flow": handler.flow,
        "attempt": done.attempt,
        "worker": worker,
    }

"""A worker that runs in the test, beside it: the test starts instances, moves the clock, and waits for what comes of it.

    async with working(engine, [Travel], fails("book_hotel", times=2)) as worker:
        trip = await engine.start(Travel(city="Recife"))
        await worker.until(trip, "closed.completed")

When it dies, by `crashes`, another one takes its place, as a supervisor would see to it.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any

from mutirao.database.engine import STATUSES, Engine
from mutirao.database.record import Instance
from mutirao.errors import RequestError
from mutirao.model import Job
from mutirao.model.name import suggest
from mutirao.testing.engine import move_clock
from mutirao.testing.mortal import MortalWorker, Setting, Stir
from mutirao.testing.quiet import account, is_coming, unrest
from mutirao.testing.stand_in import PATIENCE, StandIn, TaskName
from mutirao.testing.story import StoryError, as_json, check_attributes, tell_all
from mutirao.worker import WorkerOptions

# Something may happen that our worker does not hear of: then it is seen a little later.
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.1
# Nothing is left to do, and has not been for so long: nothing will come of waiting.
_CERTAINLY_QUIET = 0.5


class WorkerInTest:
    """What `working` gives."""

    def __init__(self, setting: Setting, options: WorkerOptions) -> None:
        __tracebackhide__ = True
        self.engine = setting.engine
        self.deaths = 0
        """How many workers have died."""
        self._setting = setting
        self._options = options
        self._stir = setting.stir
        self._worker = self._next_worker()
        self._working: asyncio.Task[None] | None = None

    async def until(
        self, instance: int, status: str | None = None, *, patience: timedelta = PATIENCE, **state: Any
    ) -> Instance:
        """Wait until an instance has this status, or one that begins so, and these values; answers the instance.

        Without any, until it has ended or is an exception. What cannot come any more is not waited for: the
        instance's story tells why.
        """
        __tracebackhide__ = True
        if status is not None and not any(known.startswith(status) for known in STATUSES):
            raise RequestError("wrong_call", f'there is no status "{status}"{suggest(status, STATUSES)}')
        await check_attributes(self.engine, instance, state)
        wanted = _Wanted(status, as_json(state))
        pause = _Pause(patience)
        while not wanted.by(found := await self.engine.instance(instance)):
            pause.is_hopeless = not found.is_open
            await self._pause(pause)
            if pause.is_over:
                story = await tell_all(self.engine, [instance])
                raise StoryError(f"waited in vain for {wanted}: {pause.ended}", story, [instance])
        return found

    async def quiet(self, *, through_retries: bool = False, patience: timedelta = PATIENCE) -> None:
        """Wait until nothing is ready or running, and nothing is due: see `run_until_quiet`."""
        __tracebackhide__ = True
        pause, deaths = _Pause(patience), 0
        while True:
            self._check()
            if self.deaths > deaths:
                deaths = self.deaths
                await move_clock(self.engine, self._options.lease)
            is_restless, due_in = await unrest(self.engine)
            if not is_restless and due_in is not None and through_retries:
                await move_clock(self.engine, timedelta(seconds=due_in))
                pause.short()
            elif not is_restless:
                return
            if pause.is_out_of_patience:
                raise RequestError("not_quiet", await account(self.engine, self._worker, patience))
            await pause.wait(self._stir)

    async def do(self, task: TaskName, *, patience: timedelta = PATIENCE) -> Job:
        """Do exactly one job of this task, which must be ready, to the end of the attempt, however that is.

        For a worker that works `by_hand`: it does nothing else.
        """
        __tracebackhide__ = True
        name = task if isinstance(task, str) else task.name
        if not self._setting.by_hand:
            raise RequestError("wrong_call", f'do("{name}"): this worker does all jobs; say working(…, by_hand=True)')
        try:
            async with asyncio.timeout(patience.total_seconds()):
                pause = _Pause(patience)
                while (job := await self._worker.do(task)) is None and await is_coming(self.engine, name):
                    await pause.wait(self._stir)
        except TimeoutError:
            story = await tell_all(self.engine)
            raise StoryError(f'do("{name}") has not ended in {patience.total_seconds():g} s', story) from None
        if job is None:
            raise StoryError(f'do("{name}"): no job of this task is ready', await tell_all(self.engine))
        return job

    # Its life

    def _next_worker(self) -> MortalWorker:
        __tracebackhide__ = True
        name = self._options.name or "worker"
        options = replace(self._options, name=f"{name} {self.deaths + 1}" if self.deaths else name)
        return MortalWorker(self._setting, options)

    async def _live(self) -> None:
        while (death := await self._worker.live()) is not None:
            self.deaths += 1
            self._worker = self._next_worker()
            death.is_done()
            self._stir.happens()

    async def enter(self) -> None:
        __tracebackhide__ = True
        self._working = asyncio.create_task(self._live())
        ready = asyncio.create_task(self._worker.ready.wait())
        await asyncio.wait([self._working, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        self._check()

    async def leave(self) -> None:
        """At once: what it has under way is given back."""
        self._worker.stop()
        self._worker.stop()
        try:
            if self._working is not None:
                await self._working
        finally:
            for each in self._setting.stand_ins:
                each.leave()

    async def check_stand_ins(self) -> None:
        __tracebackhide__ = True
        missed = [each.missed for each in self._setting.stand_ins if each.missed]
        if missed:
            raise StoryError("; ".join(missed), await tell_all(self.engine))

    def _check(self) -> None:
        """A worker that ends by itself has an error to tell."""
        if self._working is not None and self._working.done():
            self._working.result()

    async def _pause(self, pause: "_Pause") -> None:
        self._check()
        pause.note(*await unrest(self.engine))
        if not pause.is_over:
            await pause.wait(self._stir)


class _Wanted:
    """What an instance is to be."""

    def __init__(self, status: str | None, state: dict[str, Any]) -> None:
        self._status = status
        self._state = state

    def __str__(self) -> str:
        parts = [self._status] if self._status else []
        parts += [f"{name} = {value!r}" for name, value in self._state.items()]
        return " with ".join([parts[0], ", ".join(parts[1:])]) if len(parts) > 1 else (parts or ["an end"])[0]

    def by(self, found: Instance) -> bool:
        if any(found.state.get(name) != value for name, value in self._state.items()):
            return False
        if self._status is not None:
            return found.status.startswith(self._status)
        return bool(self._state) or not found.is_open or found.status == "open.exception"


class _Pause:
    """Waits for a stir, and looks anyway after a pause that grows; says when there is nothing to wait for."""

    def __init__(self, patience: timedelta) -> None:
        self._loop = asyncio.get_running_loop()
        self._patience = patience
        self._ends_at = self._loop.time() + patience.total_seconds()
        self._quiet_since: float | None = None
        self._seconds = _SHORTEST_PAUSE
        self.is_hopeless = False

    @property
    def is_out_of_patience(self) -> bool:
        return self._loop.time() > self._ends_at

    @property
    def _is_certainly_quiet(self) -> bool:
        return self._quiet_since is not None and self._loop.time() - self._quiet_since > _CERTAINLY_QUIET

    @property
    def is_over(self) -> bool:
        return self.is_hopeless or self._is_certainly_quiet or self.is_out_of_patience

    @property
    def ended(self) -> str:
        """Why it is over, for the end of a sentence."""
        if self.is_hopeless:
            return "it has ended otherwise"
        if self._is_certainly_quiet:
            return "nothing is left to do"
        return f"{self._patience.total_seconds():g} s are over"

    def note(self, is_restless: bool, due_in: float | None) -> None:
        """A retry that falls due while we wait is worth waiting for."""
        if is_restless or (due_in is not None and self._loop.time() + due_in < self._ends_at):
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = self._loop.time()

    def short(self) -> None:
        self._seconds = _SHORTEST_PAUSE

    async def wait(self, stir: Stir) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                await stir.next()
        self._seconds = min(self._seconds * 1.5, _LONGEST_PAUSE)


class Working(AbstractAsyncContextManager[WorkerInTest]):
    """What `working` gives to enter. Not a generator: in a report, the line of the test is to be the last one."""

    def __init__(self, setting: Setting, options: WorkerOptions) -> None:
        self._setting = setting
        self._options = options

    async def __aenter__(self) -> WorkerInTest:
        __tracebackhide__ = True
        self._worker = WorkerInTest(self._setting, self._options)
        try:
            await self._worker.enter()
        except BaseException:
            await self._worker.leave()
            raise
        return self._worker

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        await self._worker.leave()
        if error is None:
            await self._worker.check_stand_ins()


def working(
    engine: Engine,
    flows: Sequence[object],
    *stand_ins: StandIn,
    by_hand: bool = False,
    options: WorkerOptions | None = None,
) -> Working:
    """A worker for these flows, beside the test, until you leave. `flows` are what a `Worker` takes.

    Stand-ins that did not act as often as they were to make the test fail at the end.
    """
    return Working(Setting(engine, flows, stand_ins, by_hand), options or WorkerOptions())


async def run_until_quiet(
    engine: Engine,
    flows: Sequence[object],
    *stand_ins: StandIn,
    through_retries: bool = False,
    patience: timedelta = PATIENCE,
    options: WorkerOptions | None = None,
) -> None:
    """Run a worker for these flows, here in the test, until nothing is ready or running, and nothing is due.

    A job that waits for another try leaves the engine quiet; with `through_retries` the clock is moved to it instead,
    as often as it takes. Where the worker dies, the clock is moved to the end of its leases. `flows` are what a `Worker`
    takes. When it is not quiet within `patience`, `not_quiet` is raised and tells what is left.
    """
    __tracebackhide__ = True
    async with working(engine, flows, *stand_ins, options=options) as worker:
        await worker.quiet(through_retries=through_retries, patience=patience)

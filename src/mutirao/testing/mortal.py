"""The worker that runs in a test: that of production, but it can die, and do one job at a time.

It dies as a process does: from one moment on it says nothing more to the database. Its connections are closed, what it
had under way is neither reported nor given back, and its leases end by themselves.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from mutirao.database.engine import Engine
from mutirao.database.protocol import Done, Line, Told
from mutirao.errors import RequestError
from mutirao.language.handler import Handler
from mutirao.model import Job
from mutirao.testing.binding import bind, find
from mutirao.testing.stand_in import Call, Crash, StandIn, TaskName
from mutirao.worker.options import WorkerOptions
from mutirao.worker.repertoire import handlers_in
from mutirao.worker.running import Running
from mutirao.worker.worker import Appetite, Worker


class Stir:
    """Wakes all who wait for something to happen, each time that something may have."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def happens(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def next(self) -> Awaitable[object]:
        return self._event.wait()


@dataclass(frozen=True)
class Setting:
    """What one worker has in common with the next. `stir` happens whenever one of them has done something."""

    engine: Engine
    flows: Sequence[object]
    stand_ins: Sequence[StandIn] = ()
    by_hand: bool = False
    stir: Stir = field(default_factory=Stir)


class _Errand:
    """One job of one task, done on request. `told` is what the database gives out for it: None when there is none."""

    def __init__(self, task: int) -> None:
        self.task = task
        self.told: asyncio.Future[Told | None] = asyncio.get_running_loop().create_future()


class MortalWorker(Worker):
    """One that works `by_hand` does only what `do` asks for."""

    def __init__(self, setting: Setting, options: WorkerOptions) -> None:
        __tracebackhide__ = True
        flows = setting.flows
        self._own_handlers = [handler for flow in flows for handler in handlers_in(flow)]
        super().__init__(setting.engine, [*flows, *bind(self._own_handlers, setting.stand_ins, self._call)], options)
        self._loop = asyncio.get_running_loop()
        self._life: asyncio.Task[None] | None = None
        self._by_hand = setting.by_hand
        self._stir = setting.stir
        self._errand: _Errand | None = None
        self._doomed: dict[int, Crash] = {}
        self._doomed_transactions: dict[int, Crash] = {}
        self._death: Crash | None = None

    @property
    def is_dead(self) -> bool:
        return self._death is not None

    async def live(self) -> Crash | None:
        """Work until `stop`, or until death: then what it died of."""
        self._life = asyncio.ensure_future(self.run())
        try:
            await self._life
        except asyncio.CancelledError:
            if self._death is None:
                raise
        return self._death

    async def do(self, task: TaskName) -> Job | None:
        """Do one job of this task, to the end of the attempt, however that is; None when none is ready."""
        handler = find(task, self._own_handlers)
        number = next(number for number, each in self._repertoire.handlers.items() if _is_same(each, handler))
        self._errand = errand = _Errand(number)
        self._look_for_more()
        told = await errand.told
        if told is None:
            return None
        while not self.is_dead and any(told.attempt == attempt for _, attempt in self._desk.leased()):
            await self._stir.next()
        return Running(handler, told).job

    # What stand-ins may ask for, from the loop or from a thread

    def _call(self, handler: Handler, state: Any, job: Job) -> Call:
        doomed = self._doomed_transactions if handler.transactional else self._doomed
        return Call(
            state,
            job,
            die=lambda crash: self._later(self._die, crash),
            doom=lambda crash: doomed.update({job.attempt: crash}),
            time_out=partial(self._time_out, job),
        )

    def _later(self, function: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(function, *arguments)

    def _time_out(self, job: Job) -> None:
        running = self._desk.running[job.attempt]
        if running.told.timeout is None:
            text = f'times_out("{job.task}"): the task has no timeout; give it one: @task(…, timeout=timedelta(…))'
            raise RequestError("wrong_call", text)
        self._later(self._desk.time_out, running)

    def _die(self, crash: Crash) -> None:
        if self._death is None and self._life is not None:
            self._death = crash
            self._life.cancel()
            self._stir.happens()

    # Death, and jobs by hand, in the traffic with the database

    async def _turn(self, line: Line) -> None:
        await super()._turn(line)
        self._stir.happens()

    def _look_for_more(self) -> None:
        super()._look_for_more()
        self._stir.happens()
        for attempt, crash in self._doomed_transactions.items():
            if attempt not in self._desk.running:  # committed, and the worker dies before it can know
                self._die(crash)

    def _appetite(self) -> Appetite:
        if not self._by_hand:
            return super()._appetite()
        if self._errand is None or self._stopping or self._asked_for:
            return Appetite(0, [], is_whole=True)
        return Appetite(1, [self._errand.task], is_whole=True)

    async def _exchange(self, line: Line, batch: Sequence[Done]) -> list[Told]:
        if self.is_dead:
            await _forever()
        errand = self._errand if self._appetite().room else None
        told = await super()._exchange(line, batch)
        for done in batch:
            if done.attempt in self._doomed:
                self._die(self._doomed[done.attempt])
        if self.is_dead:  # an answer that nobody hears
            await _forever()
        if errand is not None and self._by_hand:
            self._errand = None
            errand.told.set_result(next((each for each in told if each.kind == "job"), None))
        return told

    async def _leave(self) -> None:
        if not self.is_dead:
            await super()._leave()

    async def _give_back(self, jobs: Sequence[Running]) -> None:
        if not self.is_dead:
            await super()._give_back(jobs)


def _is_same(one: Handler, other: Handler) -> bool:
    return (one.flow, one.task) == (other.flow, other.task)


async def _forever() -> NoReturn:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody ends it but by cancelling")

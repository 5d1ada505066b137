"""A worker: leases jobs, runs their functions, reports how they ended.

Its traffic is one call, `turn`: jobs that have ended go in, jobs to do come out, in one transaction. Whatever has ended
while a turn was under way goes with the next, so a lone job is reported at once and a backlog goes in hundreds, without
anything being tuned. Two lanes take turns, so that the database works on one batch while we run the other.

A turn is tried when there is something to report, or when there may be something to do: after a notification, after a
turn that came back full, and every few seconds in case a notification was lost.

When a turn's answer is lost nobody knows whether it happened. It is simply sent again: attempts fence, so jobs that
have ended already answer `lost`. Jobs that were leased in the lost answer come back when their lease ends.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from mutirao.database.engine import Engine
from mutirao.database.listener import EVERYBODY, Listener
from mutirao.database.protocol import Backoff, Done, Line, LookTooLongError, Told, is_lost
from mutirao.errors import MutiraoError
from mutirao.language.handler import Handler, handlers_of
from mutirao.language.python import Flow
from mutirao.worker.clock import Clock
from mutirao.worker.desk import Desk
from mutirao.worker.running import Running
from mutirao.worker.transaction import Transactions

log = logging.getLogger(__name__)

_LANES = 2
_MOST_IN_A_TURN = 200


@dataclass(frozen=True)
class WorkerOptions:
    """How a worker works; each has a default that does for most.

    `concurrency` is how many jobs are inside user code at once, `threads` how many of them may be blocking functions.
    A `lease` is how long a job stays with a worker that is not heard of. With `clock` the worker also looks after time,
    so that a lone worker needs nobody else.
    """

    name: str | None = None
    concurrency: int = 400
    threads: int = 16
    lease: timedelta = timedelta(seconds=60)
    poll: timedelta = timedelta(seconds=5)
    clock: bool = True


class Worker:
    """Does the jobs of some flows in one database. Flows are classes, functions bound by `@handles`, or handlers."""

    def __init__(self, engine: Engine, flows: Sequence[object], options: WorkerOptions | None = None) -> None:
        options = options or WorkerOptions()
        self.name = options.name or f"{socket.gethostname()}:{os.getpid()}"
        self._engine = engine
        self._flows = flows
        self._concurrency = options.concurrency
        self._lease = options.lease
        self._poll = options.poll
        self._clock = Clock(engine) if options.clock else None
        self._line = Line(engine.url, f"{self.name} leases")
        self._desk = Desk(Transactions(engine.url, self._line, self.name), options.threads, self._wake)
        self._handlers: dict[int, Handler] = {}
        self._flow_numbers: set[str] = set()
        self._woken = asyncio.Event()
        self._maybe_more = True
        self._asked_for = 0
        self._turns = 0
        self._stopping = False
        self._stop_at_once = asyncio.Event()

    @property
    def done(self) -> int:
        """How many attempts went well."""
        return self._desk.done

    @property
    def failed(self) -> int:
        """How many attempts failed."""
        return self._desk.failed

    async def run(self) -> None:
        """Work until `stop`; returns when everything that ran has been reported or given back."""
        await self._learn_tasks()
        listener = Listener(self._engine.url, f"{self.name} listens", self._hear)
        await listener.open()
        helpers: list[Awaitable[Any]] = [listener.run(), self._poll_now_and_then(), self._renew_now_and_then()]
        helpers += [self._stop_at_once.wait()] + ([self._clock.run(listen=False)] if self._clock is not None else [])
        tasks = [asyncio.ensure_future(each) for each in (self._all_lanes(), *helpers)]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()  # a helper ends only by an error, or by a stop at once
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._give_back(self._desk.clear())
            self._desk.close()
            await listener.close()
            await self._line.close()

    def stop(self) -> None:
        """Finish what runs and give back the rest. Called again: give back everything."""
        if self._stopping:
            self._stop_at_once.set()
        self._stopping = True
        self._wake()

    async def _learn_tasks(self) -> None:
        """Put our flows in place, and find the numbers of the tasks that we have functions for."""
        handlers: dict[str, dict[str, Handler]] = {}
        for flow in self._flows:
            if isinstance(flow, type) and issubclass(flow, Flow):
                await self._engine.apply(flow, keep=True)
                handlers.setdefault(flow.definition.name, {}).update(flow.handlers)
            for handler in (flow,) if isinstance(flow, Handler) else handlers_of(flow):
                handlers.setdefault(handler.flow, {})[handler.task] = handler
        for name, tasks in handlers.items():
            numbers, flow_number = await self._engine.task_numbers(name, list(tasks))
            self._flow_numbers.add(str(flow_number))
            self._handlers |= {numbers[task]: handler for task, handler in tasks.items()}

    # Waking

    def _wake(self) -> None:
        self._woken.set()

    def _look_for_more(self) -> None:
        self._maybe_more = True
        self._wake()

    def _hear(self, payload: str) -> None:
        if self._clock is not None:
            self._clock.hear(payload)
        if payload == EVERYBODY or not self._flow_numbers.isdisjoint(payload.split(",")):
            self._look_for_more()

    async def _poll_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._poll.total_seconds())
            self._look_for_more()

    # Traffic

    async def _all_lanes(self) -> None:
        await asyncio.gather(*map(self._lane, range(_LANES)))

    async def _lane(self, number: int) -> None:
        """Turns, for as long as there is anything to report or to ask for."""
        line = Line(self._engine.url, f"{self.name} lane {number}")
        try:
            while not self._is_through():
                if self._desk.ended or (self._maybe_more and self._room()):
                    await self._turn(line)
                else:
                    self._woken.clear()
                    await self._woken.wait()
                if self._stopping:
                    await self._give_back(self._desk.withdraw())
        finally:
            await line.close()

    def _is_through(self) -> bool:
        through = self._stopping and not (self._desk.running or self._desk.ended or self._turns)
        if through:
            self._wake()  # the other lane, too
        return through

    def _room(self) -> int:
        """How many more jobs we may ask for: what another turn has asked for already is not asked for twice."""
        if self._stopping:
            return 0
        return max(0, min(_MOST_IN_A_TURN, self._concurrency - len(self._desk.running) - self._asked_for))

    def _servable(self) -> list[int]:
        """The tasks we take jobs of; not those with blocking functions while the threads have enough to do."""
        if not self._desk.blocking_is_full:
            return list(self._handlers)
        return [number for number, handler in self._handlers.items() if handler.is_async]

    async def _turn(self, line: Line) -> None:
        """Report what has ended, until it is certain that the database has it, and take up what comes back."""
        batch = self._desk.take_ended(_MOST_IN_A_TURN)
        backoff = Backoff()
        self._turns += 1
        try:
            told = None
            while told is None:
                try:
                    told = await self._exchange(line, batch)
                except MutiraoError as error:
                    if not is_lost(error):
                        raise
                    log.warning("waiting for the server: %s", error)
                    self._maybe_more = True
                    await backoff.wait()
            self._take_up(told, batch)
        finally:
            self._turns -= 1

    async def _exchange(self, line: Line, batch: Sequence[Done]) -> list[Told]:
        room = self._room()
        self._asked_for += room
        if room:
            self._maybe_more = False
        try:
            told = await line.turn(self.name, batch, self._servable(), room, self._lease)
        except LookTooLongError as error:
            self._maybe_more = True
            return await self._exchange_singly(line, batch, error)
        finally:
            self._asked_for -= room
        if room and sum(each.kind == "job" for each in told) == room:
            self._look_for_more()
        return told

    async def _exchange_singly(self, line: Line, batch: Sequence[Done], error: LookTooLongError) -> list[Told]:
        """Some condition takes too long on some state: find it, and park that job alone."""
        told: list[Told] = []
        for done in batch:
            try:
                told += await line.turn(self.name, [done], [], 0, self._lease)
            except LookTooLongError:
                await line.park(done.job, done.attempt, done.change, _as_json(code=error.code, error=error.message))
        return told

    def _take_up(self, told: Sequence[Told], batch: Sequence[Done]) -> None:
        self._desk.begin(Running(self._handlers[each.task], each) for each in told if each.kind == "job")
        unsettled = {each.job: each for each in told if each.kind != "job"}
        if unsettled:
            for done in batch:
                if done.job in unsettled:
                    self._take_back(done, unsettled[done.job])

    def _take_back(self, done: Done, told: Told) -> None:
        """Something that was reported and did not simply go well."""
        match told.kind:
            case "busy":
                asyncio.get_running_loop().call_later(0.005, self._desk.report, done)
            case "refused":
                self._desk.report(Done(done.job, done.attempt, None, (told.note or b"{}").decode()))
            case "parked":
                log.info("job %s of instance %s is parked: %s", told.job, told.instance, (told.note or b"").decode())
            case _:
                log.info("job %s is no longer ours: attempt %s has been replaced", done.job, done.attempt)

    # Leases

    async def _renew_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            running = list(self._desk.running.values())
            if not running:
                continue
            try:
                lost = await self._line.renew(
                    [r.told.job for r in running], [r.told.attempt for r in running], self._lease
                )
                self._desk.lose(lost)
            except MutiraoError as error:
                if not is_lost(error):
                    raise
                log.warning("leases are not renewed: %s", error)

    async def _give_back(self, jobs: Sequence[Running]) -> None:
        """When the server is gone they come back by themselves, with the end of their lease."""
        if jobs:
            with suppress(MutiraoError):
                await self._line.release([r.told.job for r in jobs], [r.told.attempt for r in jobs])


def _as_json(**values: Any) -> str:
    return msgspec.json.encode(values).decode()

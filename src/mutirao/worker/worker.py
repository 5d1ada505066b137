"""A worker: leases jobs, runs their functions, reports how they ended.

Its traffic is one call, `turn`: jobs that have ended go in, jobs to do come out, in one transaction. Whatever has ended
while a turn was under way goes with the next, so a lone job is reported at once and a backlog goes in hundreds, without
anything being tuned. Two lanes take turns, so that the database works on one batch while we run the other.

A turn is tried when there is something to report, or when there may be something to do: after a notification, after a
turn that came back full, when a job has left without a report, and every few seconds in case a notification was lost.

When a turn's answer is lost nobody knows whether it happened. It is simply sent again: attempts fence, so jobs that
have ended already answer `lost`. Jobs that were leased in the lost answer come back when their lease ends.
"""

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from importlib import metadata
from typing import Any, NamedTuple

import msgspec

from mutirao.database.engine import Engine
from mutirao.database.listener import EVERYBODY, Listener
from mutirao.database.protocol import TRY_AGAIN, Backoff, Done, Line, LookTooLong, Told, may_pass
from mutirao.errors import LeaseLost, MutiraoError, RequestError
from mutirao.worker.application import Applications
from mutirao.worker.asking import Asking
from mutirao.worker.clock import Clock
from mutirao.worker.desk import Desk, Place
from mutirao.worker.fate import Fates, described
from mutirao.worker.machine import Machine
from mutirao.worker.observer import Observer, suppressed
from mutirao.worker.options import WorkerOptions
from mutirao.worker.pulse import Pulse
from mutirao.worker.repertoire import Repertoire
from mutirao.worker.running import Running

log = logging.getLogger(__name__)

_LANES = 2
# The payload of a notification: there is a new version of a flow, or another application.
_REDEFINED = "flows"
_MOST_IN_A_TURN = 200
# How long a worker that stops at once waits for the server to take its last words.
_LAST_WORDS_SECONDS = 2
# Silent for three times as long, it is taken for dead.
_ANNOUNCE_EVERY = 10
# What other programs define is heard of; this is for what was not heard.
_LEARN_EVERY = 10
# A task is not claimed for so long after a job of it was not for us.
_REST_SECONDS = 5


class Appetite(NamedTuple):
    """What a turn asks for. `is_whole`: of everything that we have room for."""

    room: int
    tasks: list[int]
    is_whole: bool


class Worker:
    """Does the jobs of some flows in one database. Flows are classes, functions bound by `@handles`, or handlers.

    `observers` hear what it does: `mutirao.worker.metrics.Metrics`, `mutirao.worker.spans.Spans`, or your own.
    """

    def __init__(
        self,
        engine: Engine,
        flows: Sequence[object],
        options: WorkerOptions | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        options = options or WorkerOptions()
        self.name = options.name or f"{socket.gethostname()}:{os.getpid()}"
        self._engine = engine
        self._concurrency = options.concurrency
        self._lease = options.lease
        self._poll = options.poll
        self._observers = tuple(observers)
        self._called = [each.called for each in self._observers]
        self._clock = Clock(engine, self._observers) if options.clock else None
        self._line = Line(engine.url, self.name, called=self._called)
        self._desk = Desk(self._line, options, self._wake, self._look_for_more, self._observers)
        self._asking = self._desk.asking = Asking(engine)
        self.ready = asyncio.Event()
        """Set once its flows are in place and it listens: from then on nothing that is started escapes it."""
        machine = Machine.here(options.host)
        applications = Applications(engine, machine, options.programs) if options.applications else None
        self._repertoire = Repertoire(engine, self.name, flows, applications, self._asking)
        self._redefined = asyncio.Event()
        self._resting: set[int] = set()
        self._fates = Fates(engine, self.name, self._repertoire.handlers, self._observers)
        self._leading = deque(Place)
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

    @property
    def slots(self) -> tuple[int, int]:
        """How many jobs are inside user code or wait for it here, and how many may be."""
        return len(self._desk.running), self._concurrency

    def does(self, flow: str, task: str) -> bool:
        """Whether it has a function or an application for this task."""
        return self._repertoire.has(flow, task)

    async def run(self) -> None:
        """Work until `stop`; returns when everything that ran has been reported or given back."""
        listener = Listener(self._engine.url, f"{self.name} listens", self._hear)
        if not await self._prepare(listener):
            return
        self.ready.set()
        lanes = asyncio.ensure_future(self._all_lanes())
        tasks = [lanes, *map(asyncio.ensure_future, self._helpers(listener))]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()  # a helper ends only by an error, or by a stop at once
            if not lanes.done():
                await self._give_back(self._desk.clear())
                await asyncio.wait([lanes], timeout=_LAST_WORDS_SECONDS)
        finally:
            if self._clock is not None:
                self._clock.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._give_back(self._desk.clear())
            await self._fates.flush(_LAST_WORDS_SECONDS)
            await self._desk.close(_LAST_WORDS_SECONDS)
            await self._leave()
            await listener.close()
            await self._line.close()

    def stop(self) -> None:
        """Finish what runs and give back the rest. Called again: give back everything."""
        if self._stopping:
            self._stop_at_once.set()
        self._stopping = True
        self._wake()

    def _helpers(self, listener: Listener) -> list[Coroutine[Any, Any, Any]]:
        helpers = [
            listener.run(),
            self._poll_now_and_then(),
            self._renew_now_and_then(),
            self._announce_now_and_then(),
            self._learn_now_and_then(),
            self._fates.run(),
            Pulse(self.name, self._observers).run(),
            self._stop_at_once.wait(),
        ]
        return helpers if self._clock is None else [*helpers, self._clock.run(listen=False)]

    async def _prepare(self, listener: Listener) -> bool:
        """Learn our tasks and listen; again, when the server goes away meanwhile. False if we are stopped before."""
        backoff = Backoff()
        while not self._stopping:
            try:
                await self._repertoire.learn()
                await self._announce()
                await listener.open()
            except MutiraoError as error:
                await self._bear(error, backoff)
            else:
                return True
        return False

    async def _bear(self, error: MutiraoError, backoff: Backoff) -> None:
        """Wait for a server that is away or too busy; whatever will not pass is raised."""
        if not may_pass(error):
            raise error
        log.warning("waiting for the server: %s", error, extra={"worker": self.name})
        await backoff.wait()
        await self._engine.revive()

    async def _learn_now_and_then(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEARN_EVERY):
                    await self._redefined.wait()
            self._redefined.clear()
            try:
                if await self._repertoire.learn_what_changes():
                    self._look_for_more()
            except MutiraoError as error:
                log.warning("what is defined by now is not known: %s", error, extra={"worker": self.name})

    # Waking

    def _wake(self) -> None:
        self._woken.set()

    def _look_for_more(self) -> None:
        self._maybe_more = True
        self._wake()

    def _hear(self, payload: str) -> None:
        if self._clock is not None:
            self._clock.hear(payload)
        if payload in (EVERYBODY, _REDEFINED):
            self._redefined.set()
        if payload == EVERYBODY or self._repertoire.concerns(payload):
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
        line = Line(self._engine.url, f"{self.name} lane {number}", called=self._called)
        try:
            while not self._is_through():
                if self._desk.returned:
                    await self._return_some()
                elif self._desk.ended or (self._maybe_more and self._appetite().room):
                    await self._turn(line)
                else:
                    self._woken.clear()
                    await self._woken.wait()
                if self._stopping:
                    await self._give_back(self._desk.withdraw())
        finally:
            await line.close()

    def _is_through(self) -> bool:
        through = self._stopping and self._desk.is_empty and not self._turns
        if through:
            self._wake()  # the other lane, too
        return through

    def _appetite(self) -> Appetite:
        """How many more jobs we may ask for, and of which tasks: not of those that would only lie about here.

        A turn asks with one number for all tasks, and places differ in the room they have. So the places lead in turns:
        the leader's room is asked for, and those that have less are left out this time. A place with little room does
        not slow down the others, nor do they keep it waiting.
        """
        # What another turn has asked for already is not asked for twice.
        most = min(_MOST_IN_A_TURN, self._concurrency - len(self._desk.running) - self._asked_for)
        if self._stopping or most <= 0:
            return Appetite(0, [], is_whole=True)
        rooms = {
            place: room for place in self._repertoire.claimed if (room := min(most, self._desk.room_in(place))) > 0
        }
        leader = next((place for place in self._leading if place in rooms), None)
        if leader is None:
            return Appetite(0, [], is_whole=True)
        asked = [place for place, room in rooms.items() if room >= rooms[leader]]
        tasks = [number for place in asked for number in self._repertoire.claimed[place] if number not in self._resting]
        return Appetite(rooms[leader], tasks, is_whole=len(asked) == len(rooms))

    async def _turn(self, line: Line) -> None:
        """Report what has ended, until it is certain that the database has it, and take up what comes back."""
        batch = self._desk.take_ended(_MOST_IN_A_TURN)
        backoff = Backoff()
        self._turns += 1
        try:
            while batch or not self._stopping:
                try:
                    told = await self._exchange(line, batch)
                    break
                except MutiraoError as error:
                    self._maybe_more = True
                    await self._bear(error, backoff)
            else:
                return
            jobs = [
                Running(self._repertoire.handlers[each.task], each, self.name, self._observers)
                for each in told
                if each.kind == "job"
            ]
            for observer in self._observers if jobs else ():
                with suppressed(observer):
                    await observer.prepare(self._engine, jobs)
            self._desk.begin(jobs)
            self._take_back_all(told, batch)
        finally:
            self._desk.reported(batch)
            self._turns -= 1

    async def _exchange(self, line: Line, batch: Sequence[Done]) -> list[Told]:
        room, tasks, is_whole = self._appetite()
        self._leading.rotate(-1)
        self._asked_for += room
        if room:
            self._maybe_more = not is_whole
        try:
            told = await line.turn(self.name, batch, tasks, room, self._lease)
        except RequestError as error:
            if not batch or error.code == TRY_AGAIN:
                raise
            self._maybe_more = True
            return await self._report_apart(line, batch)
        finally:
            self._asked_for -= room
        if room and len(told) >= room:
            self._look_for_more()
        return told

    async def _report_apart(self, line: Line, batch: Sequence[Done]) -> list[Told]:
        """One of these spoils the turn for all: found by halves, and dealt with alone."""
        try:
            return await line.turn(self.name, batch, [], 0, self._lease)
        except RequestError as error:
            if error.code == TRY_AGAIN:
                raise
            if len(batch) == 1:
                return await self._refuse(line, batch[0], error)
        middle = len(batch) // 2
        return await self._report_apart(line, batch[:middle]) + await self._report_apart(line, batch[middle:])

    async def _refuse(self, line: Line, done: Done, error: RequestError) -> list[Told]:
        """A change on which a condition takes too long is parked, any other has failed."""
        problem = msgspec.json.encode({"code": error.code, "error": error.message})
        if done.change is None:
            raise error
        if isinstance(error, LookTooLong):
            with suppress(LeaseLost):
                await line.park(done.job, done.attempt, done.change, problem.decode())
            return []
        return [Told("refused", done.job, done.attempt, done.instance, done.task, 0, None, b"", problem)]

    def _take_back_all(self, told: Sequence[Told], batch: Sequence[Done]) -> None:
        unsettled = {each.attempt: each for each in told if each.kind != "job"}
        self._desk.pace.count_all(batch, unsettled)
        for done in batch:
            if done.attempt in unsettled:
                self._take_back(done, unsettled[done.attempt])
            elif done.error is not None:
                self._fates.ask(done)

    def _take_back(self, done: Done, told: Told) -> None:
        """Something that was reported and did not simply go well."""
        handler = self._repertoire.handlers[done.task]
        match told.kind:
            case "busy":
                self._desk.postpone(done)
            case "refused":
                self._desk.report(done._replace(change=None, error=(told.note or b"{}").decode(), postponed=0))
            case "parked":
                code = msgspec.json.decode(told.note or b"{}").get("code")
                log.info("job %s is parked: %s", done.job, code, extra=described(handler, done, self.name))
                for observer in self._observers:
                    observer.parked(handler)
            case _:
                what = "job %s is no longer ours: attempt %s has been replaced"
                log.info(what, done.job, done.attempt, extra=described(handler, done, self.name))
                for observer in self._observers:
                    observer.lost(handler)

    async def _return_some(self) -> None:
        """They are ready again at once, so for a while we leave their tasks to others."""
        returned = [self._desk.returned.popleft() for _ in range(len(self._desk.returned))]
        for task in {each.told.task for each in returned}:
            self._resting.add(task)
            asyncio.get_running_loop().call_later(_REST_SECONDS, self._rested, task)
        await self._give_back(returned)

    def _rested(self, task: int) -> None:
        self._resting.discard(task)
        self._look_for_more()

    # Leases

    async def _renew_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            leased = self._desk.leased()
            if not leased:
                continue
            try:
                lost = await self._line.renew(leased, self._lease)
            except MutiraoError as error:
                if not may_pass(error):
                    raise
                log.warning("leases are not renewed: %s", error, extra={"worker": self.name})
                continue
            for attempt in lost:
                self._desk.lose(attempt)

    # Presence: for people who ask why nothing moves. No job depends on it

    async def _announce(self) -> None:
        with suppress(MutiraoError):  # whoever cannot be told now is told in ten seconds
            await self._line.announce(
                self.name,
                self._repertoire.tasks,
                socket.gethostname(),
                metadata.version("mutirao"),
            )
            await self._hand_in_pace()

    async def _hand_in_pace(self) -> None:
        if counted := self._desk.pace.take():
            await self._line.note_pace(counted)

    async def _announce_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_ANNOUNCE_EVERY)
            await self._announce()

    async def _leave(self) -> None:
        with suppress(MutiraoError, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._hand_in_pace()
                await self._line.leave(self.name)

    async def _give_back(self, jobs: Sequence[Running]) -> None:
        """When the server is gone they come back by themselves, with the end of their lease."""
        if jobs:
            with suppress(MutiraoError, TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await self._line.release([r.told.job for r in jobs], [r.told.attempt for r in jobs])

"""Hints for open streams: one ear at the database for all of them, and for each stream a set of what to read again.

A hint carries no data, so nothing is queued: what is hinted twice before it is sent is sent once, and a stream that was
away reads everything. Worklists and messages are told of by the database (`mutirao.hint`); of instances that somebody
watches the newest row of the trace and the newest comment are asked for, all of them in one query: telling each write
would slow every worker. Whoever hears of everything is told that something has moved, every few seconds at most, and not what.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mutirao.database.engine import Engine
from mutirao.database.listener import EVERYBODY, Listener
from mutirao.database.protocol import Backoff
from mutirao.errors import MutiraoError

WORKLIST, MESSAGES, INSTANCES = "worklist", "messages", "instances"
_LOOK_EVERY = 0.5
_EVERYTHING_EVERY = 2.0


class OpenStream:
    """One open stream: whom it is for, and what it should be told to read again."""

    def __init__(self, person: int, instances: Iterable[int] = (), *, hears_everything: bool = False) -> None:
        self.person = person
        self.hears_everything = hears_everything
        self.instances = frozenset(instances)
        self.persons: frozenset[int] = frozenset((person,))
        self.roles: frozenset[int] = frozenset()
        self.is_stale = True
        """Whom it is for may have changed."""
        self._pending: set[str] = set()
        self._told = asyncio.Event()

    def tell(self, *what: str) -> None:
        self._pending.update(what)
        self._told.set()

    def tell_all(self) -> None:
        self.tell(WORKLIST, MESSAGES, *map(_instance, self.instances), *([INSTANCES] if self.hears_everything else []))

    async def wait(self, seconds: float) -> list[str]:
        """What to read again, as soon as there is something; nothing, when that takes longer."""
        try:
            async with asyncio.timeout(seconds):
                await self._told.wait()
        except TimeoutError:
            return []
        self._told.clear()
        told, self._pending = sorted(self._pending), set()
        return told


class Hub:
    """Runs beside the server; `open` gives a stream its place."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.is_closed = False
        self.streams: set[OpenStream] = set()
        self._by_person: defaultdict[int, set[OpenStream]] = defaultdict(set)
        self._by_role: defaultdict[int, set[OpenStream]] = defaultdict(set)
        self._rows: dict[int, tuple[int | None, ...]] = {}
        self._latest: int | None = None
        self._is_told_twice = True
        self._look_again_at = 0.0

    async def run(self) -> None:
        """Listen until cancelled; a database that goes away is waited for."""
        listener = Listener(self._engine.url, f"{self._engine.name} events", self.hear, "listen_people")
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(listener.run())
                tasks.create_task(self._look())
        finally:
            await listener.close()

    def close(self) -> None:
        """End all streams, and let none begin."""
        self.is_closed = True
        for stream in self.streams:
            stream.tell()

    @contextmanager
    def open(self, stream: OpenStream) -> Iterator[OpenStream]:
        self.streams.add(stream)
        try:
            yield stream
        finally:
            self.streams.discard(stream)
            self._forget(stream)

    def count(self, person: int) -> int:
        return sum(stream.person == person for stream in self.streams)

    async def refresh(self, stream: OpenStream) -> None:
        """Ask anew whose hints concern it; and for what it watches, how that stands before it is read."""
        stream.is_stale = False
        persons, roles = await self._engine.seen_by(stream.person).interests()
        if unknown := stream.instances - self._rows.keys():
            self._rows = await self._engine.last_rows(sorted(unknown)) | self._rows
        self._forget(stream)
        stream.persons, stream.roles = persons, roles
        for person in persons:
            self._by_person[person].add(stream)
        for role in roles:
            self._by_role[role].add(stream)

    def _forget(self, stream: OpenStream) -> None:
        for index, keys in ((self._by_person, stream.persons), (self._by_role, stream.roles)):
            for key in keys:
                index[key].discard(stream)
                if not index[key]:
                    del index[key]

    def hear(self, payload: str) -> None:
        if payload == EVERYBODY:
            for stream in self.streams:
                stream.is_stale = True
                stream.tell_all()
            return
        for who in payload.split(","):
            if not who[1:].isdigit():
                continue
            for stream in (self._by_person if who[0] == "p" else self._by_role).get(int(who[1:]), ()):
                stream.is_stale = stream.is_stale or who[0] == "p"
                stream.tell(WORKLIST, MESSAGES)

    async def _look(self) -> None:
        backoff = Backoff()
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            try:
                await self._look_at_watched()
                await self._look_at_everything()
            except MutiraoError:  # the listener tells everybody when the database is back
                await backoff.wait()
                continue
            backoff.reset()

    async def _look_at_watched(self) -> None:
        watched = self._watched()
        newest = await self._engine.last_rows(sorted(watched)) if watched else {}
        moved = {each for each, row in newest.items() if each in self._rows and self._rows[each] != row}
        for stream in self.streams:
            if stream.instances & moved:
                stream.tell(*map(_instance, stream.instances & moved))
        still_watched = self._watched()  # meanwhile some have come, whose rows are known, and some have gone
        self._rows = {each: row for each, row in (self._rows | newest).items() if each in still_watched}

    def _watched(self) -> set[int]:
        return {instance for stream in self.streams for instance in stream.instances}

    async def _look_at_everything(self) -> None:
        hearing = [stream for stream in self.streams if stream.hears_everything]
        now = asyncio.get_running_loop().time()
        if not hearing or now < self._look_again_at:
            return
        latest = await self._engine.latest_row()
        is_still = latest == self._latest
        if is_still and self._is_told_twice:
            return
        # A row has its number before it is committed: so what has moved is told once more, when it stands still.
        self._is_told_twice = is_still
        self._latest, self._look_again_at = latest, now + _EVERYTHING_EVERY
        for stream in hearing:
            stream.tell(INSTANCES)


def _instance(number: int) -> str:
    return f"instance/{number}"

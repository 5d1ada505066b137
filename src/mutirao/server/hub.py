"""Hints for open pages: one ear at the database for all of them, and for each page a set of what to read again.

A hint carries no data, so nothing is queued: what is hinted twice before it is sent is sent once, and a page that was
away reads everything. Worklists and messages are told of by the database (`mutirao.hint`); of instances that somebody
watches the newest row of the trace and the newest comment are asked for, all of them in one query: telling each write
would slow every worker.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mutirao.database.engine import Engine
from mutirao.database.listener import EVERYBODY, Listener
from mutirao.database.protocol import Backoff
from mutirao.errors import MutiraoError

WORKLIST, MESSAGES = "worklist", "messages"
_LOOK_EVERY = 0.5


class Page:
    """One open stream: whom it is for, and what it should be told to read again."""

    def __init__(self, person: int, instances: Iterable[int] = ()) -> None:
        self.person = person
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
        self.tell(WORKLIST, MESSAGES, *map(_instance, self.instances))

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
    """Runs beside the server; `open` gives a page its place."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.is_closed = False
        self.pages: set[Page] = set()
        self._by_person: defaultdict[int, set[Page]] = defaultdict(set)
        self._by_role: defaultdict[int, set[Page]] = defaultdict(set)
        self._rows: dict[int, tuple[int | None, ...]] = {}

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
        for page in self.pages:
            page.tell()

    @contextmanager
    def open(self, page: Page) -> Iterator[Page]:
        self.pages.add(page)
        try:
            yield page
        finally:
            self.pages.discard(page)
            self._forget(page)

    def count(self, person: int) -> int:
        return sum(page.person == person for page in self.pages)

    async def refresh(self, page: Page) -> None:
        """Ask anew whose hints concern it."""
        page.is_stale = False
        persons, roles = await self._engine.seen_by(page.person).interests()
        self._forget(page)
        page.persons, page.roles = persons, roles
        for person in persons:
            self._by_person[person].add(page)
        for role in roles:
            self._by_role[role].add(page)

    def _forget(self, page: Page) -> None:
        for index, keys in ((self._by_person, page.persons), (self._by_role, page.roles)):
            for key in keys:
                index[key].discard(page)
                if not index[key]:
                    del index[key]

    def hear(self, payload: str) -> None:
        if payload == EVERYBODY:
            for page in self.pages:
                page.is_stale = True
                page.tell_all()
            return
        for who in payload.split(","):
            if not who[1:].isdigit():
                continue
            for page in (self._by_person if who[0] == "p" else self._by_role).get(int(who[1:]), ()):
                page.is_stale = page.is_stale or who[0] == "p"
                page.tell(WORKLIST, MESSAGES)

    async def _look(self) -> None:
        backoff = Backoff()
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            watched = sorted({instance for page in self.pages for instance in page.instances})
            try:
                newest = await self._engine.last_rows(watched) if watched else {}
            except MutiraoError:  # the listener tells everybody when the database is back
                await backoff.wait()
                continue
            backoff.reset()
            moved = {each for each, row in newest.items() if each in self._rows and self._rows[each] != row}
            for page in self.pages:
                if page.instances & moved:
                    page.tell(*map(_instance, page.instances & moved))
            self._rows = newest


def _instance(number: int) -> str:
    return f"instance/{number}"

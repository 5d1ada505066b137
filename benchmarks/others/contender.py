"""What every contender can do; and what those that keep their work in PostgreSQL have in common."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.measure import BrokenRunError, one
from benchmarks.server import BenchServer

Say = Callable[[str], None]

STEPS = 5
PATIENCE = 300.0
_LOOK_EVERY = 0.02
_FAREWELL = 5.0


@dataclass(frozen=True)
class Tally:
    """How many instances ended well, and how many steps were done."""

    ended: int
    steps: int


class Crew(ABC):
    """Workers. They are ready to begin when they are made; `go` lets them, `stop` ends them."""

    @abstractmethod
    def go(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def check(self) -> None:
        """Raise if a worker has ended by itself."""


class Contender(ABC):
    """One engine. A `place` is where a run finds it: the URL of a database, or of a server."""

    name: str
    title: str
    promise: str
    is_engine = True
    times_need_crew = True  # or else who asks does the work, or has its own worker
    past_made = 0

    def version(self) -> str:
        return ""

    def install(self, say: Say) -> None:
        """Bring what is needed to where it is kept, unless it is there."""

    @abstractmethod
    def prepare(self, server: BenchServer, past: int, say: Say) -> None:
        """Once, before the first run: an empty engine to copy, and one with a past."""

    @abstractmethod
    @contextmanager
    def place(self, server: BenchServer, *, with_past: bool) -> Iterator[str]: ...

    @abstractmethod
    def crew(self, place: str, workers: int) -> Crew: ...

    @abstractmethod
    def submit(self, place: str, instances: int, workers: int) -> None: ...

    @abstractmethod
    def wait(self, place: str, crew: Crew, instances: int) -> int:
        """Until all that was submitted has ended; answers how often it asked PostgreSQL."""

    @abstractmethod
    def tally(self, place: str) -> Tally: ...

    @abstractmethod
    def times(self, place: str, rounds: int) -> list[float]:
        """Milliseconds of instances one after another, while a crew of one works."""

    def check(self, place: str, instances: int) -> None:
        """Whatever else must hold after a run."""

    def commits(self, place: str) -> int | None:
        """How many transactions were committed at this place so far, where that can be known."""
        return None

    def close(self) -> None:
        """After the last run."""


class OnPostgres(Contender):
    """`open_work` asks whether anything is left to do, `tally_query` for what a `Tally` has."""

    open_work: str
    tally_query: str

    @contextmanager
    def place(self, server: BenchServer, *, with_past: bool) -> Iterator[str]:
        yield server.clone(self.past_template if with_past else self.template, "run")
        server.drop("run")

    @property
    def template(self) -> str:
        return f"others_{self.name}"

    @property
    def past_template(self) -> str:
        return f"{self.template}_past"

    def wait(self, place: str, crew: Crew, _instances: int) -> int:
        deadline = time.monotonic() + PATIENCE
        asked = 1
        with psycopg.connect(place, autocommit=True) as probe:
            while one(probe, self.open_work):
                crew.check()
                if time.monotonic() > deadline:
                    raise BrokenRunError(f"not done within {PATIENCE:g} s")
                time.sleep(_LOOK_EVERY)
                asked += 1
        return asked

    def tally(self, place: str) -> Tally:
        with psycopg.connect(place) as connection:
            ended, steps = connection.execute(self.tally_query).fetchone() or (0, 0)
            return Tally(ended, steps)

    def commits(self, place: str) -> int | None:
        with psycopg.connect(place, autocommit=True) as connection:
            alone_in(connection)
            found = connection.execute(
                "select xact_commit from pg_stat_database where datname = current_database()"
            ).fetchone()
            return int(found[0]) if found else None


def alone_in(connection: psycopg.Connection[Any]) -> None:
    """Wait until others have left the database: they report what they did when they go, and only then can it be copied."""
    deadline = time.monotonic() + _FAREWELL
    others = (
        "select exists (select from pg_stat_activity where datname = current_database() "
        "and backend_type = 'client backend' and pid <> pg_backend_pid())"
    )
    while one(connection, others) and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY)

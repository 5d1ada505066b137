"""Engines on PostgreSQL that are installed apart: what they do is in their programs, what they leave is seen from here."""

from importlib.resources import files

import psycopg

from benchmarks.measure import BrokenRunError
from benchmarks.others.contender import STEPS, Crew, OnPostgres, Say, Tally, alone_in
from benchmarks.others.environment import Environment, Processes, parse_times
from benchmarks.server import BenchServer

_SEED = 250


class Foreign(OnPostgres):
    package: str

    def __init__(self) -> None:
        self._environment = Environment(self.name)

    def version(self) -> str:
        return self._environment.version(self.package)

    def install(self, say: Say) -> None:
        self._environment.install(say)

    def prepare(self, server: BenchServer, past: int, say: Say) -> None:
        say(f"{self.title}: its schema")
        self._environment.run("prepare", server.make(self.template))
        if past:
            self._make_past(server.clone(self.template, self.past_template), past, say)

    def crew(self, place: str, workers: int) -> Crew:
        return Processes([self._environment.start(place) for _ in range(workers)])

    def submit(self, place: str, instances: int, _workers: int) -> None:
        self._environment.run("submit", place, instances)

    def times(self, place: str, rounds: int) -> list[float]:
        return parse_times(self._environment.run("latency", place, rounds))

    def _make_past(self, place: str, past: int, say: Say) -> None:
        """Some hundreds really run; then their rows are copied under fresh ids until there are as many as asked for."""
        say(f"{self.title}: a past")
        seed = min(_SEED, past)
        crew = self.crew(place, 1)
        try:
            self.submit(place, seed, 1)
            crew.go()
            self.wait(place, crew, seed)
        finally:
            crew.stop()
        copies = past // seed - 1
        statements = files("benchmarks.others").joinpath("past", f"{self.name}.sql").read_text("utf-8")
        with psycopg.connect(place, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
            alone_in(connection)
            if copies:
                connection.execute(statements.encode(), {"copies": copies})
            connection.execute("vacuum (analyze)")
        self.past_made = seed * (copies + 1)
        if self.tally(place) != Tally(self.past_made, self.past_made * STEPS):
            raise BrokenRunError(f"the past is not as it should be: {self.tally(place)}")

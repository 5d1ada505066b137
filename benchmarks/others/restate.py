"""Restate: a server with a store of its own, and workers that serve the steps.

Its server asks a host on the internet for newer versions, and nothing switches that off. So it, its workers and who asks
them live in a network namespace of their own, which has nothing but a loopback.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import BrokenRunError
from benchmarks.others.contender import STEPS, Contender, Crew, Say, Tally
from benchmarks.others.environment import Environment, Processes, parse_times
from benchmarks.server import BenchServer

_NPM = ("@restatedev/restate-server@1.7.12",)
_FIRST_PORT = 9080
_CHUNK = 2_000
_MOST_SECONDS = 300.0  # for a past
_START = 60.0
_LOOK_EVERY = 0.1
_ALONE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


class _Server:
    """A Restate server in a namespace and a folder of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        folder.mkdir()
        self._log = (folder / "log").open("wb")
        words = [*_ALONE, program, "--no-logo", "--listen-mode", "tcp", "--bind-ip", "127.0.0.1", "--base-dir", folder]
        environment = {**os.environ, "RESTATE_DISABLE_TELEMETRY": "true", "RESTATE_LOG_FILTER": "error", "DO_NOT_TRACK": "1"}
        self.process = subprocess.Popen(words, stdout=self._log, stderr=self._log, env=environment)  # noqa: S603 our own words
        self._folder = folder

    @property
    def inside(self) -> tuple[str, ...]:
        return ("nsenter", f"--target={self.process.pid}", "--user", "--net", "--preserve-credentials")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Restate(Contender):
    name = "restate"
    title = "Restate"
    promise = "each step in its own log, on disk, before the next; writes of many share a sync"

    def __init__(self) -> None:
        self._environment = Environment(self.name)
        self._servers: dict[str, _Server] = {}
        self._kept = ""

    def version(self) -> str:
        return _NPM[0].rpartition("@")[2]

    def install(self, say: Say) -> None:
        if missing := [each for each in ("unshare", "nsenter", "ip") if not shutil.which(each)]:
            raise BrokenRunError(f"{missing[0]} is missing, which keeps its server off the internet")
        self._environment.install(say, _NPM)

    def prepare(self, server: BenchServer, past: int, say: Say) -> None:
        if past:
            say(f"{self.title}: a past, {past:,} that really run")
            self._kept = self._start(server, "past")
            self._make_past(past, say)

    @contextmanager
    def place(self, server: BenchServer, *, with_past: bool) -> Iterator[str]:
        """The server with a past is one for all runs; each adds to it."""
        if with_past:
            yield self._kept
            return
        place = self._start(server, "run")
        try:
            yield place
        finally:
            self._servers.pop(place).stop()

    def crew(self, place: str, workers: int) -> Crew:
        inside = self._servers[place].inside
        ports = range(_FIRST_PORT, _FIRST_PORT + workers)
        crew = Processes([self._environment.start(place, port, inside=inside) for port in ports])
        for port in ports:
            self._run(place, "register", place, port)
        return crew

    def submit(self, place: str, instances: int, workers: int) -> None:
        for service, share in enumerate(_shares(instances, workers), _FIRST_PORT):
            self._run(place, "submit", f"/five_{service}", share)

    def wait(self, _place: str, crew: Crew, instances: int) -> int:
        """A worker knows how many it has ended. That its server knows it too is seen afterwards, off the clock."""
        if not isinstance(crew, Processes):
            raise BrokenRunError("these are not its workers")
        for process, share in zip(crew.processes, _shares(instances, len(crew.processes)), strict=True):
            crew.tell(process, str(share))
        for process in crew.processes:
            crew.hear(process, "ended")
        return 0

    def tally(self, place: str) -> Tally:
        deadline = time.monotonic() + _START
        while True:
            ended, still_open, steps = json.loads(self._run(place, "tally", place))
            if not still_open or time.monotonic() > deadline:
                return Tally(ended, steps)
            time.sleep(_LOOK_EVERY)

    def times(self, place: str, rounds: int) -> list[float]:
        return parse_times(self._run(place, "latency", f"/five_{_FIRST_PORT}", rounds))

    def close(self) -> None:
        for server in self._servers.values():
            server.stop()
        self._servers.clear()

    def _start(self, server: BenchServer, name: str) -> str:
        programs = self._environment.folder.glob("node_modules/@restatedev/restate-server-*/bin/restate-server")
        place = str(server.home / f"restate_{name}")
        self._servers[place] = _Server(next(programs), Path(place))
        deadline = time.monotonic() + _START
        while True:
            try:
                self._run(place, "tally", place)
            except BrokenRunError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_EVERY)
            else:
                return place

    def _run(self, place: str, command: str, what: str, number: int = 0) -> str:
        return self._environment.run(command, what, number, inside=self._servers[place].inside)

    def _make_past(self, past: int, say: Say) -> None:
        """All of it really runs, as far as the time goes; what has ended is kept for a day."""
        deadline = time.monotonic() + _MOST_SECONDS
        crew = self.crew(self._kept, 2)
        try:
            crew.go()
            while self.past_made < past and time.monotonic() < deadline:
                chunk = min(_CHUNK, past - self.past_made)
                self.submit(self._kept, chunk, 2)
                self.past_made += chunk
                self.wait(self._kept, crew, self.past_made)
                say(f"{self.title}: a past, {self.past_made:,} of {past:,} have really run")
            found = self.tally(self._kept)
        finally:
            crew.stop()
        if found != Tally(self.past_made, self.past_made * STEPS):
            raise BrokenRunError(f"the past is not as it should be: {found}")


def _shares(instances: int, workers: int) -> list[int]:
    return [len(range(n, instances, workers)) for n in range(workers)]

"""One ordeal: an engine is set up, loaded, tortured, brought to rest and audited. The whole run is one, each control another."""

import asyncio
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from mutirao import Engine, MutiraoError
from mutirao.database.embedded import EmbeddedServer
from mutirao.people import add_token
from torture import ledger, work
from torture.audit import Audit, Finding, audit, sessions
from torture.fleet import Fleet, Post
from torture.killer import DATABASE, Kill, Killer
from torture.proxy import Proxy
from torture.skew import HOURS
from torture.tally import Tally

_LOOK = 0.1
_SAMPLE = 0.5
_STOP_WITHIN = 20.0
_LEAVE_WITHIN = 10.0
# More sessions than a process of that role may have at once, of whatever pools and lanes it has.
_MOST_SESSIONS = {"worker": 24, "server": 14, "clock": 12}


@dataclass(frozen=True)
class Plan:
    """How long, how much, how often. An ordeal goes on until its time has passed and every bar is reached."""

    seconds: float = 40
    at_most: float = 2700
    every: Mapping[str, float] = field(default_factory=dict)
    bars: Mapping[str, int] = field(default_factory=dict)
    """Of `worker`, `server`, `database` kills and `operations`: so many at least."""
    workers: int = 4
    servers: int = 2
    clocks: int = 2
    clients: int = 2
    lease: float = 2
    most_open: int = 1500
    rest_within: float = 120
    """How soon everything must have come to rest, when nobody is killed any more."""


@dataclass
class Verdict:
    """What came of it."""

    audit: Audit
    kills: list[Kill]
    counted: Counter[str]
    samples: list[tuple[float, int]]
    began_at: float
    seconds: float
    rest_seconds: float
    gave_up: Counter[str]
    recoveries: list[float]
    """Seconds from each hit of the database until a client was acknowledged something again."""

    @property
    def operations(self) -> int:
        return self.audit.acknowledged.total()

    @property
    def database_kills(self) -> int:
        return sum(self.counted[kind] for kind in DATABASE)

    @property
    def is_void(self) -> bool:
        """Nothing was hit while it was being committed: then nothing was shown."""
        return not self.audit.committed_unheard or not self.audit.unknown.total()

    def reached(self) -> dict[str, int]:
        return {
            "worker": self.counted["worker"],
            "server": self.counted["server"],
            "database": self.database_kills,
            "operations": self.operations,
        }


Told = Callable[["Ordeal"], None]


class Ordeal:
    """`plant` is done to the database before anything starts, and `environment` is that of the workers: for controls."""

    def __init__(
        self,
        server: EmbeddedServer,
        database: str,
        folder: Path,
        plan: Plan,
        seed: int,
        *,
        plant: Callable[[psycopg.Connection[object]], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.plan = plan
        self.database = database
        self._server = server
        self._folder = folder
        self._chance = random.Random(seed)  # noqa: S311 to be repeated, not secret
        self._plant = plant
        self._environment = dict(environment or {})
        self._problems: list[Finding] = []
        self.fleet = Fleet(folder)
        self.tally = Tally(folder)
        self.stage = "setting up"
        self.began_at = time.time()
        self.killer: Killer | None = None

    async def run(self, told: Told) -> Verdict:
        """All of it; `told` hears several times a second how it goes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            socket_path = Path(self._server.home, "socket", ".s.PGSQL.5432")
            proxy = await stack.enter_async_context(Proxy(socket_path, self._chance))
            stack.callback(self.fleet.close)
            people = await self._set_up()
            await asyncio.to_thread(self._start_all, proxy, people)
            self.killer = killer = Killer(
                self._server, self.database, self.fleet, proxy, self._chance, self.plan.every, self.plan.lease
            )
            supervising = asyncio.ensure_future(self._supervise(told))
            try:
                self.began_at = time.time()
                await self._torture(killer)
                seconds = time.time() - self.began_at
                rest = await self._come_to_rest()
                self.stage = "auditing"
                found = await asyncio.to_thread(audit, self._server.url(self.database), self._papers())
            finally:
                supervising.cancel()
            await self._leave(proxy)
        found.findings += self._problems
        recoveries = self._recoveries(killer)
        return Verdict(
            *(found, killer.kills, killer.counted, self.tally.samples, self.began_at),
            *(seconds, rest, self.fleet.gave_up, recoveries),
        )

    def _papers(self) -> list[Path]:
        return [path for path in self._folder.iterdir() if path.suffix in (".ledger", ".witness")]

    # Setting up

    async def _set_up(self) -> list[tuple[int, str]]:
        """Put the flows in place; answers the persons, each with a token."""
        await asyncio.to_thread(self._server.ensure_database, self.database)
        people: list[tuple[int, str]] = []
        async with Engine(self._server.url(self.database), upgrade=True, name="torture") as engine:
            await work.prepare(engine)
            for number in range(1, self.plan.clients + 1):
                person = await engine.persons.add(None, f"clerk_{number}", roles=[work.CLERK, "administrator"])
                people.append((person.id, (await add_token(engine, None, person.id, "torture")).secret))
        if self._plant is not None:
            with psycopg.connect(self._server.url(self.database), autocommit=True) as connection:
                self._plant(connection)
        return people

    def _start_all(self, proxy: Proxy, people: list[tuple[int, str]]) -> None:
        url = proxy.url(self.database)
        for number in range(self.plan.workers):
            self.fleet.start(self._worker(number, url))
        ports = [_free_port() for _ in range(self.plan.servers)]
        for number, port in enumerate(ports, 1):
            words = ("server", "--port", str(port), "--database", url)
            self.fleet.start(Post("server", f"server-{number}", "mutirao", words))
        home = f"embedded:{self.database}?home={self._server.home}"
        for number in range(1, self.plan.clocks + 1):
            words = ("clock", "--database", home if number == 1 else url)
            self.fleet.start(Post("clock", f"clock-{number}", "mutirao", words))
        for number, (person, token) in enumerate(people, 1):
            servers = [word for port in ports for word in ("--server", f"http://127.0.0.1:{port}")]
            words = ("--database", url, *servers, "--token", token, "--person", str(person), "--name", f"c{number}")
            words += ("--ledger", f"{{folder}}/client-{number}.ledger", "--seed", str(self._chance.randrange(2**32)))
            words += ("--most-open", str(self.plan.most_open))
            self.fleet.start(Post("client", f"client-{number}", "client", words))

    def _worker(self, number: int, url: str) -> Post:
        """Two of three have a clock that is wrong; every second one leaves the time to clocks."""
        words = ["worker", "torture.work", "--database", url, "--name", "{name}", "--lease", f"{self.plan.lease:g}"]
        words += ["--concurrency", "100", *(["--no-clock"] if number % 2 else [])]
        environment = {"TORTURE_DATABASE": url, "TORTURE_WITNESS": "{folder}/{name}.witness", **self._environment}
        hours = (0, HOURS, -HOURS)[number % 3]
        return Post("worker", f"worker-{number + 1}", "mutirao", tuple(words), environment, hours)

    # Torture, and rest

    async def _supervise(self, told: Told) -> None:
        looked_at = 0.0
        while True:
            self.fleet.supervise()
            if time.monotonic() - looked_at > _SAMPLE:
                looked_at = time.monotonic()
                await asyncio.to_thread(self.tally.look)
                told(self)
            await asyncio.sleep(_LOOK)

    async def _torture(self, killer: Killer) -> None:
        self.stage = "killing"
        killing = asyncio.ensure_future(killer.run())
        while not self._is_enough(killer):
            await asyncio.sleep(_LOOK)
            if killing.done():
                break
        killer.is_over = True
        await killing

    def _is_enough(self, killer: Killer) -> bool:
        passed = time.time() - self.began_at
        counted = killer.counted
        reached = {
            **counted,
            "database": sum(counted[kind] for kind in DATABASE),
            "operations": self.tally.acknowledged,
        }
        bars = all(reached.get(name, 0) >= bar for name, bar in self.plan.bars.items())
        return (passed >= self.plan.seconds and bars) or passed >= self.plan.at_most

    async def _come_to_rest(self) -> float:
        """No more starts; what is open ends, as far as it does within the time that it has."""
        self.stage = "coming to rest"
        began = time.monotonic()
        clients = self.fleet.of("client")
        for each in clients:
            each.process.signal(signal.SIGTERM)
        while time.monotonic() - began < self.plan.rest_within and await asyncio.to_thread(self._is_busy):
            await asyncio.sleep(0.2)
        took = time.monotonic() - began
        self.fleet.members = [each for each in self.fleet.members if each not in clients]
        for each in clients:
            each.process.signal(signal.SIGTERM)
        while any(each.process.is_alive for each in clients):
            await asyncio.sleep(0.05)
        await self._check_sessions()
        return took

    def _is_busy(self) -> bool:
        with suppress(psycopg.Error), psycopg.connect(self._server.url(self.database), autocommit=True) as connection:
            row = connection.execute(
                "select exists (select from mutirao.instance) or exists (select from mutirao.job)"
            ).fetchone()
            return row is None or bool(row[0])
        return True

    async def _check_sessions(self) -> None:
        there = await asyncio.to_thread(sessions, self._server.url(self.database))
        allowed = sum(_MOST_SESSIONS[each.post.role] for each in self.fleet.members)
        if len(there) > allowed:
            self._add("connections", "more sessions than the living processes can need", there)

    async def _leave(self, proxy: Proxy) -> None:
        """Everybody ends as users end them; then nobody is connected any more."""
        self.stage = "stopping"
        late = await asyncio.to_thread(self.fleet.stop, _STOP_WITHIN)
        if late:
            self._add("stopped_late", "a process that was told to stop did not", late)
        if self.fleet.ended_ready:
            self._add("ended_by_itself", "a process ended though nobody killed it", self.fleet.ended_ready)
        deadline = time.monotonic() + _LEAVE_WITHIN
        while there := await asyncio.to_thread(sessions, self._server.url(self.database)):
            if time.monotonic() > deadline:
                self._add("connections", "sessions that nobody has any more", there)
                break
            await asyncio.sleep(0.1)
        if proxy.links:
            self._add("connections", "the proxy holds connections that nobody has", [str(len(proxy.links))])

    def _add(self, name: str, meaning: str, examples: list[str]) -> None:
        self._problems.append(Finding(name, meaning, len(examples), examples[:5]))

    def _recoveries(self, killer: Killer) -> list[float]:
        papers = [path for path in self._papers() if path.suffix == ".ledger"]
        answered = sorted(
            (each.ended_at, each.began_at)
            for each in ledger.read(papers)
            if each.outcome == "done" and each.ended_at is not None
        )
        found = []
        for kill in killer.kills:
            if kill.up_at is not None:
                up_at = kill.up_at
                after = next((ended for ended, began in answered if ended >= up_at and began >= kill.at), None)
                if after is not None:
                    found.append(after - kill.at)
        return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def drop(server: EmbeddedServer, database: str) -> None:
    """Take away a database that is not needed any more."""
    with suppress(MutiraoError, psycopg.Error), psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f'drop database if exists "{database}" with (force)'.encode())

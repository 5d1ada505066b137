"""Who kills: at random moments, drawn from a seed, whatever there is to kill.

    worker, server, clock    SIGKILL
    pause                    a worker is stopped for longer than its lease, and then goes on as if nothing had been
    database_kill            SIGKILL to the postmaster, whose children then find themselves orphans
    database_quit            SIGQUIT to the postmaster: an immediate shutdown, without a checkpoint
    backend_kill             SIGKILL to one session of the server, upon which the postmaster restarts all of them
    cut, unheard, half, delay   what a network does; see `proxy`

The next kill of a kind comes after a time that is drawn from an exponential distribution, so that no rhythm of the engine
can hide from it. The database is killed again only after it was there for a moment, else nothing would be going on in it.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from mutirao.database.embedded import SUPERUSER, EmbeddedServer
from torture.fleet import Fleet, Member
from torture.proxy import FAULTS, Proxy

DATABASE = ("database_kill", "database_quit")
PROCESSES = {"worker": "worker", "server": "server", "clock": "clock"}
_MOMENT = 1.5
_BACKENDS = "select pid from pg_stat_activity where backend_type = 'client backend' and datname = %s and pid <> pg_backend_pid()"


@dataclass
class Kill:
    """`up_at`: when the server answered again, of kills that hit it."""

    kind: str
    at: float
    up_at: float | None = None


@dataclass
class Killer:
    """`every`: for each kind, how many seconds there are between two on the average."""

    server: EmbeddedServer
    database: str
    fleet: Fleet
    proxy: Proxy
    chance: random.Random
    every: Mapping[str, float]
    lease: float
    kills: list[Kill] = field(default_factory=list)
    is_over: bool = False

    @property
    def counted(self) -> Counter[str]:
        return Counter(each.kind for each in self.kills) + self.proxy.faults

    async def run(self) -> None:
        """Until `is_over`."""
        await asyncio.gather(*(self._repeat(kind, seconds) for kind, seconds in self.every.items()), self._hit_database())

    async def _repeat(self, kind: str, seconds: float) -> None:
        if kind in (*DATABASE, "backend_kill"):
            return
        while await self._pause(seconds):
            if kind in FAULTS:
                self.proxy.do(kind)
            elif kind == "pause":
                await self._stop_for_a_while()
            else:
                self._kill_one(kind)

    async def _pause(self, seconds: float) -> bool:
        """Wait for the next one; False when there is none any more."""
        until = time.monotonic() + self.chance.expovariate(1 / seconds)
        while not self.is_over and time.monotonic() < until:
            await asyncio.sleep(min(0.1, max(0.0, until - time.monotonic())))
        return not self.is_over

    def _kill_one(self, role: str) -> None:
        if (member := self._victim(role)) is not None:
            member.was_killed = True
            member.process.signal(signal.SIGKILL)
            self.kills.append(Kill(role, time.time()))

    def _victim(self, role: str) -> Member | None:
        """One that is at work: to kill what has not begun shows nothing."""
        able = [each for each in self.fleet.of(role) if each.process.is_alive and each.is_ready()]
        return self.chance.choice(able) if able else None

    async def _stop_for_a_while(self) -> None:
        if (member := self._victim("worker")) is None:
            return
        process = member.process
        process.signal(signal.SIGSTOP)
        self.kills.append(Kill("pause", time.time()))
        await asyncio.sleep(self.lease * self.chance.uniform(0.5, 2.5))
        process.signal(signal.SIGCONT)

    # The database

    async def _hit_database(self) -> None:
        """One after another, whatever the kind."""
        kinds = {kind: 1 / self.every[kind] for kind in (*DATABASE, "backend_kill") if kind in self.every}
        if not kinds:
            return
        while await self._pause(max(0.1, 1 / sum(kinds.values()) - _MOMENT)):
            [kind] = self.chance.choices([*kinds], [*kinds.values()])
            await self.hit_database(kind)
            await asyncio.sleep(_MOMENT)

    async def hit_database(self, kind: str) -> None:
        hit: Callable[[], bool] = {
            "database_kill": lambda: self._signal_postmaster(signal.SIGKILL),
            "database_quit": lambda: self._signal_postmaster(signal.SIGQUIT),
            "backend_kill": self._kill_backend,
        }[kind]
        if not await asyncio.to_thread(hit):
            return
        kill = Kill(kind, time.time())
        self.kills.append(kill)
        await asyncio.to_thread(bring_up, self.server)
        kill.up_at = time.time()

    def _signal_postmaster(self, how: signal.Signals) -> bool:
        try:
            os.kill(postmaster(self.server.data), how)
        except (OSError, ValueError):
            return False
        return True

    def _kill_backend(self) -> bool:
        try:
            with psycopg.connect(self.server.url("postgres", SUPERUSER), autocommit=True) as connection:
                found = [number for (number,) in connection.execute(_BACKENDS, [self.database])]
            if not found:
                return False
            os.kill(self.chance.choice(found), signal.SIGKILL)
        except (psycopg.Error, OSError):
            return False
        time.sleep(0.05)  # until the postmaster has noticed
        return True


def postmaster(data: Path) -> int:
    return int((data / "postmaster.pid").read_text().split()[0])


def bring_up(server: EmbeddedServer) -> None:
    """Start it again if need be, and wait until it answers a question."""
    while True:
        server.revive()
        try:
            with psycopg.connect(server.url("postgres", SUPERUSER), connect_timeout=5) as connection:
                connection.execute("select 1")
        except psycopg.Error:
            time.sleep(0.02)
        else:
            return

"""The clocks: steps a second, milliseconds an instance, starts a second; each for the yardstick and for the engine."""

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.process import BaseProcess
from typing import Any

import psycopg

from benchmarks import pool
from benchmarks.noise import Noise, NoiseMeter
from benchmarks.server import BenchServer
from benchmarks.work import STEPS, WORKS, Work, serve
from mutirao import Flow
from mutirao.database.engine import Engine

_BATCH = 50  # the yardstick's
_LOOK_EVERY = 0.02  # as often as the yardstick's workers look whether all has been done
_PATIENCE = 600.0
_ROUNDS = 100
_WARM_UP = 10  # as many as the yardstick's

# A transaction id per row is what PostgreSQL keeps in xmin. Two finishes of one instance under one id shared a commit.
_SHARED_COMMITS = """
    select instance, count(*) from mutirao.trace where kind = 'finish' and instance >= %s
    group by instance, xmin::text having count(*) > 1 limit 1"""
# What a schedule started meanwhile is not ours.
_OURS_ARE_OPEN = """
    select exists (select from mutirao.instance where id >= %s and flow is distinct from (select id from mutirao.flow where name = 'sleeper'))"""
_COMPLETED = "select count(*) from mutirao.closed where status = 'closed.completed' and id >= %s"
_FINISHED = "select count(*), min(at), max(at) from mutirao.trace where kind = 'finish' and instance >= %s"


class BrokenRunError(Exception):
    """What was measured is not what should have been."""


@dataclass(frozen=True)
class Run:
    """One measurement. Larger is better for rates, smaller for times."""

    value: float
    noise: Noise | None
    details: dict[str, float] = field(default_factory=dict)


# Throughput


def yardstick_rate(server: BenchServer, instances: int, workers: int) -> Run:
    server.checkpoint()
    meter = NoiseMeter(server.processes)
    rate = pool.throughput(server.yardstick, instances, _BATCH, workers)
    return Run(rate, meter.read(), {"seconds": instances * STEPS / rate})


def engine_rate(server: BenchServer, work: str, instances: int, workers: int, *, url: str | None = None) -> Run:
    """Steps a second, in a fresh database or in the one at `url`."""
    kind = WORKS[work]
    url = url or server.fresh(work)
    ids = asyncio.run(_submit(url, kind.states(instances)))
    server.checkpoint()
    meter = NoiseMeter(server.processes)
    began = time.perf_counter()
    with working(url, work, workers) as processes, psycopg.connect(url, autocommit=True) as probe:
        _wait_until_done(probe, processes, min(ids))
        seconds = time.perf_counter() - began
    noise = meter.read()
    details = {"seconds": seconds, "seconds_between_finishes": _verify(url, kind, ids)}
    return Run(len(ids) * kind.steps / seconds, noise, details)


async def _submit(url: str, states: Iterable[Flow]) -> list[int]:
    ids: list[int] = []
    async with Engine(url) as engine:
        for _, same in groupby(states, type):
            ids += await engine.start_many(same)
    return ids


@contextmanager
def working(url: str, work: str, workers: int) -> Iterator[Sequence[BaseProcess]]:
    processes = [multiprocessing.Process(target=serve, args=(url, work), daemon=True) for _ in range(workers)]
    for process in processes:
        process.start()
    try:
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(10)
            process.kill()
            process.join()


def _wait_until_done(probe: psycopg.Connection[Any], processes: Sequence[BaseProcess], since: int) -> None:
    """Open instances leave their table when they end: that none of ours is left is found out for next to nothing."""
    deadline = time.monotonic() + _PATIENCE
    while one(probe, _OURS_ARE_OPEN, since):
        if not all(process.is_alive() for process in processes):
            raise BrokenRunError("a worker ended before its work was done")
        if time.monotonic() > deadline:
            left = probe.execute("select status, count(*) from mutirao.instance group by 1").fetchall()
            raise BrokenRunError(f"not done within {_PATIENCE:g} s; open instances: {left}")
        time.sleep(_LOOK_EVERY)


def _verify(url: str, work: Work, ids: list[int]) -> float:
    """All went well, each step once and in a commit of its own; answers the seconds from the first finish to the last."""
    since = min(ids)  # batches of one call are started side by side, so its first number need not be its lowest
    with psycopg.connect(url) as connection:
        completed = one(connection, _COMPLETED, since)
        steps, first, last = connection.execute(_FINISHED, [since]).fetchone() or (0, None, None)
        if completed != len(ids) or steps != len(ids) * work.steps:
            raise BrokenRunError(f"of {len(ids)} instances {completed} are completed, with {steps} steps")
        if work.is_sequential and (shared := connection.execute(_SHARED_COMMITS, [since]).fetchone()):
            raise BrokenRunError(f"instance {shared[0]}: {shared[1]} steps share a commit")
        return float((last - first).total_seconds())


def one(probe: psycopg.Connection[Any], statement: str, *values: Any) -> Any:
    row = probe.execute(statement, values, prepare=True).fetchone()
    return row and row[0]


# Latency


def yardstick_latency(server: BenchServer) -> Run:
    server.checkpoint()
    meter = NoiseMeter(server.processes)
    return _latency(pool.latency(server.yardstick, _ROUNDS), meter)


def engine_latency(server: BenchServer, work: str = "five", *, url: str | None = None, rounds: int = _ROUNDS) -> Run:
    """One instance after another on an idle engine, seen to its end from another connection as the yardstick's is."""
    url = url or server.fresh(work)
    server.checkpoint()
    meter = NoiseMeter(server.processes)
    with working(url, work, 1):
        return latency_of(url, work, meter, rounds)


def latency_of(url: str, work: str, meter: NoiseMeter, rounds: int = _ROUNDS) -> Run:
    """The same, of workers that are there already."""
    return _latency(asyncio.run(_instance_times(url, work, rounds)), meter)


async def _instance_times(url: str, work: str, rounds: int) -> list[float]:
    times: list[float] = []
    states = list(WORKS[work].states(rounds + _WARM_UP))
    async with Engine(url) as engine:
        with psycopg.connect(url, autocommit=True) as probe:
            for state in states:
                began = time.perf_counter()
                instance = await engine.start(state)
                while not one(probe, "select exists (select from mutirao.closed where id = %s)", instance):
                    pass
                times.append((time.perf_counter() - began) * 1000)
    return sorted(times[_WARM_UP:])


def _latency(times: Sequence[float], meter: NoiseMeter) -> Run:
    return Run(statistics.median(times), meter.read(), {"p99": times[-2], "longest": times[-1]})


# Starting


def start_rate(server: BenchServer, instances: int) -> Run:
    """Instances a second that one call starts, one job each."""
    url = server.fresh("five")
    server.checkpoint()
    meter = NoiseMeter(server.processes)
    seconds = asyncio.run(_time_of_start(url, list(WORKS["five"].states(instances))))
    return Run(instances / seconds, meter.read(), {"seconds": seconds})


async def _time_of_start(url: str, states: Sequence[Flow]) -> float:
    async with Engine(url) as engine:
        began = time.perf_counter()
        await engine.start_many(states)
        return time.perf_counter() - began

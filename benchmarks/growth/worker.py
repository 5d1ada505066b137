"""Workers grow, on as many cores as there are: what they cost while they wait, and what they do together."""

import time
from collections.abc import Callable

import psycopg

from benchmarks.growth.curve import Curve, Goal, Sample, sample
from benchmarks.growth.size import Size
from benchmarks.growth.window import Window
from benchmarks.history import fill_queue
from benchmarks.measure import BrokenRunError, Run, latency_of, one, working
from benchmarks.noise import NoiseMeter
from benchmarks.server import BenchServer
from benchmarks.work import STEPS

SHARED = Goal(0.8, of="best")
_PATIENCE = 120.0
_FASTEST = 12_000  # instances a second that no machine of two cores gets through


def curves(server: BenchServer, size: Size, say: Callable[[str], None]) -> list[Curve]:
    def measure(count: int) -> Sample:
        return _measure(server, size, count, say)

    return [Curve("workers", "workers", "worker processes", size.workers, measure, SHARED)]


def _measure(server: BenchServer, size: Size, workers: int, say: Callable[[str], None]) -> Sample:
    """They wait, then do one instance after another, then all fall upon a queue that is suddenly there."""
    url = server.fresh("five")
    with working(url, "five", workers) as processes, psycopg.connect(url, autocommit=True) as probe:
        _wait_for_all(probe, workers)
        idle = NoiseMeter(server.processes)
        time.sleep(size.window)
        resting = idle.read()
        connections = one(probe, "select count(*) from pg_stat_activity where backend_type = 'client backend'")
        latency = latency_of(url, "five", NoiseMeter(server.processes), size.rounds)
        queued = max(int(_FASTEST * size.window), size.worked)
        server.checkpoint()
        fill_queue(url, queued, say)
        meter, window = NoiseMeter(server.processes), Window(probe)
        steps, seconds = window.measure(size.window, queued * STEPS, processes)
        rate = Run(steps / seconds, meter.read())
    share = {} if resting is None else {"idle_cpu": resting.ours * 100}
    return sample(rate, latency, connections=connections, **share)


def _wait_for_all(probe: psycopg.Connection[object], workers: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while one(probe, "select count(*) from mutirao.worker where stopped_at is null") < workers:
        if time.monotonic() > deadline:
            raise BrokenRunError(f"not all of {workers} workers were there within {_PATIENCE:g} s")
        time.sleep(0.05)

"""Instances grow: finished ones behind those that are worked on, waiting ones beside them, ready ones ahead of them."""

from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from benchmarks.growth.curve import Curve, Goal, Sample, sample
from benchmarks.growth.size import Size
from benchmarks.growth.window import Window
from benchmarks.history import make_backlog, make_history, make_queue
from benchmarks.measure import Run, engine_latency, engine_rate, working
from benchmarks.noise import NoiseMeter
from benchmarks.server import BenchServer
from benchmarks.work import STEPS

FLAT = Goal(0.85)
_RUN = "run"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Bench:
    server: BenchServer
    size: Size
    say: Say


Make = Callable[[BenchServer, int, Say, str], str]
Measure = Callable[[Bench, str, int], Sample]


def curves(server: BenchServer, size: Size, say: Say) -> list[Curve]:
    return [
        _curve(Bench(server, size, say), "finished", "finished instances behind", make_history, _beside),
        _curve(Bench(server, size, say), "open", "open instances beside, which wait", make_backlog, _beside),
        _curve(Bench(server, size, say), "queue", "ready jobs ahead", make_queue, _queue_rate),
    ]


def _curve(bench: Bench, name: str, title: str, make: Make, measure: Measure) -> Curve:
    """Each size has a database of its own, and each run a copy of it: what a run leaves behind is not the next one's."""
    server, sizes = bench.server, bench.size.instances

    def prepare() -> None:
        for count in sizes:
            make(server, count, bench.say, f"{name}_{count}")

    def clear() -> None:
        server.drop(_RUN)
        for count in sizes:
            server.drop(f"{name}_{count}")

    def run(count: int) -> Sample:
        return measure(bench, server.clone(f"{name}_{count}", _RUN), count)

    return Curve(name, title, "instances", sizes, run, FLAT, prepare, clear)


def _beside(bench: Bench, url: str, _count: int) -> Sample:
    """Instances that are started now, one after another and then many, with the others there."""
    latency = engine_latency(bench.server, url=url, rounds=bench.size.rounds)
    return sample(engine_rate(bench.server, "five", bench.size.worked, 1, url=url), latency)


def _queue_rate(bench: Bench, url: str, count: int) -> Sample:
    """How fast the queue is worked off: all of it, or what is done of it in some seconds. A short one again and again."""
    server, size = bench.server, bench.size
    steps = seconds = 0.0
    meter = NoiseMeter(server.processes)
    for n in range(max(1, size.worked // count)):
        if n:
            url = server.clone(f"queue_{count}", _RUN)
        server.checkpoint()
        with psycopg.connect(url, autocommit=True) as probe:
            window = Window(probe)
            with working(url, "five", 1) as processes:
                done, took = window.measure(size.window, count * STEPS, processes)
        steps, seconds = steps + done, seconds + took
    return sample(Run(steps / seconds, meter.read()))

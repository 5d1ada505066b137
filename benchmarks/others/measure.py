"""One run of one contender: how fast, how long, and whether it did what it should."""

import statistics
from time import perf_counter

from benchmarks.measure import BrokenRunError, Run
from benchmarks.noise import NoiseMeter
from benchmarks.others.contender import STEPS, Contender, Tally
from benchmarks.server import BenchServer

_OUR_OWN = 3  # transactions beside those of waiting: one for each look at the counts


def rate(contender: Contender, server: BenchServer, instances: int, workers: int, *, with_past: bool) -> Run:
    """Steps a second. All is submitted before the clock starts, which stops when the last instance has ended."""
    with contender.place(server, with_past=with_past) as place:
        before = contender.tally(place)
        crew = contender.crew(place, workers)
        try:
            contender.submit(place, instances, workers)
            server.checkpoint()
            commits = contender.commits(place)
            meter = NoiseMeter(server.processes)
            began = perf_counter()
            crew.go()
            asked = contender.wait(place, crew, instances)
            seconds = perf_counter() - began
            noise = meter.read()
            _verify(before, contender.tally(place), instances)
        finally:
            crew.stop()
        contender.check(place, instances)
        details = {"seconds": seconds}
        if commits is not None and (after := contender.commits(place)):
            details["steps_per_commit"] = instances * STEPS / max(1, after - commits - asked - _OUR_OWN)
        return Run(instances * STEPS / seconds, noise, details)


def latency(contender: Contender, server: BenchServer, rounds: int, *, with_past: bool) -> Run:
    """Milliseconds, the median; how long the slowest in a hundred took is among the details."""
    with contender.place(server, with_past=with_past) as place:
        crew = contender.crew(place, 1 if contender.times_need_crew else 0)
        try:
            crew.go()
            server.checkpoint()
            meter = NoiseMeter(server.processes)
            times = contender.times(place, rounds)
            noise = meter.read()
        finally:
            crew.stop()
        return Run(statistics.median(times), noise, {"p99": times[-max(1, len(times) // 50)], "longest": times[-1]})


def _verify(before: Tally, after: Tally, instances: int) -> None:
    found = Tally(after.ended - before.ended, after.steps - before.steps)
    if found != Tally(instances, instances * STEPS):
        raise BrokenRunError(f"of {instances} instances {found.ended} ended, with {found.steps} steps")

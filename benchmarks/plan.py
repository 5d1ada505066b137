"""The cases and their goals. Two sides run in turns, and their medians are set against each other."""

import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.change import OPEN, under_load
from benchmarks.history import make_history, make_sleepers
from benchmarks.measure import Run, engine_latency, engine_rate, start_rate, yardstick_latency, yardstick_rate
from benchmarks.meeting import CLASSES, classless_rate, engine_seconds, greedy_seconds, make_load, order_costs
from benchmarks.meeting import JOBS as MET
from benchmarks.meeting import OPEN as ORDERED
from benchmarks.memory import JOBS, PAYLOAD, busy_memory, idle_memory
from benchmarks.office import GRAPH_TASKS
from benchmarks.page import GRAPH_MS, SCRIPT_KB
from benchmarks.page import PAGE_MS as PAGES_MS
from benchmarks.page import measure as measure_pages
from benchmarks.retention import rate_while_dropping
from benchmarks.server import BenchServer
from benchmarks.work import WORKS
from benchmarks.worklist import CROWD, CROWD_MS, PAGE_MS, SELECT_MS, measure

# As multiples of the yardstick, for one worker and for two. None: shown, but nothing is asked.
THROUGHPUT_GOALS: dict[str, tuple[float | None, float | None]] = {
    "five": (1.5, 2.0),
    "large": (0.7, 0.7),
    "branches": (1.0, 1.2),
    "mixed": (1.0, 1.2),
    "failing": (1.0, 1.0),
    "blocking": (None, None),
}
# Throughput within 15 % of that of the small flow on an empty database.
UNDISTURBED = 0.85
# A limit may cost the tasks that have one a fifth, and the others nothing that could be measured; sleepers next to nothing.
LIMITED = 0.8
DENTED = 0.8
# While old instances are dropped.
DROPPING = 0.9
BESIDE = 0.95
# Of what a scheduler that knows everything gets from the same jobs.
SCHEDULED = 0.7
# One instance on an idle engine: its median against the yardstick's, and the slowest in a hundred against its own median.
IDLE_P50 = 2.5
IDLE_P99 = 3.0
STARTS_A_SECOND = 30_000

# What a worker may weigh, in MB.
AT_REST = 60
WITH_JOBS = 150

STARTED_IN_ONE_CALL = 30_000
START_RUNS = 5

Side = Callable[[], Run]


@dataclass(frozen=True)
class Size:
    """How much is done. The goals are for the full size."""

    instances: int = 10_000
    history: int = 1_000_000
    schedules: int = 10_000
    items: int = 100_000
    runs: int = 3


@dataclass(frozen=True)
class Comparison:
    """What came out of a case. `against` is empty where the goal is a plain number."""

    case: str
    title: str
    workers: int
    unit: str
    ours: Sequence[Run]
    against: Sequence[Run]
    baseline: str
    ratio: float
    goal: float | None
    at_least: bool = True

    @property
    def is_met(self) -> bool | None:
        if self.goal is None:
            return None
        return bool((operator.ge if self.at_least else operator.le)(self.ratio, self.goal))

    @property
    def is_noisy(self) -> bool:
        return any(run.noise is not None and run.noise.is_high for run in (*self.ours, *self.against))


@dataclass(frozen=True)
class Bench:
    """What a case needs: the server, how much to do, and whom to tell what comes next."""

    server: BenchServer
    size: Size
    announce: Callable[[str], None]
    say: Callable[[str], None]

    def repeat(self, title: str, side: Side, runs: int) -> list[Run]:
        taken = []
        for n in range(runs):
            self.announce(f"{title}, run {n + 1} of {runs}")
            taken.append(side())
        return taken

    def in_turns(self, title: str, ours: Side, baseline: str, against: Side) -> tuple[list[Run], list[Run]]:
        """A B A B A B: what slows the machine for a while slows both sides."""
        taken: tuple[list[Run], list[Run]] = ([], [])
        for n in range(self.size.runs):
            for runs, side, who in ((taken[1], against, baseline), (taken[0], ours, "engine")):
                self.announce(f"{title}, {who}, run {n + 1} of {self.size.runs}")
                runs.append(side())
        return taken


@dataclass(frozen=True)
class Case:
    """`turns` is how many runs it takes, for the progress bar."""

    name: str
    turns: int
    run: Callable[[Bench], list[Comparison]]


def plan(size: Size) -> list[Case]:
    both = 2 * 2 * size.runs
    return [
        *(Case(name, both, partial(_throughput, name=name)) for name in THROUGHPUT_GOALS),
        Case("conditions", both, _conditions),
        Case("history", both, _history),
        Case("limits", 3 * both, _limits),
        Case("sleepers", both, _sleepers),
        Case("change", 2 * size.runs, _change),
        Case("retention", both, _retention),
        Case("latency", 2 * size.runs, _latency),
        Case("start", START_RUNS, _start),
        Case("worklist", 1, _worklist),
        Case("pages", 1, _pages),
        Case("classless", both, _classless),
        Case("classes", size.runs, _classes),
        Case("ordering", 2 * size.runs, _ordering),
        Case("memory", 2, _memory),
    ]


def median(runs: Sequence[Run], detail: str | None = None) -> float:
    return statistics.median(run.value if detail is None else run.details[detail] for run in runs)


def _throughput(bench: Bench, name: str) -> list[Comparison]:
    found = []
    for workers, goal in enumerate(THROUGHPUT_GOALS[name], start=1):
        ours = partial(engine_rate, bench.server, name, bench.size.instances, workers)
        yardstick = partial(yardstick_rate, bench.server, bench.size.instances, workers)
        found.append(_rates(bench, (name, WORKS[name].title, workers, goal), ours, ("yardstick", yardstick)))
    return found


def _conditions(bench: Bench) -> list[Comparison]:
    found = []
    for workers in (1, 2):
        many, few = (
            partial(engine_rate, bench.server, work, bench.size.instances, workers) for work in ("conditions", "five")
        )
        named = ("conditions", WORKS["conditions"].title, workers, UNDISTURBED)
        found.append(_rates(bench, named, many, ("small flow", few)))
    return found


def _history(bench: Bench) -> list[Comparison]:
    url = make_history(bench.server, bench.size.history, bench.say)
    title = f"with {bench.size.history:,} finished instances"
    found = []
    for workers in (1, 2):
        fresh = partial(engine_rate, bench.server, "five", bench.size.instances, workers)
        old = partial(fresh, url=url)
        found.append(_rates(bench, ("history", title, workers, UNDISTURBED), old, ("empty", fresh)))
    bench.server.drop("history")
    return found


def _limits(bench: Bench) -> list[Comparison]:
    found = []
    for name, goal in (("limited", LIMITED), ("limited_each", LIMITED), ("beside_limits", BESIDE)):
        for workers in (1, 2):
            ours, free = (
                partial(engine_rate, bench.server, work, bench.size.instances, workers) for work in (name, "five")
            )
            found.append(_rates(bench, ("limits", WORKS[name].title, workers, goal), ours, ("without", free)))
    return found


def _sleepers(bench: Bench) -> list[Comparison]:
    url = make_sleepers(bench.server, bench.size.history, bench.size.schedules, bench.say)
    title = f"beside {bench.size.history:,} sleeping waits and {bench.size.schedules:,} schedules"
    found = []
    for workers in (1, 2):
        empty = partial(engine_rate, bench.server, "five", bench.size.instances, workers)
        found.append(_rates(bench, ("sleepers", title, workers, BESIDE), partial(empty, url=url), ("empty", empty)))
    bench.server.drop("sleepers")
    return found


def _change(bench: Bench) -> list[Comparison]:
    title = f"a live flow changed under load, {bench.size.history:,} finished and {OPEN:,} open"
    changed = partial(under_load, bench.server, bench.size.history, bench.say)
    ours, left_alone = bench.in_turns(title, changed, "left alone", partial(changed, changes=()))
    later, later_alone = (
        [Run(run.details["after_one_second"], run.noise, run.details) for run in runs] for runs in (ours, left_alone)
    )
    slowest = [Run(run.details["longest_statement_ms"], run.noise, run.details) for run in ours]
    return [
        *(
            Comparison(
                "change",
                f"{title}: {when}",
                1,
                "of before",
                runs,
                alone,
                "left alone",
                median(runs) / median(alone),
                goal,
            )
            for when, runs, alone, goal in (
                ("worst second", ours, left_alone, DENTED),
                ("after one second", later, later_alone, BESIDE),
            )
        ),
        Comparison(
            "change", f"{title}: slowest statement", 1, "ms", slowest, [], "200 ms", median(slowest) / 200, 1.0, False
        ),
    ]


def _retention(bench: Bench) -> list[Comparison]:
    """The same database on both sides, with a rule that lets its past go and without one."""
    url = make_history(bench.server, bench.size.history, bench.say)
    title = f"while {bench.size.history:,} old instances are dropped"
    found = []
    for workers in (1, 2):
        kept = partial(engine_rate, bench.server, "five", bench.size.instances, workers, url=url)
        dropping = partial(rate_while_dropping, bench.server, bench.size.instances, workers, url)
        found.append(_rates(bench, ("retention", title, workers, DROPPING), dropping, ("kept", kept)))
    bench.server.drop("history")
    return found


def _rates(
    bench: Bench, named: tuple[str, str, int, float | None], ours: Side, baseline: tuple[str, Side]
) -> Comparison:
    case, title, workers, goal = named
    who, against = baseline
    taken = bench.in_turns(f"{title}, workers: {workers}", ours, who, against)
    return Comparison(case, title, workers, "steps/s", *taken, who, median(taken[0]) / median(taken[1]), goal)


def _latency(bench: Bench) -> list[Comparison]:
    title = "one instance on an idle engine"
    ours, against = bench.in_turns(
        title, partial(engine_latency, bench.server), "yardstick", partial(yardstick_latency, bench.server)
    )
    p50, p99 = median(ours), median(ours, "p99")
    slowest = [Run(run.details["p99"], run.noise, run.details) for run in ours]
    return [
        Comparison(
            "latency", f"{title}, p50", 1, "ms", ours, against, "yardstick", p50 / median(against), IDLE_P50, False
        ),
        Comparison("latency", f"{title}, p99", 1, "ms", slowest, ours, "own p50", p99 / p50, IDLE_P99, False),
    ]


def _start(bench: Bench) -> list[Comparison]:
    title = f"start of {STARTED_IN_ONE_CALL:,} in one call"
    runs = bench.repeat(title, partial(start_rate, bench.server, STARTED_IN_ONE_CALL), START_RUNS)
    goal = f"{STARTS_A_SECOND:,}/s"
    return [Comparison("start", title, 0, "instances/s", runs, [], goal, median(runs) / STARTS_A_SECOND, 1.0)]


def _worklist(bench: Bench) -> list[Comparison]:
    title = f"worklist of 5 %, {bench.size.items:,} open items"
    bench.announce(title)
    found = measure(bench.server, bench.size.items, bench.say)
    timed = [
        *((f"{title}: a page by {order}, p95", run, PAGE_MS) for order, run in found.pages.items()),
        (f"{title}: selecting, p95", found.select, SELECT_MS),
        (f"{title}: {CROWD} go for one item, the last answer", found.crowd, CROWD_MS),
        (f"{title}: {CROWD} go for one item over HTTP, the last answer", found.http_crowd, CROWD_MS),
    ]
    return [
        Comparison("worklist", f"{title}: offered", 0, "items/s", [found.offered], [], "", 0, None),
        *(
            Comparison("worklist", name, 0, "ms", [run], [], f"{goal:g} ms", run.value / goal, 1.0, at_least=False)
            for name, run, goal in timed
        ),
    ]


def _pages(bench: Bench) -> list[Comparison]:
    title = f"pages with {bench.size.history:,} instances and {bench.size.items:,} items"
    bench.announce(title)
    found = measure_pages(bench.server, bench.size.history, bench.size.items, bench.say)
    measured = [
        *((f"page {path}, p95", "ms", run, PAGES_MS) for path, run in found.pages.items()),
        ("pages: all scripts, gzipped", "kB", found.scripts, SCRIPT_KB),
        (f"pages: a graph of {GRAPH_TASKS} tasks laid out and drawn", "ms", found.graph, GRAPH_MS),
    ]
    return [
        Comparison("pages", name, 0, unit, [run], [], f"{goal:g} {unit}", run.value / goal, 1.0, at_least=False)
        for name, unit, run, goal in measured
    ]


def _classless(bench: Bench) -> list[Comparison]:
    title = f"tasks without a class, among {CLASSES} classes"
    found = []
    for workers in (1, 2):
        ours, ungated = (
            partial(classless_rate, bench.server, bench.size.instances, workers, gated=gated) for gated in (True, False)
        )
        found.append(_rates(bench, ("classless", title, workers, BESIDE), ours, ("without", ungated)))
    return found


def _classes(bench: Bench) -> list[Comparison]:
    title = f"{MET:,} jobs over {CLASSES} classes, of which a tenth conflict"
    load = make_load()
    ours = bench.repeat(title, partial(engine_seconds, bench.server, load), bench.size.runs)
    greedy = [Run(greedy_seconds(load), None)]
    return [Comparison("classes", title, 1, "s", ours, greedy, "greedy", median(greedy) / median(ours), SCHEDULED)]


def _ordering(bench: Bench) -> list[Comparison]:
    title = f"an ordering between {ORDERED:,} and {ORDERED:,} open instances"
    taken: dict[bool, list[tuple[Run, Run]]] = {True: [], False: []}
    for n in range(bench.size.runs):
        for ordered, runs in taken.items():
            bench.announce(f"{title}, {'ordered' if ordered else 'without'}, run {n + 1} of {bench.size.runs}")
            runs.append(order_costs(bench.server, ordered=ordered, say=bench.say))
    found = []
    for side, what in enumerate(("a start", "a finish")):
        ours, against = ([runs[side] for runs in taken[ordered]] for ordered in (True, False))
        ratio = median(ours) / median(against)
        found.append(Comparison("ordering", f"{title}: {what}", 0, "ms", ours, against, "without", ratio, 2.0, False))
    return found


def _memory(bench: Bench) -> list[Comparison]:
    weighed = (
        ("a worker at rest", idle_memory, AT_REST),
        (f"{JOBS:,} jobs of {PAYLOAD:,} bytes inside user code", busy_memory, WITH_JOBS),
    )
    found = []
    for title, weigh, goal in weighed:
        runs = bench.repeat(title, partial(weigh, bench.server), 1)
        ratio = median(runs) / goal
        found.append(Comparison("memory", title, 1, "MB", runs, [], f"{goal} MB", ratio, 1.0, at_least=False))
    return found

"""Where instances meet: what classes cost a task without one, how close they come to a greedy scheduler, and what an ordering costs."""

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.measure import Run, engine_rate
from benchmarks.noise import NoiseMeter
from benchmarks.server import BenchServer
from mutirao import Change, Flow, FlowBuilder
from mutirao.database.engine import Engine
from mutirao.worker import Worker

JOBS = 1_000
CLASSES = 50
DENSITY = 0.1
OPEN = 10_000

_TIMED = 200
_DURATIONS_MS = (20, 60)


@dataclass(frozen=True)
class Load:
    """Jobs by class and duration, in the order in which they come; and which classes conflict."""

    jobs: Sequence[tuple[int, int]]
    conflicts: Sequence[set[int]]


def make_load(seed: int = 1) -> Load:
    dice = random.Random(seed)  # noqa: S311 made-up work
    conflicts: list[set[int]] = [set() for _ in range(CLASSES)]
    for one in range(CLASSES):
        for other in range(one, CLASSES):
            if dice.random() < DENSITY:
                conflicts[one].add(other)
                conflicts[other].add(one)
    return Load([(dice.randrange(CLASSES), dice.randint(*_DURATIONS_MS)) for _ in range(JOBS)], conflicts)


def classless_rate(server: BenchServer, instances: int, workers: int, *, gated: bool) -> Run:
    """Steps a second of a flow without classes: among classes of others, or where nothing asks for a class at all."""
    url = server.fresh("five", "classless")
    if gated:
        asyncio.run(_put_classes(url, make_load()))
    else:
        with psycopg.connect(url, autocommit=True) as session:
            for trigger in ("gate", "gate_free", "gate_leave", "gate_begin", "gate_change", "gate_end", "gate_left"):
                session.execute(f"drop trigger {trigger} on mutirao.job".encode())
    run = engine_rate(server, "five", instances, workers, url=url)
    server.drop("classless")
    return run


async def _put_classes(url: str, load: Load) -> None:
    async with Engine(url) as engine:
        for n in range(CLASSES):
            await engine.classes.put(f"class_{n}")
        for n, conflicts in enumerate(load.conflicts):
            await engine.classes.put(f"class_{n}", [f"class_{each}" for each in conflicts])


def greedy_seconds(load: Load) -> float:
    """How long a list scheduler takes that knows everything and costs nothing: whoever comes first and may go, goes."""
    waiting, running, now = list(load.jobs), [(0, -1)], 0
    while running:
        now = min(end for end, _ in running)
        running = [(end, each) for end, each in running if end > now]
        left = []
        for job in waiting:
            kind, duration = job
            if any(kind in load.conflicts[each] for _, each in running):
                left.append(job)
            else:
                running.append((now + duration, kind))
        waiting = left
    return now / 1000


def engine_seconds(server: BenchServer, load: Load) -> Run:
    """The same jobs by a worker, from its first claim to the last end."""
    url = server.fresh("five", "meeting")
    meter = NoiseMeter(server.processes)
    seconds = asyncio.run(_work_off(url, load))
    server.drop("meeting")
    return Run(seconds, meter.read())


async def _sleep(state: Any) -> Change:
    await asyncio.sleep(state.ms / 1000)
    return {"done": True}


def _flow() -> type[Flow]:
    builder = FlowBuilder("meeting").attribute("kind", "integer").attribute("ms", "integer")
    builder.attribute("done", "boolean", default=False).final("done")
    for n in range(CLASSES):
        builder.task(f"task_{n}", _sleep, when=f"kind = {n} and not done", task_class=f"class_{n}")
    return builder.build()


async def _work_off(url: str, load: Load) -> float:
    flow = _flow()
    await _put_classes(url, load)
    async with Engine(url) as engine:
        await engine.apply(flow)
        await engine.start_named("meeting", [{"kind": kind, "ms": ms} for kind, ms in load.jobs])
        worker = Worker(engine, [flow])
        began = time.perf_counter()
        running = asyncio.create_task(worker.run())
        while any(each.open for each in await engine.flows("meeting")):  # noqa: ASYNC110 nothing else tells
            await asyncio.sleep(0.005)
        seconds = time.perf_counter() - began
        worker.stop()
        await running
        return seconds


# The order of two flows

_FLOWS = ("delivery", "stocktaking")


def order_costs(server: BenchServer, *, ordered: bool, say: Callable[[str], None]) -> tuple[Run, Run]:
    """Milliseconds of a start and of a finish, among so many open instances of each flow."""
    url = server.fresh("five", "ordering")
    say(f"starting {OPEN:,} and {OPEN:,} instances")
    asyncio.run(_meet(url, ordered=ordered))
    server.checkpoint()
    meter = NoiseMeter(server.processes)
    with psycopg.connect(url, autocommit=True) as session:
        starts = [_timed(session, "select mutirao.start('delivery', '{}')") for _ in range(_TIMED)]
        [[task]] = session.execute("select id from mutirao.task_ids('delivery', '{load}')").fetchall()
        jobs = session.execute("select job, attempt from mutirao.claim('bench', array[%s], %s)", [task, _TIMED])
        ends = [_timed(session, "select mutirao.complete(%s, %s, '{}')", *job) for job in jobs.fetchall()]
    noise = meter.read()
    server.drop("ordering")
    return Run(statistics.median(starts), noise), Run(statistics.median(ends), noise)


def _timed(session: psycopg.Connection[Any], statement: str, *values: Any) -> float:
    began = time.perf_counter()
    session.execute(statement.encode(), values)
    return (time.perf_counter() - began) * 1000


async def _meet(url: str, *, ordered: bool) -> None:
    async with Engine(url) as engine:
        for name in _FLOWS:
            builder = FlowBuilder(name).attribute("n", "integer", default=0)
            builder.task("load", when="true", fires="once").task("unload", depends="load")
            await engine.apply(builder.build())
        if ordered:
            document = {"first": _FLOWS[0], "second": _FLOWS[1], "pairs": [["load", "load"], ["unload", "unload"]]}
            async with engine.connection() as connection:
                await connection.execute("select mutirao.put_ordering(%s)", [Jsonb(document)])
        for name in _FLOWS:
            for _ in range(OPEN // 1_000):
                await engine.start_named(name, [{}] * 1_000)
        async with engine.connection() as connection:
            while (
                await (await connection.execute("select done ->> 'gates' from mutirao.turn_clock()")).fetchone()
            ) != ("0",):
                pass

"""A live flow is given an attribute and a trigger while a worker is at full load: how deep the dent is, and how long.

Throughput goes up and down by itself, too. So the same is measured where nothing is changed, and set against it.
"""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

import psycopg

from benchmarks.history import make_live_history
from benchmarks.measure import Run, one, working
from benchmarks.noise import NoiseMeter
from benchmarks.server import BenchServer
from mutirao.database.engine import Engine

OPEN = 100_000
_STEADY_AFTER = 3.0
_BEFORE = 4.0
_AFTER = 8.0

CHANGES = (
    "insert into live.wed_attr (aname, adv) values (%s, 'new')",
    "insert into live.wed_trig (trname, cpred) values (%s, 'k = 1000')",
)


def under_load(server: BenchServer, finished: int, say: Callable[[str], None], changes: Sequence[str] = CHANGES) -> Run:
    """Steps in the worst second after the changes, as a part of those in a usual second before them."""
    url = make_live_history(server, finished, say)
    say("starting open instances")
    since = asyncio.run(_start(url))
    server.checkpoint()
    meter = NoiseMeter(server.processes)
    with working(url, "live", 1), psycopg.connect(url, autocommit=True) as person:
        say("changing the flow under load")
        time.sleep(_STEADY_AFTER + _BEFORE)
        changed_at = one(person, "select mutirao.now()")
        longest = max((_time_of(person, statement) for statement in changes), default=0.0)
        time.sleep(_AFTER)
        noise = meter.read()
        tenths = _finished_by_tenth(person, since, changed_at)
    server.drop("change")
    before = statistics.median(_seconds(tenths, -_BEFORE, 0))
    return Run(
        min(_seconds(tenths, 0, _AFTER - 1)) / before,
        noise,
        {
            "steps_a_second_before": before,
            "after_one_second": statistics.mean(_seconds(tenths, 1, _AFTER - 1)) / before,
            "worst_before": min(_seconds(tenths, -_BEFORE, 0)) / before,
            "longest_statement_ms": longest * 1000,
        },
    )


async def _start(url: str) -> int:
    async with Engine(url) as engine:
        return min(await engine.start_named("live", ({"inst": n} for n in range(OPEN))))


def _time_of(person: psycopg.Connection[tuple[object, ...]], statement: str) -> float:
    began = time.perf_counter()
    person.execute(statement.encode(), ["addition"])
    return time.perf_counter() - began


def _finished_by_tenth(person: psycopg.Connection[tuple[object, ...]], since: int, at: datetime) -> Counter[int]:
    found = person.execute(
        "select floor(extract(epoch from at - %s) * 10)::int, count(*) from mutirao.trace "
        "where kind = 'finish' and instance >= %s group by 1",
        [at, since],
    )
    return Counter({int(str(tenth)): int(str(count)) for tenth, count in found})


def _seconds(tenths: Counter[int], first: float, last: float) -> Sequence[int]:
    """The steps in each second that begins at a tenth of one from `first` and ends by `last`."""
    return [sum(tenths[begin + n] for n in range(10)) for begin in range(int(first * 10), int(last * 10) - 9)]

"""Conditions grow: all of them in one flow, or ten a flow in many flows that are worked on together."""

import asyncio
import time
from collections.abc import Callable

from benchmarks.growth.curve import Curve, Sample, sample
from benchmarks.growth.size import Size
from benchmarks.measure import engine_latency, engine_rate
from benchmarks.server import BenchServer
from benchmarks.work import WORKS
from mutirao.database.engine import Engine

_IN_HAND = 400  # as many jobs as a worker has at once, unless it is told otherwise


def curves(server: BenchServer, size: Size, say: Callable[[str], None]) -> list[Curve]:
    applied: dict[int, float] = {}

    def apply_all() -> None:
        for count in size.conditions:
            say(f"applying a flow of {count:,} conditions")
            applied[count] = _seconds_to_apply(server, f"one_flow_{count}")

    def in_one_flow(count: int) -> Sample:
        work = f"one_flow_{count}"
        rate = engine_rate(server, work, size.worked, 1)
        return sample(rate, engine_latency(server, work, rounds=size.rounds), apply_seconds=applied[count])

    def spread(count: int) -> Sample:
        return sample(engine_rate(server, f"spread_{count}", min(_IN_HAND, size.worked), 1))

    return [
        Curve("conditions", "conditions in one flow", "conditions", size.conditions, in_one_flow, prepare=apply_all),
        Curve("spread", "conditions, ten a flow, all flows in each batch", "conditions", size.conditions, spread),
    ]


def _seconds_to_apply(server: BenchServer, work: str) -> float:
    return asyncio.run(_apply(server.fresh("five"), work))


async def _apply(url: str, work: str) -> float:
    async with Engine(url) as engine:
        began = time.perf_counter()
        for flow in WORKS[work].flows:
            await engine.apply(flow)
        return time.perf_counter() - began

"""PostgreSQL is killed under load: nothing acknowledged is lost, no job ends twice, and workers come back by themselves."""

import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from signal import SIGKILL, SIGQUIT, SIGTERM, Signals

import pytest
from worker_flows import Order
from worker_process import make_payments, nothing_was_done_twice, worker_process
from worker_stage import Stage, stage_on, until

from mutirao.database.embedded import EmbeddedServer
from mutirao.database.engine import Engine

ORDERS = 100
WORKERS = 3
IMMEDIATELY = SIGQUIT


@pytest.fixture
def server(place: Path) -> Iterator[EmbeddedServer]:
    """With all its safety: what it has acknowledged is on the disk."""
    with EmbeddedServer(place / "home") as server:
        server.ensure_database("mutirao")
        yield server


def kill(server: EmbeddedServer, how: Signals) -> None:
    """Kill it, and start it again: whoever enters the server of a folder brings it up."""
    os.kill(int((server.data / "postmaster.pid").read_text().split()[0]), how)
    with EmbeddedServer(server.home):
        pass


async def finished(stage: Stage) -> int:
    [(count,)] = await stage.rows("select count(*) from mutirao.trace where kind = 'finish'")
    return int(count)


@pytest.mark.timeout(300)
async def test_server_killed_under_load(server: EmbeddedServer) -> None:
    async with Engine(server.url()):
        pass  # the schema
    async with AsyncExitStack() as company:
        names = [f"worker {number}" for number in range(WORKERS)]
        async with stage_on(server.url()) as stage:
            await make_payments(stage)
            await stage.engine.apply(Order)
            await stage.engine.start_many([Order() for _ in range(ORDERS)])
        workers = [
            await company.enter_async_context(worker_process(server.url(), name=name, lease=2)) for name in names
        ]
        for worker in workers:
            await worker.says("ready")
        started = ORDERS
        for how in (IMMEDIATELY, SIGKILL, IMMEDIATELY, SIGKILL):
            async with stage_on(server.url()) as stage:
                before = await finished(stage)
                await stage.engine.start_many([Order() for _ in range(ORDERS)])
                started += ORDERS
                await until(partial(has_finished, stage, before + 20))
            kill(server, how)
        async with stage_on(server.url()) as stage:
            await stage.all_close("order", started)
            assert await finished(stage) == started * 3
            assert await nothing_was_done_twice(stage)
            assert await stage.rows("select count(distinct instance) from payment") == [(started,)]
            assert not await stage.rows("select from mutirao.job")
        assert all(worker.is_alive for worker in workers)
        for worker in workers:
            worker.signal(SIGTERM)
        assert [await worker.ends() for worker in workers] == [0] * WORKERS


async def has_finished(stage: Stage, count: int) -> bool:
    return await finished(stage) >= count

"""PostgreSQL is killed under load: nothing acknowledged is lost, no job ends twice, and workers come back by themselves."""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from signal import SIGKILL, SIGQUIT, SIGTERM, Signals
from typing import TypeVar

import pytest
from worker_flows import Order
from worker_process import make_payments, nothing_was_done_twice, worker_process
from worker_stage import Stage, stage_on, until

from mutirao.database.embedded import EmbeddedServer
from mutirao.database.engine import Engine
from mutirao.errors import OperatorError

ORDERS = 100
WORKERS = 3
IMMEDIATELY = SIGQUIT

T = TypeVar("T")


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
    async with Engine(server.url(), upgrade=True):
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


async def test_worker_starts_its_own_server_again(place: Path) -> None:
    """Nobody else is there to do it: the embedded server is ours."""
    home = place / "own"
    async with Engine(f"embedded:mutirao?home={home}") as engine:
        await engine.apply(Order)
        stage = Stage(engine)
        await make_payments(stage)
        async with stage.working(Order):
            killed = _postmaster(home)
            os.kill(killed, SIGKILL)
            await until(partial(_another, home, killed))
            number = await until(partial(_patiently, lambda: engine.start(Order())))
            await until(partial(_patiently, lambda: _has_closed(engine, number)))


def _postmaster(home: Path) -> int:
    return int((home / "data" / "postmaster.pid").read_text().split()[0])


async def _another(home: Path, than: int) -> bool | None:
    return ((home / "data" / "postmaster.pid").exists() and _postmaster(home) != than) or None


async def _has_closed(engine: Engine, number: int) -> bool | None:
    return (await engine.instance(number)).status == "closed.completed" or None


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T | None:
    """The server may still be starting, and a connection may be one to the server that was killed."""
    try:
        return await ask()
    except OperatorError:
        return None

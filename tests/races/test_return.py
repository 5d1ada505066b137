"""A server that was away is found again soon after it is back, however long it was away."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from signal import SIGQUIT

import pytest
from conftest import SERVERS

from mutirao.database.embedded import EmbeddedServer
from mutirao.database.engine import Engine
from mutirao.errors import MutiraoError

AWAY = 18.0
FOUND_WITHIN = 5.0


@pytest.fixture
def server(request: pytest.FixtureRequest, place: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(place / "home", programs=SERVERS[request.param], settings={"fsync": "off"}) as server:
        server.ensure_database("mutirao")
        yield server


async def call_refused(engine: Engine) -> None:
    with pytest.raises(MutiraoError):
        await engine.ping()


async def test_engine_is_ready_soon_after_its_server_was_away_for_long(server: EmbeddedServer) -> None:
    async with Engine(server.url(), upgrade=True, patience=1.0) as engine:
        os.kill(int((server.data / "postmaster.pid").read_text().split()[0]), SIGQUIT)
        back_at = asyncio.get_running_loop().time() + AWAY
        while asyncio.get_running_loop().time() < back_at:
            await call_refused(engine)
        await asyncio.to_thread(server.revive)
        async with asyncio.timeout(FOUND_WITHIN):
            while not await answers(engine):
                pass


async def test_who_waits_for_a_connection_has_it_soon_after_the_server_is_back(server: EmbeddedServer) -> None:
    """Nobody else asks meanwhile, and the pool has given up once."""
    async with Engine(server.url(), upgrade=True) as engine:
        os.kill(int((server.data / "postmaster.pid").read_text().split()[0]), SIGQUIT)
        await call_refused(engine)  # the connection that was there
        waiting = asyncio.create_task(engine.ping())
        await asyncio.sleep(AWAY)
        assert not waiting.done()
        await asyncio.to_thread(server.revive)
        async with asyncio.timeout(FOUND_WITHIN):
            await waiting


async def answers(engine: Engine) -> bool:
    try:
        await engine.ping()
    except MutiraoError:
        return False
    return True

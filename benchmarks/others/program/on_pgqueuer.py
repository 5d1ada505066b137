"""Five chained jobs of pgqueuer, each enqueuing the next. Runs in an environment of its own, where pgqueuer is installed.

With uvloop and asyncpg, as pgqueuer recommends; a worker takes a hundred jobs at a time.
"""

import json
import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries
from turn import WARM_UP, main, wait_for_go

_BATCH = 100


def prepare(url: str, _number: int) -> None:
    async def install() -> None:
        await Queries(AsyncpgDriver(await asyncpg.connect(url))).install()

    uvloop.run(install())


def submit(url: str, number: int) -> None:
    async def enqueue() -> None:
        queries = Queries(AsyncpgDriver(await asyncpg.connect(url)))
        await queries.enqueue(["step_0"] * number, [str(each).encode() for each in range(number)], [0] * number)

    uvloop.run(enqueue())


def work(url: str, _number: int) -> None:
    wait_for_go()
    uvloop.run(_work(url))


async def _work(url: str) -> None:
    async with asyncpg.create_pool(url, min_size=10, max_size=10) as pool:
        app = PgQueuer(AsyncpgPoolDriver(pool))
        queries = Queries(AsyncpgPoolDriver(pool))
        for k in range(5):

            @app.entrypoint(f"step_{k}")
            async def step(job, k=k):
                if k < 4:
                    await queries.enqueue(f"step_{k + 1}", job.payload)

        await app.run(batch_size=_BATCH)


def latency(url: str, rounds: int) -> None:
    uvloop.run(_latency(url, rounds))


async def _latency(url: str, rounds: int) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(url)))
    probe = await asyncpg.connect(url)
    times = []
    for number in range(rounds + WARM_UP):
        began = time.perf_counter()
        await queries.enqueue("step_0", str(number).encode())
        while await probe.fetchval("select exists (select from pgqueuer)"):
            pass
        times.append((time.perf_counter() - began) * 1000)
    print(json.dumps(times[WARM_UP:]))


if __name__ == "__main__":
    main(prepare=prepare, submit=submit, work=work, latency=latency)

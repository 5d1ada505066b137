"""A whole engine for a test: thrown away afterwards, with a clock to move, and run until it is quiet.

    async with throwaway_engine() as engine:
        await engine.apply(Travel)
        trip = await engine.start(Travel(stage="requested"))
        await run_until_quiet(engine, [Travel])
        assert (await engine.instance(trip)).status == "closed.completed"

Nothing is simulated: it is PostgreSQL, and the worker is the one that runs in production.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from mutirao.database.engine import Engine
from mutirao.database.record import JobRecord
from mutirao.database.sql import query
from mutirao.errors import RequestError
from mutirao.testing.clock import advance
from mutirao.testing.database import throwaway_database
from mutirao.worker import Worker, WorkerOptions

_SHOWN = 10
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.1


@asynccontextmanager
async def throwaway_engine() -> AsyncIterator[Engine]:
    """An engine on a database of its own, up to date and empty; gone when you leave. It takes a fraction of a second.

    The very first one on a machine takes some seconds, since the server and the template are made then. To have it
    quick for each test of many, keep `mutirao.testing.database.throwaway_server()` entered for the whole session.
    """
    async with throwaway_database() as url, Engine(url, upgrade=False, name="test") as engine:
        yield engine


async def move_clock(engine: Engine, by: timedelta) -> None:
    """Move the engine's time forward: retries, leases and deadlines that fall due by it are dealt with at once.

    The time of Python programs stays. So a worker still has its jobs inside user code, and may have lost their leases.
    """
    async with engine.connection() as connection:
        await advance(connection, by)
        # Clocks wait by real time for what they knew before: this makes them look.
        await connection.execute(query("call_clock"))


async def run_until_quiet(
    engine: Engine,
    flows: Sequence[object],
    *,
    through_retries: bool = False,
    patience: timedelta = timedelta(seconds=20),
    options: WorkerOptions | None = None,
) -> None:
    """Run a worker for these flows, here in the test, until nothing is ready or running, and nothing is due.

    A job that waits for another try leaves the engine quiet; with `through_retries` the clock is moved to it instead,
    as often as it takes. `flows` are what a `Worker` takes. When it is not quiet within `patience`, `not_quiet` is raised
    and tells what is left.
    """
    worker = Worker(engine, flows, options or WorkerOptions(name="run_until_quiet"))
    working = asyncio.create_task(worker.run())
    watching = asyncio.create_task(_watch(engine, worker, through_retries))
    try:
        await asyncio.wait([working, watching], timeout=patience.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        if not watching.done():
            raise RequestError("not_quiet", await _account(engine, worker, patience))
        watching.result()
    finally:
        watching.cancel()
        worker.stop()
        worker.stop()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _watch(engine: Engine, worker: Worker, through_retries: bool) -> None:
    """Returns when the engine is quiet, and the worker's flows are in place."""
    await worker.ready.wait()
    pause = _SHORTEST_PAUSE
    while True:
        is_restless, due_in = await _unrest(engine)
        if not is_restless and due_in is not None and through_retries:
            await move_clock(engine, timedelta(seconds=due_in))
            pause = _SHORTEST_PAUSE
        elif not is_restless:
            return
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


async def _unrest(engine: Engine) -> tuple[bool, float | None]:
    async with engine.connection() as connection:
        row = await (await connection.execute(query("unrest"))).fetchone()
    return row or (False, None)


async def _account(engine: Engine, worker: Worker, patience: timedelta) -> str:
    done = f"{worker.done:,} attempts went well and {worker.failed:,} failed"
    jobs = [
        job for job in await engine.jobs() if job.status in ("ready", "running", "waiting") and job.task != "_EXCPT"
    ]
    told = [_described(job, worker) for job in jobs[:_SHOWN]]
    if len(jobs) > _SHOWN:
        left = sum(each.ready + each.running + each.waiting for each in await engine.backlog())
        told.append(f"and so on: {left:,} jobs in all")
    return "\n  ".join([f"not quiet after {patience.total_seconds():g} s, in which {done}; what is left:", *told])


def _described(job: JobRecord, worker: Worker) -> str:
    text = f"job {job.id} of instance {job.instance}, task {job.task} of flow {job.flow}: {job.status}"
    if job.status == "running":
        text += f" at {job.worker}"
    elif job.status == "ready" and not worker.does(job.flow, job.task):
        text += ", and none of the flows given has a function for it"
    if job.failures:
        text += f", failed {job.failures} times, last: {(job.error or {}).get('error')}"
    return text

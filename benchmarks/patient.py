"""A worker whose jobs all wait: `python -m benchmarks.patient URL JOBS`. A program of its own, to be weighed alone."""

import asyncio
import signal
import sys

from mutirao import Change, Engine, Flow, Worker, WorkerOptions, task

_NEVER = asyncio.Event()


class Patient(Flow):
    letter: str
    done: bool = False
    final = "done"

    @task(when="not done")
    async def wait(self) -> Change:
        await _NEVER.wait()
        return {"done": True}


async def main(url: str, jobs: int) -> None:
    async with Engine(url) as engine:
        worker = Worker(engine, [Patient], WorkerOptions(concurrency=jobs))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))

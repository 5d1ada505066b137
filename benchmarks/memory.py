"""What a worker weighs: at rest, and with ten thousand jobs inside user code. Resident memory at its peak, in MB."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benchmarks.measure import BrokenRunError, Run
from benchmarks.patient import Patient
from benchmarks.server import BenchServer
from mutirao.database.engine import Engine

JOBS = 10_000
PAYLOAD = 1_000
# At rest for as long as it takes to look for work a few times.
_REST_SECONDS = 12.0
_LOOK_EVERY = 0.1
_PATIENCE = 120.0

_LISTENS = "select exists (select from pg_stat_activity where datname = current_database() and application_name like '%% listens')"
_RUNNING = "select count(*) = %s from mutirao.job where status = 'running'"


def idle_memory(server: BenchServer) -> Run:
    with _worker(server) as (process, _):
        time.sleep(_REST_SECONDS)
        return _weighed(process)


def busy_memory(server: BenchServer) -> Run:
    with _worker(server) as (process, url):
        asyncio.run(_start(url))
        _wait_until(url, process, _RUNNING, JOBS)
        return _weighed(process)


@contextmanager
def _worker(server: BenchServer) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    url = server.fresh("five", "memory")
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.patient", url, str(JOBS)])  # noqa: S603 ourselves
    try:
        _wait_until(url, process, _LISTENS)
        yield process, url
    finally:
        process.kill()
        process.wait()
        server.drop("memory")


async def _start(url: str) -> None:
    async with Engine(url) as engine:
        await engine.start_many(Patient(letter=f"{number:0{PAYLOAD}}") for number in range(JOBS))


def _wait_until(url: str, process: "subprocess.Popen[bytes]", question: str, *values: object) -> None:
    deadline = time.monotonic() + _PATIENCE
    with psycopg.connect(url, autocommit=True) as probe:
        while (probe.execute(question.encode(), values).fetchone() or (False,))[0] is not True:
            if process.poll() is not None or time.monotonic() > deadline:
                raise BrokenRunError("the worker ended, or did not take up its jobs")
            time.sleep(_LOOK_EVERY)


def _weighed(process: "subprocess.Popen[bytes]") -> Run:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    peak, now = (int(lines[name].split()[0]) * 1024 / 1e6 for name in ("VmHWM", "VmRSS"))
    return Run(peak, None, {"now": now})

"""A worker in a process of its own, which can be told when to kill itself.

    worker_child.py URL '{"name": "ann", "lease": 60, "gate": null, "crash": ["turn", 2, "before"]}'

It says `ready`, and works until SIGTERM, to which it says `stopping`. `crash` names a query of sql/queries, which call of it is meant, and whether the
process kills itself before it is sent or after its answer was read; `"finished"` instead of a query means the moment
when a transaction has been committed and nobody here knows yet.
"""

import asyncio
import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
from worker_flows import Gate, Order, Tour, Waiting, say

from mutirao.database.engine import Engine
from mutirao.database.protocol import Line
from mutirao.database.sql import query
from mutirao.worker import Worker, WorkerOptions
from mutirao.worker.transaction import Transactions


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    def __init__(self, name: str, number: int, moment: str) -> None:
        self.name = name
        self.moment = moment
        self._left = number

    def dies(self, name: str, moment: str) -> None:
        if (name, moment) != (self.name, self.moment):
            return
        self._left -= 1
        if self._left == 0:
            die()


def prepare_to_die(crash: Countdown) -> None:
    call, execute, run = Line._call, psycopg.AsyncConnection.execute, Transactions._attempt  # noqa: SLF001

    async def call_and_die(line: Line, name: str, *given: Any) -> Any:
        crash.dies(name, "before")
        answer = await call(line, name, *given)
        crash.dies(name, "after")
        return answer

    async def execute_and_die(connection: Any, text: Any, *given: Any, **named: Any) -> Any:
        name = "complete_here" if text == query("complete_here") else ""
        crash.dies(name, "before")
        answer = await execute(connection, text, *given, **named)
        crash.dies(name, "after")
        return answer

    async def run_and_die(transactions: Transactions, *given: Any) -> Any:
        outcome = await run(transactions, *given)
        crash.dies("finished", "after")
        return outcome

    patch.object(Line, "_call", call_and_die).start()
    patch.object(psycopg.AsyncConnection, "execute", execute_and_die).start()
    patch.object(Transactions, "_attempt", run_and_die).start()


def stop(worker: Worker) -> None:
    worker.stop()
    say("stopping")


async def main(url: str, told: dict[str, Any]) -> None:
    if told.get("crash"):
        prepare_to_die(Countdown(*told["crash"]))
    Gate.file = Path(told["gate"]) if told.get("gate") else None
    options = WorkerOptions(
        told["name"],
        concurrency=told.get("concurrency", 400),
        threads=told.get("threads", 16),
        lease=timedelta(seconds=told.get("lease", 60)),
        clock=told.get("clock", True),
        applications=told.get("applications", False),
    )
    async with Engine(url, upgrade=False, name=told["name"]) as engine:
        worker = Worker(engine, [Order, Tour, Waiting], options)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop, worker)
        working = asyncio.create_task(worker.run())
        ready = asyncio.create_task(worker.ready.wait())
        await asyncio.wait([working, ready], return_when=asyncio.FIRST_COMPLETED)
        say("ready")
        await working
        ready.cancel()


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))

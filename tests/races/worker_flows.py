"""What the workers of these tests do, in the tests' own process and in others."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from mutirao import Change, Failed, Flow, Job, task


class Gate:
    """Where user code waits until a file exists. Only other processes have one."""

    file: Path | None = None

    @classmethod
    async def pass_through(cls) -> None:
        if cls.file is not None:
            say("reached")
            while not cls.file.exists():  # noqa: ASYNC110 another process makes it
                await asyncio.sleep(0.01)

    @classmethod
    def block(cls) -> None:
        """The same for a blocking function. The file is a named pipe here: reading ends when somebody has written."""
        if cls.file is not None:
            say("reached")
            cls.file.read_bytes()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Order(Flow):
    """Two steps, with a payment between them that is made in the job's own transaction."""

    step: int = 0
    final = "step = 3"

    @task(when="step = 0")
    async def take(self) -> Change:
        return {"step": 1}

    @task(when="step = 1", transactional=True)
    async def pay(self, job: Job, connection: AsyncConnection[Any]) -> Change:
        await connection.execute("insert into payment values (%s, %s)", [job.instance_id, job.id])
        return {"step": 2}

    @task(when="step = 2")
    def send(self) -> Change:
        return {"step": 3}


class Waiting(Flow):
    """Waits at the gate, in one of three ways."""

    kind: str = "async"
    by: str | None = None
    final = "by is not null"

    @task(when="by is null and kind = 'async'")
    async def on_the_loop(self) -> Change:
        await Gate.pass_through()
        return {"by": "somebody"}

    @task(when="by is null and kind = 'blocking'")
    def in_a_thread(self) -> Change:
        Gate.block()
        return {"by": "somebody"}

    @task(when="by is null and kind = 'transactional'", transactional=True)
    async def in_a_transaction(self, job: Job, connection: AsyncConnection[Any]) -> Change:
        await connection.execute("insert into payment values (%s, %s)", [job.instance_id, job.id])
        await Gate.pass_through()
        return {"by": "somebody"}


class Tour(Flow):
    """Is rolled back after three steps; every step that is undone leaves a row, in the transaction that undoes it."""

    step: int = 0
    final = "step = 9"

    @task(stands_by=True, transactional=True)
    async def undo_book(self, job: Job, connection: AsyncConnection[Any]) -> Change:
        await connection.execute("insert into payment values (%s, %s)", [job.instance_id, job.id])
        return {"step": self.step - 1}

    @task(stands_by=True)
    async def undo_pack(self) -> Change:
        return {"step": self.step - 1}

    @task(when="step = 0", fires="once", compensation=undo_book)
    async def book(self) -> Change:
        return {"step": 1}

    @task(depends=book, compensation=undo_pack)
    async def pack(self) -> Change:
        return {"step": 2}

    @task(depends=pack, on_failure="roll_back", retries=0)
    async def leave(self) -> Change:
        raise Failed("it rains")

"""A flow at full load: instances are started, worked, read and looked after, each by a session that waits for nobody."""

import asyncio
from collections.abc import Sequence
from typing import Any

from driver import Engine
from probe import run
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

WAITS = "-c lock_timeout=200ms"  # whoever stands before a lock for longer gets an error
NEXT = {"one": "y", "two": "z", "three": "done", "more": "x"}
GIVE = "select kind, job from mutirao.turn(%s, %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], '{}', 0)"


class Load:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.started = 0
        self.over = asyncio.Event()

    async def run(self, changes: Sequence[str]) -> None:
        """Work, and change the definition meanwhile."""
        tasks = {"one": "a = 'x'", "two": "a = 'y'", "three": "a = 'z'"}
        await self.engine.create("f", {"a": "x", "n": "0"}, tasks, final="a = 'done'")
        async with asyncio.TaskGroup() as group:
            for part in (self.start, self.work, self.work, self.read, self.keep_time):
                group.create_task(self.repeat(part))
            group.create_task(self.define(changes))

    async def repeat(self, part: Any) -> None:
        async with await AsyncConnection.connect(self.engine.url, autocommit=True, options=WAITS) as mine:
            while not self.over.is_set():
                await part(mine)

    async def define(self, changes: Sequence[str]) -> None:
        async with await AsyncConnection.connect(self.engine.url, autocommit=True, options=WAITS) as mine:
            for change in changes:
                await run(mine, change)
        self.over.set()

    async def start(self, mine: AsyncConnection[Any]) -> None:
        await run(mine, "select mutirao.start('f')")
        self.started += 1

    async def read(self, mine: AsyncConnection[Any]) -> None:
        await run(mine, "select count(*) from f.wed_flow")

    async def keep_time(self, mine: AsyncConnection[Any]) -> None:
        for duty in ("versions", "views"):
            await run(mine, "select * from mutirao.turn_clock(500, %s)", duty)

    async def work(self, mine: AsyncConnection[Any]) -> None:
        names = dict(await run(mine, "select id, name from mutirao.task_ids('f')"))
        jobs = await run(mine, "select job, attempt, task from mutirao.claim('w', %s::int[], 20)", [*names])
        while jobs:
            changes = [Jsonb({"a": NEXT[names[task]]}) for *_, task in jobs]
            told = await run(
                mine, GIVE, "w", [j for j, *_ in jobs], [a for _, a, _ in jobs], changes, [None] * len(jobs)
            )
            assert {kind for kind, _ in told} <= {"busy", "parked"}
            busy = {job for kind, job in told if kind == "busy"}
            jobs = [job for job in jobs if job[0] in busy]

    async def finish(self) -> None:
        """Do what is left, step by step."""
        async with await AsyncConnection.connect(self.engine.url, autocommit=True) as mine:
            while await run(mine, "select from mutirao.job where status = 'ready' limit 1"):
                await self.work(mine)

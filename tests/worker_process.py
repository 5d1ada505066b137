"""Workers in processes of their own: tests/races/worker_child.py, started, stopped and killed."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from worker_stage import DEADLINE, Stage

CHILD = Path(__file__).parent / "races/worker_child.py"

# Every job that is done ends once, whoever did it.
_TWICE = "select job from mutirao.trace where kind = 'finish' group by job having count(*) > 1"
_PAID = "select instance, count(*) from payment group by 1 having count(*) > 1"


class Process:
    """A worker of its own; `says` waits for a line of its output."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def says(self, line: str) -> None:
        assert self._process.stdout is not None
        async with asyncio.timeout(DEADLINE):
            while (said := await self._process.stdout.readline()).decode().strip() != line:
                assert said, f"it ended without saying {line}"

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def is_told_to_stop(self) -> None:
        self.signal(signal.SIGTERM)
        await self.says("stopping")

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ends(self) -> int:
        """Its exit code, once it has ended by itself."""
        return await asyncio.wait_for(self._process.wait(), DEADLINE)


@asynccontextmanager
async def worker_process(url: str, **told: Any) -> AsyncIterator[Process]:
    told = {"name": "child", **told}
    process = await asyncio.create_subprocess_exec(
        sys.executable, CHILD, url, json.dumps(told), stdout=asyncio.subprocess.PIPE
    )
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
            process.send_signal(signal.SIGCONT)
        await process.communicate()


async def make_payments(stage: Stage) -> None:
    await stage.do("create table payment (instance bigint, job bigint)")


async def nothing_was_done_twice(stage: Stage) -> bool:
    return not await stage.rows(_TWICE) and not await stage.rows(_PAID)

"""One command's visit to the engine: open it, act, leave."""

import asyncio
import getpass
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from typing import Any, TypeVar

from mutirao.cli.output import progress
from mutirao.database.address import resolve
from mutirao.database.engine import Engine

INTERRUPTED = 130

Result = TypeVar("Result")


class StoppedAtOnce(Exception):
    """Somebody insisted: everything is given back, and the process ends here and now."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def visit(database: str | None, action: Callable[[Engine], Awaitable[Result]], *, must_exist: bool = False) -> Result:
    """Open the engine for one action. One that makes no sense in a new database says `must_exist`."""

    async def act() -> Result:
        async with open_engine(database, must_exist=must_exist) as engine:
            return await action(engine)

    return run(act())


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end. Ctrl-C leaves quietly, with the exit code that shells expect."""
    try:
        return asyncio.run(coroutine)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except StoppedAtOnce as stopped:
        # Python would wait for the threads in which users' functions still run.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(stopped.code)


@asynccontextmanager
async def open_engine(
    database: str | None, name: str | None = None, *, must_exist: bool = False, patience: float = 30.0
) -> AsyncIterator[Engine]:
    """The embedded server is ours to upgrade. A real one is upgraded when its operator says so."""
    address = resolve(database, must_exist=must_exist)
    engine = Engine(database, name=name or writer(), patience=patience)
    with ExitStack() as held:
        with progress.status("Opening the embedded PostgreSQL …" if address.is_embedded else "Connecting …"):
            if must_exist:
                held.enter_context(address)  # first: the engine would make it
            await engine.__aenter__()
        try:
            yield engine
        finally:
            await engine.__aexit__(None, None, None)


def writer() -> str:
    """Who the trace says it was."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid {os.getuid()}"

"""`mutirao clock`: keeps time for a database. Workers do so too, unless told not to; any number share the work."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

import typer

from mutirao.cli.arguments import Databases
from mutirao.cli.output import console
from mutirao.cli.service import log_to_console, run_service, serve
from mutirao.cli.session import open_engine
from mutirao.worker import Clock

app = typer.Typer(add_completion=False)


@app.command()
def clock(database: Databases = None) -> None:
    """Keep time until SIGTERM or Ctrl-C: due retries, ended leases, timeouts.

    Example: mutirao clock --database postgresql://mutirao@db.example.org/mutirao
    """
    log_to_console()
    run_service(_keep_time(database or [None]))


async def _keep_time(databases: Sequence[str | None]) -> None:
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(open_engine(each)) for each in databases]
        for engine in engines:
            console.print(f"The clock is ready; {engine}", highlight=False, soft_wrap=True)
        await serve([Clock(engine) for engine in engines])
    console.print("Stopped.", highlight=False)

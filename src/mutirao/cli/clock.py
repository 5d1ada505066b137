"""`mutirao clock`: keeps time for a database. Workers do so too, unless told not to; any number share the work."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

import typer

from mutirao.cli.arguments import Databases
from mutirao.cli.logs import set_up_logs
from mutirao.cli.observe import (
    CLOCK_SILENCE,
    LogFormatOption,
    LogLevelOption,
    MetricsAddress,
    MetricsPort,
    Wanted,
    observing,
)
from mutirao.cli.service import run_service, serve
from mutirao.cli.session import open_engine
from mutirao.worker import Clock

app = typer.Typer(add_completion=False)


@app.command()
def clock(
    database: Databases = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    metrics_port: MetricsPort = None,
    metrics_address: MetricsAddress = "127.0.0.1",
) -> None:
    """Keep time until SIGTERM or Ctrl-C: due retries, ended leases, timeouts.

    Example: mutirao clock --database postgresql://mutirao@db.example.org/mutirao
    """
    set_up_logs(log_format, log_level)
    run_service(
        _keep_time(
            database or [None], Wanted(metrics_port, metrics_address, silence=CLOCK_SILENCE, log_format=log_format)
        )
    )


async def _keep_time(databases: Sequence[str | None], wanted: Wanted) -> None:
    async with AsyncExitStack() as stack:
        observers = stack.enter_context(observing(wanted))
        engines = [await stack.enter_async_context(open_engine(each)) for each in databases]
        for engine in engines:
            wanted.say(f"The clock is ready; {engine}")
            for observer in observers:
                observer.watch(engine)
        await serve([Clock(engine, observers) for engine in engines], wanted.say)
    wanted.say("Stopped.")

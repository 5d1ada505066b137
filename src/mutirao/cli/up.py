"""`mutirao up`: everything in one process, and something to see."""

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Annotated, Any

import typer

from mutirao.cli.board import Board
from mutirao.cli.example import TravelExample, Travellers
from mutirao.cli.options import Database
from mutirao.cli.output import console, progress
from mutirao.cli.service import Service, log_nothing, run_service, serve
from mutirao.cli.session import writer
from mutirao.cli.tally import Tally
from mutirao.cli.watch import Watch
from mutirao.cli.worker import load_work
from mutirao.database.address import Address, resolve
from mutirao.database.connection import connect
from mutirao.database.engine import Engine
from mutirao.database.migrate import schema, upgrade
from mutirao.language import Loaded
from mutirao.worker import Clock, Worker, WorkerOptions

app = typer.Typer(add_completion=False)

EXAMPLE = Loaded((TravelExample,), tuple(TravelExample.handlers.values()))

_HINTS = ("mutirao instance list", "mutirao instance trace {last}", "mutirao db shell")
_EXAMPLE_HINTS = (*_HINTS, "mutirao instance repair {stuck} destination=Lisbon")


@app.command()
def up(
    flows: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODULE:FLOW", help="Flows to run. Without: an example that moves by itself."),
    ] = None,
    database: Database = None,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0, metavar="SECONDS", help="End after this. Default: at Ctrl-C.")
    ] = None,
) -> None:
    """Run everything here until Ctrl-C: PostgreSQL, a worker, a clock; and an example, if no flow is given.

    Example: mutirao up travel.py:Travel
    """
    loaded = load_work(flows) if flows else EXAMPLE
    log_nothing()
    run_service(_up(loaded, resolve(database), None if seconds is None else timedelta(seconds=seconds)))


async def _up(loaded: Loaded, address: Address, length: timedelta | None) -> None:
    async with AsyncExitStack() as stack:
        with _step("Starting PostgreSQL" if address.is_embedded else "Connecting to the database"):
            url = stack.enter_context(address)
            connection = await stack.enter_async_context(await connect(url))
        _say(f"PostgreSQL {connection.info.parameter_status('server_version')}: {address}")
        with _step("Bringing the schema up to date"):
            await upgrade(connection)
        _say(f"Schema {schema().migrations[-1]}")
        engine = await stack.enter_async_context(Engine(url, upgrade=False, name=writer()))
        with _step("Putting the flows in place"):
            tally = Tally()
            worker, board = await prepare(engine, loaded, tally, str(address))
        _say("A worker and a clock are running.")
        watch = Watch(engine, board, length)
        services: list[Service] = [worker, Clock(engine), watch]
        if loaded is EXAMPLE:
            services.append(Travellers(engine))
        watch.stops(services)
        await serve(services, say=console)
    done = sum(tally.done.values())
    console.print(f"Stopped; {done:,} jobs done. Nothing is lost: `mutirao up` goes on from here.", highlight=False)


async def prepare(engine: Engine, loaded: Loaded, tally: Tally, where: str) -> tuple[Worker, Board]:
    """The worker for these flows, and the board that shows what it does."""
    for flow in loaded.flows:
        await engine.apply(flow, keep=True)
    counted = tally.counted(loaded.handlers)
    tasks = [(handler.flow, handler.task) for handler in counted]
    hints = _EXAMPLE_HINTS if loaded is EXAMPLE else (f"mutirao instance start {tasks[0][0]}", *_HINTS)
    worker = Worker(engine, [*loaded.flows, *counted], WorkerOptions(name="up", clock=False))
    return worker, Board(where, tasks, tally, hints)


def _step(what: str) -> Any:
    """On a terminal, what is being done stands there until it is done."""
    return progress.status(f"{what} …")


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.file.flush()

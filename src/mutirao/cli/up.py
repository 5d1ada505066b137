"""`mutirao up`: everything in one process, and something to see."""

import shlex
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any

import typer

from mutirao.cli.arguments import HostName, ProgramsFolder, RunsApplications
from mutirao.cli.board import Board
from mutirao.cli.example import TravelExample, Travellers
from mutirao.cli.invocation import calling
from mutirao.cli.logs import log_nothing
from mutirao.cli.observe import MetricsAddress, MetricsPort, Wanted, observing
from mutirao.cli.options import Database
from mutirao.cli.output import console, counted, progress
from mutirao.cli.service import Service, run_service, serve
from mutirao.cli.session import open_engine
from mutirao.cli.tally import Tally
from mutirao.cli.watch import Watch
from mutirao.cli.worker import load_work
from mutirao.database.address import resolve
from mutirao.database.engine import Engine
from mutirao.database.migrate import schema
from mutirao.language import Loaded
from mutirao.people.webhook import WebhookSender
from mutirao.worker import Clock, Observer, Worker, WorkerOptions

app = typer.Typer(add_completion=False)

EXAMPLE = Loaded((TravelExample,), tuple(TravelExample.handlers.values()))

_OPTIONS = WorkerOptions(name="up", clock=False)

_HINTS = ("instance list", "instance trace {last}", "db shell")
_EXAMPLE_HINTS = (*_HINTS, "instance repair {stuck} destination=Lisbon")

# For a server that somebody else runs. Our own is started again, however long that takes, or we are told why not.
_PATIENCE = timedelta(seconds=10)


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
    applications: RunsApplications = False,
    host: HostName = None,
    programs: ProgramsFolder = None,
    metrics_port: MetricsPort = None,
    metrics_address: MetricsAddress = "127.0.0.1",
) -> None:
    """Run everything here until Ctrl-C: PostgreSQL, a worker, a clock; and an example, if no flow is given.

    Example: mutirao up travel.py:Travel
    """
    loaded = load_work(flows) if flows else EXAMPLE
    log_nothing()
    again = calling(database)(shlex.join(["up", *(flows or []), *(["--applications"] if applications else [])]))
    length = None if seconds is None else timedelta(seconds=seconds)
    options = replace(_OPTIONS, applications=applications, host=host, programs=programs)
    run_service(_up(loaded, Shown(again, database), length, options, Wanted(metrics_port, metrics_address)))


@dataclass(frozen=True, slots=True)
class Shown:
    """How the reader called what is shown: by which command, or where it is; and which database, if any."""

    words: str
    database: str | None = None


async def _up(loaded: Loaded, shown: Shown, length: timedelta | None, options: WorkerOptions, wanted: Wanted) -> None:
    database = shown.database
    async with AsyncExitStack() as stack:
        observers = stack.enter_context(observing(wanted))
        engine = await stack.enter_async_context(open_engine(database))
        _say(f"PostgreSQL {await _server_version(engine)}: {engine}")
        _say(f"Schema {schema().migrations[-1]}")
        with _step("Putting the flows in place"):
            tally = Tally()
            worker, board = await prepare(engine, loaded, tally, Shown(str(engine), database), options, observers)
        for observer in observers:
            observer.watch(engine, worker)
        _say("A worker and a clock are running.")
        watch = Watch(engine, board, length, None if resolve(database).is_embedded else _PATIENCE)
        services: list[Service] = [worker, Clock(engine, observers), WebhookSender(engine), watch]
        if loaded is EXAMPLE:
            services.append(Travellers(engine))
        watch.stops(services)
        await serve(services, say=_say)
    done = f"{counted(sum(tally.done.values()), 'job')} done, {counted(worker.failed, 'try', 'tries')} failed"
    _say(f"Stopped; {done}. Nothing is lost: `{shown.words}` goes on from here.")


async def prepare(
    engine: Engine,
    loaded: Loaded,
    tally: Tally,
    shown: Shown,
    options: WorkerOptions = _OPTIONS,
    observers: Sequence[Observer] = (),
) -> tuple[Worker, Board]:
    """The worker for these flows, and the board that shows what it does."""
    for flow in loaded.flows:
        await engine.apply(flow, keep=True)
    handlers = tally.counted(loaded.handlers)
    tasks = [(handler.flow, handler.task) for handler in handlers]
    hints = _EXAMPLE_HINTS if loaded is EXAMPLE else (_start_hint(loaded), *_HINTS)
    worker = Worker(engine, [*loaded.flows, *handlers], options, observers)
    return worker, Board(shown.words, tasks, tally, hints, calling(shown.database))


def _start_hint(loaded: Loaded) -> str:
    """With what must be given, as far as we know."""
    known = [flow.definition for flow in loaded.flows[:1]]
    name = known[0].name if known else loaded.handlers[0].flow
    needed = [each.name for flow in known for each in flow.attributes if each.required and each.default is None]
    return " ".join([f"instance start {name}", *(f"{attribute}=…" for attribute in needed)])


async def _server_version(engine: Engine) -> str:
    async with engine.connection() as connection:
        return connection.info.parameter_status("server_version") or str(connection.info.server_version)


def _step(what: str) -> Any:
    """On a terminal, what is being done stands there until it is done."""
    return progress.status(f"{what} …")


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.file.flush()

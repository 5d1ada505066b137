"""`mutirao up`: everything in one process, and something to see."""

import asyncio
import shlex
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mutirao.cli.arguments import HostName, ProgramsFolder, RunsApplications
from mutirao.cli.board import Board
from mutirao.cli.door import Door, open_door, show_in_browser
from mutirao.cli.example import TravelExample, Travellers
from mutirao.cli.firm import INTRODUCTION, STAFF, RepairExample, move_in
from mutirao.cli.invocation import Invocation, calling
from mutirao.cli.logs import log_mistakes
from mutirao.cli.observe import MetricsAddress, MetricsPort, Wanted, observing
from mutirao.cli.options import Database
from mutirao.cli.output import console, counted, progress
from mutirao.cli.service import Service, run_service, serve
from mutirao.cli.session import open_engine
from mutirao.cli.staff import Callers, Staff
from mutirao.cli.tally import Tally
from mutirao.cli.watch import Watch
from mutirao.cli.worker import load_work
from mutirao.database.address import resolve
from mutirao.database.engine import Engine
from mutirao.database.migrate import schema
from mutirao.errors import OperatorError
from mutirao.language import Loaded
from mutirao.people.webhook import WebhookSender
from mutirao.server.options import ServerOptions
from mutirao.worker import Clock, Observer, Worker, WorkerOptions

if TYPE_CHECKING:
    from mutirao.server.service import Server

app = typer.Typer(add_completion=False)

EXAMPLE = Loaded((TravelExample,), tuple(TravelExample.handlers.values()))
FIRM = Loaded((RepairExample,), tuple(RepairExample.handlers.values()))
NOTHING = Loaded((), ())

_OPTIONS = WorkerOptions(name="up", clock=False)

_HINTS = ("instance list", "instance trace {last}", "db shell")
_EXAMPLE_HINTS = (*_HINTS, "instance repair {stuck} destination=Lisbon")

_JOURNEYS = f"journeys that programs book ({TravelExample.definition.name})"
_AS_ONE_OF_THEM = f"person reset-password {next(iter(STAFF))}"

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
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, metavar="PORT", help="Serve the pages and the API here. Default: 8321."
        ),
    ] = None,
    no_server: Annotated[bool, typer.Option("--no-server", help="Serve neither pages nor API.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser at the example's pages.")] = False,
    no_example: Annotated[bool, typer.Option("--no-example", help="Run no example, though no flow is given.")] = False,
    metrics_port: MetricsPort = None,
    metrics_address: MetricsAddress = "127.0.0.1",
) -> None:
    """Run everything here until Ctrl-C: PostgreSQL, a worker, a clock, a server; and an example, if no flow is given.

    Example: mutirao up travel.py:Travel
    """
    loaded = load_work(flows) if flows else NOTHING if no_example else EXAMPLE
    log_mistakes()
    again = calling(database)(shlex.join(["up", *(flows or []), *(["--applications"] if applications else [])]))
    length = None if seconds is None else timedelta(seconds=seconds)
    options = replace(_OPTIONS, applications=applications, host=host, programs=programs)
    shown = Shown(again, database, port=port, is_served=not no_server, in_browser=not (flows or no_browser))
    run_service(_up(loaded, shown, length, options, Wanted(metrics_port, metrics_address)))


@dataclass(frozen=True, slots=True)
class Shown:
    """How the reader called what is shown: by which command, or where it is; which database, and which port, if any."""

    words: str
    database: str | None = None
    port: int | None = None
    is_served: bool = False
    in_browser: bool = False


async def _up(loaded: Loaded, shown: Shown, length: timedelta | None, options: WorkerOptions, wanted: Wanted) -> None:
    database = shown.database
    async with AsyncExitStack() as stack:
        observers = stack.enter_context(observing(wanted))
        engine = await stack.enter_async_context(open_engine(database))
        _say(f"PostgreSQL {await _server_version(engine)}: {engine}")
        _say(f"Schema {schema().migrations[-1]}")
        server = _server(engine, shown)
        door = await open_door(engine) if server else None
        with _step("Putting the flows in place"):
            loaded, actors = await with_example(engine, loaded, door, calling(database))
            tally = Tally()
            worker, board = await prepare(engine, loaded, tally, Shown(str(engine), database), options, observers)
        if server and door:
            board = _introduced(board, server.url, door)
        for observer in observers:
            observer.watch(engine, worker)
        _say("A worker and a clock are running.")
        watch = Watch(engine, board, length, None if resolve(database).is_embedded else _PATIENCE)
        services: list[Service] = [worker, Clock(engine, observers), WebhookSender(engine), watch, *actors]
        services += [server] if server else []
        watch.stops(services)
        if server and shown.in_browser:
            await asyncio.to_thread(show_in_browser, server.url)
        await serve(services, say=_say)
    done = f"{counted(sum(tally.done.values()), 'job')} done, {counted(worker.failed, 'try', 'tries')} failed"
    _say(f"Stopped; {done}. Nothing is lost: `{shown.words}` goes on from here.")


async def with_example(
    engine: Engine, loaded: Loaded, door: Door | None, call: Invocation
) -> tuple[Loaded, list[Service]]:
    """What is to be run, and who makes it move. The example with people is there where nobody else is."""
    if loaded is not EXAMPLE:
        return loaded, []
    newcomer = door.name if door and door.password else None
    if not await move_in(engine, newcomer):
        _say(
            f"An example runs: {_JOURNEYS}. There are flows or roles of others here, so the one with people stays out."
        )
        return loaded, [Travellers(engine)]
    _say(f"Examples run: {_JOURNEYS}; and {INTRODUCTION}. To sign in as one of them: {call(_AS_ONE_OF_THEM)}")
    both = Loaded(EXAMPLE.flows + FIRM.flows, EXAMPLE.handlers + FIRM.handlers)
    return both, [Travellers(engine), Callers(engine), Staff(engine)]


def _introduced(board: Board, url: str, door: Door) -> Board:
    """Who comes for the first time is told where to go, before anything scrolls; the board repeats it."""
    _say(f"The HTTP API: {url}/api/openapi.json")
    _say(door.line(board.call))
    _say(f"Open {url} in a browser, and sign in.")
    return replace(board, server=url, sign_in=door.short(board.call))


def _server(engine: Engine, shown: Shown) -> "Server | None":
    """A port that was asked for must be free. Of the usual one somebody else may be the owner: that is said, no more."""
    if not shown.is_served:
        return None
    from mutirao.server.service import Server  # noqa: PLC0415 half a second that other commands need not wait

    try:
        return Server(engine, ServerOptions() if shown.port is None else ServerOptions(port=shown.port))
    except OperatorError as error:
        if shown.port is not None:
            raise
        _say(f"No server: {error.message}. --no-server says nothing of this.")
        return None


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
    hints = _EXAMPLE_HINTS if TravelExample in loaded.flows else (*_start_hints(loaded), *_HINTS)
    worker = Worker(engine, [*loaded.flows, *handlers], options, observers)
    return worker, Board(shown.words, tasks, tally, hints, calling(shown.database), TravelExample.definition.name)


def _start_hints(loaded: Loaded) -> list[str]:
    """With what must be given, as far as we know."""
    known = [flow.definition for flow in loaded.flows[:1]]
    names = [each.name for each in known] or [each.flow for each in loaded.handlers[:1]]
    needed = [each.name for flow in known for each in flow.attributes if each.required and each.default is None]
    return [" ".join([f"instance start {name}", *(f"{attribute}=…" for attribute in needed)]) for name in names]


async def _server_version(engine: Engine) -> str:
    async with engine.connection() as connection:
        return connection.info.parameter_status("server_version") or str(connection.info.server_version)


def _step(what: str) -> Any:
    """On a terminal, what is being done stands there until it is done."""
    return progress.status(f"{what} …")


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.file.flush()

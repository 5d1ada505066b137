"""`mutirao up`: everything in one process, and something to see.

The worker and the clock outlive short silences of the database by themselves. `up` watches: when it has not answered
for a while, somebody must look, and the program ends saying so.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.live import Live

from mutirao.cli.board import Board, View, look
from mutirao.cli.example import TravelExample, Travellers
from mutirao.cli.options import Database
from mutirao.cli.output import console, progress
from mutirao.cli.rate import Rate
from mutirao.cli.service import Service, is_set_within, quiet_pool, serve
from mutirao.cli.session import run, writer
from mutirao.cli.tally import Tally
from mutirao.database.address import Address, resolve
from mutirao.database.connection import connect
from mutirao.database.engine import Engine
from mutirao.database.migrate import migrations, upgrade
from mutirao.database.protocol import is_lost
from mutirao.errors import MutiraoError, OperatorError
from mutirao.language import Loaded, load
from mutirao.worker import Clock, Worker

app = typer.Typer(add_completion=False)

_PATIENCE = timedelta(seconds=10)
_ANSWER_WITHIN = 3.0
_EVERY = timedelta(seconds=1)

_HINTS = ("mutirao instance list", "mutirao instance trace {last}", "mutirao db shell")
_EXAMPLE_HINTS = (*_HINTS, "mutirao instance repair {stuck} destination=Lisbon")
_FLOW_HINTS = ("mutirao instance start {flow}", *_HINTS)


@app.command()
def up(
    flows: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODULE:FLOW …", help="Flows to run. Without: an example that moves by itself."),
    ] = None,
    database: Database = None,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0, metavar="SECONDS", help="End after this. Default: at Ctrl-C.")
    ] = None,
) -> None:
    """Run everything here until Ctrl-C: PostgreSQL, a worker, a clock; and an example, if no flow is given.

    Example: mutirao up travel.py:Travel
    """
    loaded = load(*flows) if flows else None
    quiet_pool()
    run(_up(loaded, resolve(database), None if seconds is None else timedelta(seconds=seconds)))


async def _up(loaded: Loaded | None, address: Address, length: timedelta | None) -> None:
    async with AsyncExitStack() as stack:
        with _step("Starting PostgreSQL" if address.is_embedded else "Connecting to the database"):
            url = stack.enter_context(address)
            connection = await stack.enter_async_context(await connect(url))
        _say(f"PostgreSQL {connection.info.parameter_status('server_version')}: {address}")
        with _step("Bringing the schema up to date"):
            await upgrade(connection)
        _say(f"Schema {migrations()[-1]}")
        engine = await stack.enter_async_context(Engine(url, upgrade=False, name=writer()))
        with _step("Putting the flows in place"):
            tally = Tally()
            worker, board = await _prepare(engine, loaded, tally, str(address))
        _say("A worker and a clock are running.")
        watch = Watch(engine, board, length)
        services: list[Service] = [worker, Clock(engine), watch]
        if loaded is None:
            services.append(Travellers(engine))
        watch.stops(services)
        await serve(services)
    done = sum(tally.done.values())
    console.print(f"Stopped; {done:,} jobs done. Nothing is lost: `mutirao up` goes on from here.", highlight=False)


async def _prepare(engine: Engine, loaded: Loaded | None, tally: Tally, where: str) -> tuple[Worker, Board]:
    example = (TravelExample,)
    chosen, handlers = (loaded.flows, loaded.handlers) if loaded else (example, TravelExample.handlers.values())
    for flow in chosen:
        await engine.apply(flow, keep=True)
    counted = tally.counted(handlers)
    tasks = [(handler.flow, handler.task) for handler in counted]
    hints = _EXAMPLE_HINTS if loaded is None else [hint.replace("{flow}", tasks[0][0]) for hint in _FLOW_HINTS]
    worker = Worker(engine, [*chosen, *counted], name="up", clock=False)
    return worker, Board(where, tasks, tally, hints)


class Watch:
    """Shows the board, ends the program when its time is over, and raises when the database stays away."""

    def __init__(self, engine: Engine, board: Board, length: timedelta | None) -> None:
        self._engine = engine
        self._board = board
        self._length = length
        self._started = time.monotonic()
        self._answered = self._started
        self._stopped = asyncio.Event()
        self._others: Sequence[Service] = ()
        self._view = View()
        self._rate = Rate()

    def stops(self, services: Sequence[Service]) -> None:
        self._others = services

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        with Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live:
            while not self._stopped.is_set():
                await self._look()
                self._show(live)
                if self._length is not None and self._up_for() >= self._length:
                    self._stop_all()
                await is_set_within(self._stopped, self._pause())

    async def _look(self) -> None:
        try:
            self._view = await asyncio.wait_for(look(self._engine, self._view), _ANSWER_WITHIN)
            self._answered = time.monotonic()
        except (TimeoutError, MutiraoError) as error:
            if isinstance(error, MutiraoError) and not is_lost(error):
                raise
            self._bear_silence()

    def _bear_silence(self) -> None:
        silent = timedelta(seconds=time.monotonic() - self._answered)
        if silent > _PATIENCE:
            text = (
                f"no answer for {silent.seconds} s from {self._board.where}; see that it runs, then `mutirao up` again"
            )
            raise OperatorError("server_lost", text)
        self._view.silent_for = silent

    def _show(self, live: Live | Any) -> None:
        rate = self._rate.of(sum(self._board.tally.done.values()))
        if live is None:
            _say(self._board.line(self._view, rate))
        else:
            live.update(self._board.full(self._view, rate, self._up_for()), refresh=True)

    def _stop_all(self) -> None:
        for service in self._others:
            service.stop()

    def _up_for(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._started)

    def _pause(self) -> timedelta:
        return _EVERY if self._length is None else max(timedelta(), min(_EVERY, self._length - self._up_for()))


def _step(what: str) -> Any:
    """On a terminal, what is being done stands there until it is done."""
    return progress.status(f"{what} …")


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.file.flush()

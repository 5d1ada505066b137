"""`mutirao worker`: does the jobs of some flows, in one database or in several."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Annotated

import typer

from mutirao.cli.arguments import Databases, HostName, ProgramsFolder, RunsApplications, SomeFlowAddresses
from mutirao.cli.logs import set_up_logs
from mutirao.cli.observe import (
    LogFormatOption,
    LogLevelOption,
    MetricsAddress,
    MetricsPort,
    Otel,
    Wanted,
    observing,
)
from mutirao.cli.output import counted, progress
from mutirao.cli.rate import Rate
from mutirao.cli.service import is_set_within, run_service, serve
from mutirao.cli.session import open_engine
from mutirao.cli.usage import misuse
from mutirao.cli.workers import ListedCommand
from mutirao.database.engine import Engine
from mutirao.errors import FlowError
from mutirao.language import Loaded, load
from mutirao.worker import Worker, WorkerOptions
from mutirao.worker.machine import Machine

app = typer.Typer(add_completion=False)

log = logging.getLogger(__name__)

_SHOW_EVERY = timedelta(seconds=0.5)
_LOG_EVERY = timedelta(seconds=60)


@app.command(cls=ListedCommand)
def worker(
    flows: SomeFlowAddresses = None,
    database: Databases = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Jobs at a time.")] = 400,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Blocking functions at a time.")] = 16,
    lease: Annotated[
        float, typer.Option("--lease", min=1, metavar="SECONDS", help="How soon others take over if this one dies.")
    ] = 60,
    name: Annotated[str | None, typer.Option("--name", help="Shown in the trace. Default: host and process.")] = None,
    no_clock: Annotated[bool, typer.Option("--no-clock", help="Another process keeps time.")] = False,
    applications: RunsApplications = False,
    host: HostName = None,
    programs: ProgramsFolder = None,
    processes: Annotated[int, typer.Option("--processes", min=1, help="Applications at a time.")] = 4,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    metrics_port: MetricsPort = None,
    metrics_address: MetricsAddress = "127.0.0.1",
    otel: Otel = False,
) -> None:
    """Do the jobs of some flows until SIGTERM or Ctrl-C: then what runs is finished, and the rest given back.

    `mutirao worker list` shows those that are there.

    Example: mutirao worker travel.py:Travel --concurrency 50
    """
    if not flows and not applications:
        raise misuse("name the flows to work for, or say --applications")
    loaded = load_work(flows) if flows else Loaded((), ())
    options = WorkerOptions(
        name,
        concurrency,
        threads,
        timedelta(seconds=lease),
        clock=not no_clock,
        applications=applications,
        host=host,
        processes=processes,
        programs=programs,
    )
    set_up_logs(log_format, log_level)
    run_service(
        _work(loaded, database or [None], options, Wanted(metrics_port, metrics_address, otel, log_format=log_format))
    )


def load_work(addresses: Sequence[str]) -> Loaded:
    """The flows with the functions that do their tasks; refused when there is none to call."""
    loaded = load(*addresses)
    if not loaded.handlers:
        raise FlowError("nothing_to_do", f"{', '.join(addresses)}: no task has a function, so there is no work to do")
    return loaded


async def _work(loaded: Loaded, databases: Sequence[str | None], options: WorkerOptions, wanted: Wanted) -> None:
    async with AsyncExitStack() as stack:
        observers = stack.enter_context(observing(wanted))
        engines = [await stack.enter_async_context(open_engine(each, options.name)) for each in databases]
        workers = [Worker(engine, [*loaded.flows, *loaded.handlers], options, observers) for engine in engines]
        for engine, each in zip(engines, workers, strict=True):
            await _put_in_place(engine, loaded)
            for observer in observers:
                observer.watch(engine, each)
            wanted.say(f"{each.name} is ready for {_described(loaded, options)}; {engine}")
        await serve([*workers, Counts(workers)], wanted.say)
    done, failed = sum(each.done for each in workers), sum(each.failed for each in workers)
    wanted.say(f"Stopped. {_counts(done, failed)}.")


async def _put_in_place(engine: Engine, loaded: Loaded) -> None:
    """Before we say that we are ready, so that nobody is told so by a worker whose flow is then refused."""
    for flow in loaded.flows:
        await engine.apply(flow, keep=True)
    for name in {handler.flow for handler in loaded.handlers}:
        await engine.task_numbers(name, [handler.task for handler in loaded.handlers if handler.flow == name])


def _counts(done: int, failed: int) -> str:
    """A job that is tried again counts for each try that failed."""
    return f"{done:,} done, {counted(failed, 'try', 'tries')} failed"


def _described(loaded: Loaded, options: WorkerOptions) -> str:
    tasks: dict[str, int] = {}
    for handler in loaded.handlers:
        tasks[handler.flow] = tasks.get(handler.flow, 0) + 1
    flows = [f"{flow} ({count} task{'s' if count > 1 else ''})" for flow, count in tasks.items()]
    programs = [f"applications of {Machine.here(options.host).host}"] if options.applications else []
    return ", ".join([*flows, *programs])


class Counts:
    """What the workers have done: a live line on a terminal, else a line in the log now and then."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        await (self._show() if progress.is_terminal else self._log())

    async def _show(self) -> None:
        rate = Rate()
        with progress.status("Waiting for jobs …") as line:
            while not await is_set_within(self._stopped, _SHOW_EVERY):
                done, failed = self._counted()
                line.update(f"{_counts(done, failed)}, {rate.of(done + failed):,.0f} a second")

    async def _log(self) -> None:
        last = (0, 0)
        while not await is_set_within(self._stopped, _LOG_EVERY):
            if (now := self._counted()) != last:
                log.info("%s since the start", _counts(*now))
                last = now

    def _counted(self) -> tuple[int, int]:
        return sum(each.done for each in self._workers), sum(each.failed for each in self._workers)

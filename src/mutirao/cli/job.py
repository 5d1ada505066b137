"""`mutirao job`: what has been set off and has not ended."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.arguments import FlowOption, JobId, JobsAndAssignments, Reason, Yes
from mutirao.cli.chosen import choosing
from mutirao.cli.file import read_change
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.many import Order, carry_out
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.reason import standing
from mutirao.cli.session import visit
from mutirao.cli.steer import apart
from mutirao.cli.usage import Group
from mutirao.database.batch import Filter
from mutirao.database.engine import Engine
from mutirao.database.record import Instance, JobRecord
from mutirao.database.story import EXCEPTION_TASK, in_words
from mutirao.errors import RequestError
from mutirao.model.name import suggest

app = typer.Typer(cls=Group, add_completion=False, help="Tasks under way. Example: mutirao job list --status failed")

_NOT_OF_JOBS = ("ids", "status", "version")
_STATUSES = ("synchronizing", "ready", "waiting", "held", "running", "parked", "failed")


@app.command("list")
def list_jobs(
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help=f"One of {', '.join(_STATUSES)}.")
    ] = None,
    flow: FlowOption = None,
    instance: Annotated[int | None, typer.Option("--instance", metavar="ID", help="Only of this instance.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most.")] = 50,
    after: Annotated[int, typer.Option("--after", metavar="ID", help="Only newer ones than this.")] = 0,
    database: Database = None,
    json: Json = False,
) -> None:
    """List jobs that have not ended, oldest first.

    Example: mutirao job list --status failed --flow travel
    """
    if status is not None and status not in _STATUSES:
        raise RequestError("wrong_call", f'"{status}" is no status of a job{suggest(status, _STATUSES)}')

    async def look(engine: Engine) -> list[JobRecord]:
        if flow is not None:
            await engine.definition(flow)  # refuses a flow that is not there
        return await engine.jobs(instance, status=status, flow=flow, after=after, limit=limit + 1)

    found = visit(database, look, must_exist=True)
    shown = found[:limit]
    if json:
        return print_json(shown)
    console.print(job_list(shown) if shown else "No jobs.", highlight=False)
    if len(found) > limit:
        console.print(f"Newer ones: --after {shown[-1].id}", style="dim", highlight=False)
    return None


@app.command()
def show(job: JobId, database: Database = None, json: Json = False) -> None:
    """Show a job: who has it, how often it failed, and its last error with the traceback.

    Example: mutirao job show 41
    """
    found = visit(database, lambda engine: engine.job(job), must_exist=True)
    if json:
        return print_json(found)
    console.print(_facts(found))
    if found.task == EXCEPTION_TASK:
        _print_section("Why its instance is an exception", "\n".join(_reasons(found)))
        _print_section("What you can do", calling(database)(f"instance show {found.instance}"))
    elif found.error:
        _print_section("Last error", _error(found, "traceback", "error", "code").rstrip())
    return None


@app.command()
@choosing(but=_NOT_OF_JOBS)
def retry(
    chosen: Filter,
    jobs: Annotated[list[int] | None, typer.Argument(metavar="ID", help="Jobs by number; or by the options.")] = None,
    reason: Reason = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Try failed jobs again, with all their retries.

    Example: mutirao job retry 41 --reason "the airline is back"

    Or many: mutirao job retry --flow travel --task book_flight --error ConnectionError
    """

    async def act(engine: Engine, found: JobRecord) -> None:
        await engine.retry(found.id, reason=reason)

    if bool(jobs) == (chosen.flow is not None):
        raise RequestError("wrong_call", "say which: jobs by their numbers, or --flow")
    for job in jobs or ():
        _steer(database, job, "is tried again", act)
    if not jobs:
        order = Order("retry", chosen, reason=reason)
        visit(database, lambda engine: carry_out(engine, order, calling(database), yes=yes), must_exist=True)


@app.command()
@choosing(but=_NOT_OF_JOBS)
def skip(
    chosen: Filter,
    words: JobsAndAssignments = None,
    reason: Reason = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """End a job as if it had succeeded, with the change given.

    Example: mutirao job skip 41 flight=TP104 --reason "booked by telephone"

    Or many that failed: mutirao job skip --flow travel --task book_flight flight=none
    """
    jobs, values = apart(words)
    if (jobs is None) == (chosen.flow is None) or len(jobs or ()) > 1:
        raise RequestError("wrong_call", "say which: a job by its number, or --flow")

    async def act(engine: Engine, found: JobRecord) -> None:
        instance = await engine.instance(found.instance)
        change = await read_change(engine, await engine.definition(instance.flow, instance.version), values)
        await engine.skip(found.id, change, reason=reason)

    for job in jobs or ():
        _steer(database, job, "is skipped", act)
    if jobs:
        return None

    async def all_of_them(engine: Engine) -> None:
        change = await read_change(engine, await engine.definition(chosen.flow or ""), values)
        await carry_out(engine, Order("skip", chosen, change, reason=reason), calling(database), yes=yes)

    return visit(database, all_of_them, must_exist=True)


def _steer(database: str | None, job: int, done: str, act: Callable[[Engine, JobRecord], Awaitable[None]]) -> None:
    """Do it, and say how the job's instance stands then."""

    async def steer(engine: Engine) -> tuple[JobRecord, Instance, Instance]:
        found = await engine.job(job)
        before = await engine.instance(found.instance)
        await act(engine, found)
        return found, before, await engine.instance(found.instance)

    found, before, instance = visit(database, steer, must_exist=True)
    line = Text(f"Job {job} ({found.task}) {done}; instance {instance.id} ")
    console.print(line.append_text(standing(instance, before, calling(database))), soft_wrap=True)


def job_list(jobs: Sequence[JobRecord]) -> Listing:
    listing = Listing(
        "job", "instance", "flow", "task", "status", "failures", "age", "about",
        numbers=("job", "instance", "failures"), loose=("about",), spare=("failures", "age", "flow"),
    )  # fmt: skip
    for job in jobs:
        whose = (str(job.instance), Text(job.flow))
        listing.add_row(str(job.id), *whose, *_standing(job))
    return listing


def jobs_of_instance(jobs: Sequence[JobRecord]) -> Listing:
    listing = Listing(
        "job", "task", "status", "failures", "age", "about",
        numbers=("job", "failures"), loose=("about",), spare=("failures", "age"),
    )  # fmt: skip
    for job in jobs:
        listing.add_row(str(job.id), *_standing(job))
    return listing


def _standing(job: JobRecord) -> tuple[Text | str, ...]:
    age = render.span(datetime.now(UTC) - job.since)
    return Text(job.task), _status(job), str(job.failures or ""), age, Text(_about(job))


def _status(job: JobRecord) -> Text:
    """The job that stands for an instance's exceptions is ready for a person, not for a worker."""
    if job.task == EXCEPTION_TASK and job.status == "ready":
        return Text("for a person", "bold red")
    return render.status(job.status)


def _about(job: JobRecord) -> str:
    if job.task == EXCEPTION_TASK:
        return "; ".join(_reasons(job))
    error = render.error(_error(job, "error", "code"))
    match job.status:
        case "ready" | "running" | "held" if job.role is not None:
            return _item(job)
        case "running":
            return f"at {_worker(job)}" if job.child is None else f"instance {job.child} does it"
        case "waiting":
            return f"again at {render.moment(job.due_at)}: {error}" if error else f"due at {render.moment(job.due_at)}"
        case "synchronizing":
            return "waits for others: see class waits"
        case _:
            return error


def _worker(job: JobRecord) -> str:
    leased = "" if job.lease_until is None else f", leased until {render.moment(job.lease_until)}"
    return f"{job.worker}{leased}"


def _item(job: JobRecord) -> str:
    """Whom a work item is for, or who has it; and by when."""
    who = f"for {job.role}" if job.holder is None else f"held by {job.holder}, of {job.role}"
    return who if job.finish_by is None else f"{who}, due {render.moment(job.finish_by)}"


def _error(job: JobRecord, *keys: str) -> str:
    """The first of these that is known."""
    found = job.error or {}
    return str(next((found[key] for key in keys if found.get(key)), ""))


def _reasons(job: JobRecord) -> list[str]:
    """Those of its instance, which the job that stands for its exceptions has instead of an error."""
    found: list[dict[str, Any]] = job.error if isinstance(job.error, list) else []
    return [f"{reason['code']}: {in_words(reason)}" for reason in found]


def _print_section(title: str, content: str) -> None:
    console.print(f"\n[bold]{title}[/bold]")
    console.print(Text(content), soft_wrap=True)


def _facts(job: JobRecord) -> Any:
    rows: dict[str, Any] = {
        "job": f"{job.id}, {job.task} of instance {job.instance} of {job.flow}",
        "status": _status(job),
        "since": render.moment(job.since),
        "failures": job.failures,
    }
    if job.role is not None:
        rows["work item"] = _item(job)
    elif job.child is not None:
        rows["done by"] = f"instance {job.child}"
    elif job.status == "running":
        rows["worker"] = f"{_worker(job)}, attempt {job.attempt}"
    if job.due_at is not None:
        rows["tried again"] = render.moment(job.due_at)
    if job.priority:
        rows["priority"] = job.priority
    return render.facts(rows)

"""`mutirao instance`: start, look at and steer instances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from mutirao.cli import charge, file, render, steer
from mutirao.cli.arguments import FlowOption, InstanceId
from mutirao.cli.assignment import search_text
from mutirao.cli.invocation import calling
from mutirao.cli.job import jobs_of_instance
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, print_json
from mutirao.cli.reason import ways_out
from mutirao.cli.session import visit
from mutirao.cli.start import start
from mutirao.cli.story import story_table
from mutirao.cli.usage import Group, misuse
from mutirao.cli.worklist_page import print_said
from mutirao.database.engine import Engine
from mutirao.database.item import Attachment, Comment
from mutirao.database.record import Instance, JobRecord, TaskStanding, TraceRow
from mutirao.database.story import Event, in_words, tell
from mutirao.errors import RequestError
from mutirao.model import Definition

app = typer.Typer(cls=Group, add_completion=False, help="Runs of flows. Example: mutirao instance list")
app.command()(start)

_LAST_ROWS = 6
_MOST_ROWS = 200


@dataclass(frozen=True)
class Told:
    """An instance with what happened to it, and what was said and kept."""

    instance: Instance
    definition: Definition
    trace: list[TraceRow]

    @property
    def revision(self) -> int:
        """The row of the trace by which it, or who is in charge of it, was changed last."""
        return max(row.id for row in self.trace if row.state is not None or row.kind == "hand_over")

    def events(self) -> list[Event]:
        return tell(self.trace, self.definition)


@dataclass(frozen=True)
class Standing:
    """How an instance stands, task by task; of those that start at a certain time anyway, that in words."""

    tasks: list[TaskStanding]
    jobs: list[JobRecord]
    alarms: Mapping[str, str]


@app.command("list")
def list_instances(
    flow: FlowOption = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Such as open, open.exception, closed.")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="ATTR=VALUE", help="By a searchable attribute of --flow.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most.")] = 20,
    before: Annotated[int | None, typer.Option("--before", metavar="ID", help="Only older ones than this.")] = None,
    person: Annotated[
        str | None, typer.Option("--as", metavar="PERSON", help="Only what this person has had to do with.")
    ] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """List instances, newest first.

    Example: mutirao instance list --flow travel --status open.exception
    """
    if person is not None and where is not None:
        raise misuse("--where goes without --as: it looks at all instances of a flow")

    async def look(engine: Engine) -> tuple[list[Instance], dict[tuple[str, int], Definition]]:
        wanted = None
        if where is not None:
            if flow is None:
                raise RequestError("wrong_call", "--where needs --flow: an attribute belongs to a flow")
            wanted = search_text(await engine.definition(flow), where)
        if person is None:
            found = await engine.instances(flow, status=status, where=wanted, before=before, limit=limit)
        else:
            seen = engine.seen_by(await engine.persons.number(person))
            found = await seen.instances(flow, status=status, before=before, limit=limit)
        versions = {(each.flow, each.version) for each in found}
        return found, {each: await engine.definition(*each) for each in versions}

    found, definitions = visit(database, look, must_exist=True)
    if json:
        return print_json(found)
    if not found:
        return console.print("No instances.", highlight=False)
    console.print(_listing(found, definitions))
    if len(found) == limit:
        console.print(f"Older ones: --before {found[-1].id}", style="dim", highlight=False)
    return None


@app.command()
def show(instance: InstanceId, database: Database = None, json: Json = False) -> None:
    """Show how an instance stands: state, status, reasons, jobs, and what happened last.

    Example: mutirao instance show 17
    """

    async def look(engine: Engine) -> tuple[Told, Standing, list[Comment], list[Attachment]]:
        comments = await engine.worklists.comments(None, instance, limit=1000)
        attachments = await engine.worklists.attachments(None, instance, limit=1000)
        told = await _told(engine, instance)
        return told, await _standing(engine, told), comments, attachments

    told, standing, comments, attachments = visit(database, look, must_exist=True)
    found, jobs, tasks = told.instance, standing.jobs, standing.tasks
    if json:
        said = {"comments": comments, "attachments": attachments}
        return print_json(
            {
                "instance": found,
                "revision": told.revision,
                "tasks": tasks,
                "jobs": jobs,
                "trace": told.trace[-_LAST_ROWS:],
                **said,
            }
        )
    state = render.visible(found.state, told.definition)
    console.print(_facts(found, told.revision))
    _print_section("State", render.facts({name: render.value(given) for name, given in state.items()}))
    if found.reasons:
        _print_section("Why it is an exception", _reasons(found, state))
    _print_section("Tasks", _tasks(standing))
    if jobs:
        _print_section("Jobs", jobs_of_instance(jobs))
    print_said(comments, attachments)
    _print_section("What happened last", story_table(told.events()[-_LAST_ROWS:], found.started_at))
    if ways := ways_out(found, told.definition, tasks):
        call, width = calling(database), max(len(way.does) for way in ways)
        lines = [f"{way.does:<{width}}  {call(way.command)}" for way in ways]
        _print_section("What you can do", "\n".join(lines))
    return None


@app.command()
def trace(
    instance: InstanceId,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help=f"Only the last so many rows. Default: {_MOST_ROWS}; all with --json."),
    ] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Tell the story of an instance: what happened, what that changed, and what it set off.

    Example: mutirao instance trace 17 --limit 20
    """
    told = visit(database, lambda engine: _told(engine, instance), must_exist=True)
    if json:
        return print_json(told.trace[-limit:] if limit else told.trace)
    console.print(_facts(told.instance, told.revision))
    console.print()
    events = told.events()
    shown = events[-(limit or _MOST_ROWS) :]
    if left_out := len(events) - len(shown):
        line = f"{counted(left_out, 'earlier row')} left out; all of them: --limit {len(events)}"
        console.print(line, style="dim", highlight=False)
    return console.print(story_table(shown, told.instance.started_at))


app.command("set")(steer.set_attributes)
for each in (steer.repair, steer.cancel, steer.suspend, steer.resume, steer.roll_back, steer.start_task, steer.go_back):
    app.command(each.__name__.replace("_", "-"))(each)
app.command("hand-over")(charge.hand_over)
app.command()(charge.comment)
app.command("remove-comment")(charge.remove_comment)
app.command("file")(file.fetch)


async def _told(engine: Engine, instance: int) -> Told:
    found = await engine.instance(instance)
    return Told(found, await engine.definition(found.flow, found.version), await engine.trace(instance))


async def _standing(engine: Engine, told: Told) -> Standing:
    instance = told.instance
    alarms: dict[str, str] = {}
    if instance.is_open and any(task.time_to_wait for task in told.definition.tasks):
        found = [each for each in await engine.why(instance.id) if each.stands == "alarm"]
        alarms = {str(each.task): each.answer.partition(": ")[0].removeprefix(f"{each.task} ") for each in found}
    return Standing(await engine.task_states(instance.id), await engine.jobs(instance.id), alarms)


def _tasks(standing: Standing) -> Listing:
    listing = Listing("task", "state", "since", "about", loose=("about",))
    for each in standing.tasks:
        since = "" if each.since is None else render.ago(each.since)
        times = f"{each.times} times" if each.times > 1 else ""
        listing.add_row(Text(each.task), render.status(each.state), since, standing.alarms.get(each.task, times))
    return listing


def _listing(found: Sequence[Instance], definitions: Mapping[tuple[str, int], Definition]) -> Listing:
    listing = Listing(
        "id", "flow", "status", "started", "state", numbers=("id",), loose=("state",), spare=("started", "flow")
    )
    for each in found:
        because = f"{', '.join(str(reason['code']) for reason in each.reasons)}: " if each.reasons else ""
        state = render.state(render.visible(each.state, definitions[each.flow, each.version]))
        if each.due_at:
            because = f"starts {render.moment_to_come(each.due_at)}: "
        about = Text(because, "yellow" if each.due_at else "red").append(state, "default")
        listing.add_row(
            str(each.id),
            each.flow,
            render.status(each.status, each.hold),
            "not yet" if each.due_at else render.ago(each.started_at),
            about,
        )
    return listing


def _facts(found: Instance, revision: int) -> Any:
    took = f", took {render.span(found.closed_at - found.started_at)}" if found.closed_at else ""
    rows: dict[str, Any] = {
        "instance": f"{found.id} of {found.flow}, version {found.version}",
        "status": render.status(found.status, found.hold),
        **(
            {"starts": render.moment_to_come(found.due_at), "made": render.moment(found.started_at)}
            if found.due_at
            else {"started": f"{render.moment(found.started_at)}{took}"}
        ),
        "revision": revision,
    }
    if found.key:
        rows["key"] = found.key
    if found.in_charge:
        rows["in charge"] = found.in_charge
    if found.priority:
        rows["priority"] = found.priority
    if found.parent:
        rows["child of"] = f"instance {found.parent}"
    if found.children:
        rows["children"] = ", ".join(map(str, found.children))
    return render.facts(rows)


def _reasons(found: Instance, state: Mapping[str, Any]) -> Table:
    """What kind of exception, and everything that is known about it."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for reason in found.reasons or ():
        table.add_row(Text(str(reason["code"]), "bold"), Text(in_words(reason, state)))
    return table


def _print_section(title: str, content: Any) -> None:
    """A text is printed as it is, so that a command in it can be copied whole."""
    console.print(f"\n[bold]{title}[/bold]")
    console.print(content, soft_wrap=isinstance(content, str), highlight=False, markup=False)

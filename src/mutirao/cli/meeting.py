"""`mutirao class`: jobs that exclude each other, and who waits for whom."""

from typing import Annotated

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.engine import Engine
from mutirao.database.meeting import Wait

app = typer.Typer(cls=Group, add_completion=False, help="Jobs that exclude each other. Example: mutirao class list")

ClassName = Annotated[str, typer.Argument(metavar="CLASS", help="The class's name.")]
Conflicts = Annotated[
    list[str] | None,
    typer.Option(
        "--conflicts", metavar="CLASS", help="Excludes the jobs of this class; may be itself. Give it for each."
    ),
]


@app.command("list")
def list_classes(database: Database = None, json: Json = False) -> None:
    """List the classes: what they conflict with, how many jobs hold them and how many wait.

    Example: mutirao class list
    """
    found = visit(database, lambda engine: engine.classes.all(), must_exist=True)
    if json:
        return print_json(found)
    if not found:
        line = f"There is no class. Make one: {calling(database)('class put NAME --conflicts NAME')}"
        return console.print(line, highlight=False, markup=False, soft_wrap=True)
    listing = Listing(
        "class", "conflicts with", "holding", "waiting", "since", "flows", "about",
        numbers=("holding", "waiting"), loose=("flows", "about"), spare=("about", "since"),
    )  # fmt: skip
    for each in found:
        since = "" if each.waits_since is None else render.ago(each.waits_since)
        counts = (f"{each.holding:,}", f"{each.waiting:,}")
        what = (Text(", ".join(each.flows)), Text(each.description or ""))
        listing.add_row(Text(each.name), Text(", ".join(each.conflicts)), *counts, since, *what)
    return console.print(listing)


@app.command()
def put(
    name: ClassName,
    conflicts: Conflicts = None,
    description: Annotated[
        str | None, typer.Option("--description", metavar="TEXT", help="What for. Default: as before.")
    ] = None,
    database: Database = None,
) -> None:
    """Make a class, or change it: it conflicts with these from now on, and with no others.

    Example: mutirao class put crane --conflicts crane
    """
    visit(database, lambda engine: engine.classes.put(name, conflicts or (), description=description), must_exist=True)
    told = f"conflicts with {', '.join(conflicts)}" if conflicts else "conflicts with none"
    console.print(f"Class {name} {told}.", highlight=False, markup=False)


@app.command()
def drop(name: ClassName, database: Database = None) -> None:
    """Take a class away: its jobs exclude nobody any more, and those that wait are ready.

    Example: mutirao class drop crane
    """

    async def act(engine: Engine) -> list[str]:
        found = await engine.classes.all()
        await engine.classes.drop(name)
        return [flow for each in found if each.name == name for flow in each.flows]

    flows = visit(database, act, must_exist=True)
    rest = f"; jobs of {', '.join(flows)} exclude nobody by it any more" if flows else ""
    console.print(f"Class {name} is gone{rest}.", highlight=False, markup=False)


@app.command()
def waits(
    name: Annotated[str | None, typer.Argument(metavar="[CLASS]", help="Only of this class.")] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Show who waits for whom, since when, and at which place of the queue.

    Example: mutirao class waits
    """
    found = visit(database, lambda engine: engine.classes.waits(name), must_exist=True)
    if json:
        return print_json(found)
    if not found:
        return console.print("Nobody waits.", highlight=False)
    listing = Listing(
        "job", "instance", "task", "class", "since", "place", "waits for",
        numbers=("job", "instance", "place"), wraps=("waits for",), spare=("since",),
    )  # fmt: skip
    for each in found:
        task = Text(f"{each.flow}.{each.task}")
        place = (Text(each.class_name or ""), render.ago(each.since), str(each.place))
        listing.add_row(str(each.job), str(each.instance), task, *place, Text(_waits_for(each)))
    return console.print(listing)


def _waits_for(wait: Wait) -> str:
    match wait.kind:
        case "class":
            return f"{wait.holder_task} of instance {wait.holder_instance} (job {wait.held_by})"
        case "ordering":
            return f"instance {wait.holder_instance}, which goes first by {wait.ordering}"
    return f"its turn, after {wait.holder_task} of instance {wait.holder_instance}" if wait.held_by else "its turn"

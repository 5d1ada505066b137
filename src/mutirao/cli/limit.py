"""`mutirao limit`: how many jobs of a task run, set while everything runs."""

from typing import Annotated

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.arguments import FlowOption
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.engine import Engine
from mutirao.database.record import LimitRecord
from mutirao.errors import RequestError
from mutirao.model import Limit

app = typer.Typer(cls=Group, add_completion=False, help="How many jobs of a task run. Example: mutirao limit list")

FlowName = Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")]


@app.command("list")
def list_limits(flow: FlowOption = None, database: Database = None, json: Json = False) -> None:
    """List the limits in force, and how far they are used.

    Example: mutirao limit list
    """
    found = visit(database, lambda engine: engine.limits(flow), must_exist=True)
    if json:
        return print_json(found)
    if not found:
        return console.print("No task has a limit.", highlight=False)
    listing = Listing("flow", "task", "limit", "running", "ready", "set", numbers=("running", "ready"), spare=("set",))
    for each in found:
        counts = (f"{each.running:,}", f"{each.ready:,}", "by hand" if each.by_hand else "in the flow")
        listing.add_row(Text(each.flow), Text(each.task), Text(render.limit(each)), *counts)
    return console.print(listing)


@app.command("set")
def set_limit(
    flow: FlowName,
    task: TaskName,
    at_once: Annotated[int | None, typer.Option("--at-once", metavar="N", help="So many run at once.")] = None,
    per_second: Annotated[float | None, typer.Option("--per-second", metavar="N", help="So many begin.")] = None,
    per: Annotated[str | None, typer.Option("--per", metavar="ATTR", help="The attribute that --each is for.")] = None,
    each: Annotated[int | None, typer.Option("--each", metavar="N", help="So many at once for each value.")] = None,
    database: Database = None,
) -> None:
    """Limit the jobs of a task from now on, whatever its definition says. What runs goes on.

    A limit that is not given is free from then on: give all that shall hold.

    Example: mutirao limit set travel book_hotel --at-once 20 --per customer --each 1
    """
    limit = Limit(at_once=at_once, per_second=per_second, per=per, each=each)
    if limit == Limit():
        raise RequestError("wrong_call", "say which limit: --at-once, --per-second, or --per with --each")

    async def put(engine: Engine) -> list[LimitRecord]:
        before = await engine.limits(flow)
        await engine.limit(flow, task, limit)
        return [each for each in before if each.task == task]

    before = visit(database, put, must_exist=True)
    old = render.limit(before[0]) if before else "none"
    console.print(f"{flow}.{task}: {old} → {render.limit(limit)}; what is not said is free.", highlight=False)


@app.command()
def clear(flow: FlowName, task: TaskName, database: Database = None) -> None:
    """Let as many jobs of a task run as there are.

    Example: mutirao limit clear travel book_hotel
    """
    visit(database, lambda engine: engine.limit(flow, task, None), must_exist=True)
    console.print(f"{flow}.{task}: no limit", highlight=False)

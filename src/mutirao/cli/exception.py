"""`mutirao exceptions`: what needs a person, by what is wrong, and the command that repairs all of a kind."""

import shlex
from typing import Annotated

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.arguments import FlowOption
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.session import visit
from mutirao.database.exception import MOST_KINDS, ExceptionKind

app = typer.Typer(add_completion=False)


@app.command()
def exceptions(
    flow: FlowOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_KINDS, help="How many kinds at most.")] = 20,
    database: Database = None,
    json: Json = False,
) -> None:
    """Show what instances are exceptions for: how many of each kind, since when, one of them, and how to repair them all.

    Example: mutirao exceptions --flow travel
    """
    found = visit(database, lambda engine: engine.exceptions(flow, limit=limit), must_exist=True)
    if json:
        return print_json(found)
    if not found:
        return console.print("No exceptions.", highlight=False)
    console.print(_listing(found))
    call = calling(database)
    console.print("\n[bold]To see to all of a kind[/bold]")
    for number, each in enumerate(found, 1):
        console.print(f"{number:>2}  {call(_command(each))}", soft_wrap=True, highlight=False, markup=False)
    line = f"About one of them: {call(f'why {found[0].example}')}"
    return console.print(line, soft_wrap=True, highlight=False, markup=False)


def _listing(found: list[ExceptionKind]) -> Listing:
    listing = Listing(
        "#", "flow", "code", "task", "instances", "since", "latest", "such as", "error",
        numbers=("#", "instances", "such as"), loose=("error",), spare=("latest", "error"),
    )  # fmt: skip
    for number, each in enumerate(found, 1):
        what = (Text(each.flow), Text(each.code, "bold red"), Text(each.task or ""), f"{each.instances:,}")
        when = (render.ago(each.since), render.ago(each.latest))
        listing.add_row(str(number), *what, *when, str(each.example), render.one_line(each.error or ""))
    return listing


def _command(kind: ExceptionKind) -> str:
    """Without the program's name. What would be right instead of what is wrong in a state, only who looks at it knows."""
    noun = "job" if kind.repair in ("retry", "skip") else "instance"
    options = (f"--{name} {shlex.quote(value)}" for name, value in kind.chosen.items())
    change = "attribute=value" if kind.repair in ("repair", "skip") and kind.code != "runaway" else ""
    return " ".join(filter(None, (noun, kind.repair, *options, change)))

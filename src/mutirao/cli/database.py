"""`mutirao database`: the databases that queries of flows are asked of."""

import shlex
import sys
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.engine import Engine
from mutirao.database.source import SourceRecord

app = typer.Typer(cls=Group, add_completion=False, help="Databases that flows may ask. Example: mutirao database list")

Name = Annotated[str, typer.Argument(metavar="NAME", help="What flows call it.")]


@app.command()
def add(
    name: Name,
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="ADDRESS", help="postgresql://… of a role that may only read. Default: it is asked for."
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--timeout", min=0.001, max=3600, metavar="SECONDS", help="Of a query.")
    ] = 10,
    database: Database = None,
) -> None:
    """Name a database that flows may ask, or put another in its place. Its address is kept, and not shown again.

    Example: mutirao database add stock postgresql://reader:password@stock.example.org/stock --timeout 5
    """
    address = url if url is not None else _asked()
    visit(database, lambda engine: engine.sources.put(name, address, within=timedelta(seconds=seconds)))
    console.print(
        Text(f"Flows may ask {name}. Try it: {calling(database)(f'database try {shlex.quote(name)}')}"), soft_wrap=True
    )


@app.command("list")
def list_databases(database: Database = None, json: Json = False) -> None:
    """List the databases that flows may ask, and the flows that do.

    Example: mutirao database list
    """
    found = visit(database, lambda engine: engine.sources.all(), must_exist=True)
    if json:
        return print_json([_shown(each) for each in found])
    return console.print(_listing(found) if found else "No databases.", highlight=False)


@app.command()
def remove(name: Name, database: Database = None) -> None:
    """Take the name of a database away. Jobs that would ask it fail.

    Example: mutirao database remove stock
    """
    visit(database, lambda engine: engine.sources.remove(name), must_exist=True)
    console.print(Text(f"Flows may not ask {name} any more."))


@app.command("try")
def try_database(
    name: Name,
    expression: Annotated[str, typer.Argument(metavar="SQL", help="What to ask.")] = "select version() as version",
    database: Database = None,
    json: Json = False,
) -> None:
    """Ask a database as a job would, with the same limits, and show the rows.

    Example: mutirao database try stock "select count(*) from article"
    """

    async def ask(engine: Engine) -> list[dict[str, Any]]:
        return await engine.sources.rows(name, expression)

    rows = visit(database, ask, must_exist=True)
    if json:
        return print_json(rows)
    for row in rows:
        console.print(Text(", ".join(f"{column}: {value}" for column, value in row.items())))
    return console.print(Text(f"{name} answers, as flows would ask it: {counted(len(rows), 'row')}."))


def _asked() -> str:
    """So that it is in no list of processes and in no history; from a pipe, or typed unseen."""
    return str(typer.prompt("Address", hide_input=True)) if sys.stdin.isatty() else sys.stdin.readline().strip()


def _shown(source: SourceRecord) -> dict[str, Any]:
    return {
        "name": source.name,
        "address": source.address,
        "timeout": source.timeout.total_seconds(),
        "made_by": source.made_by,
        "made_at": source.made_at,
        "flows": source.flows,
    }


def _listing(found: list[SourceRecord]) -> Listing:
    listing = Listing("name", "address", "timeout", "flows", "added", loose=("flows",), spare=("added", "timeout"))
    for each in found:
        added = f"{render.ago(each.made_at)} by {each.made_by}"
        listing.add_row(
            Text(each.name), Text(each.address), render.duration(each.timeout), Text(", ".join(each.flows)), Text(added)
        )
    return listing

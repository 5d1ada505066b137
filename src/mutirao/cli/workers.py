"""`mutirao worker list`: who is there, and what they do."""

from typing import Any

import typer
from rich.text import Text
from typer.core import TyperCommand

from mutirao.cli import render
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.session import visit
from mutirao.database.record import WorkerRecord

_app = typer.Typer(add_completion=False)


@_app.command()
def list_workers(database: Database = None, json: Json = False) -> None:
    """List the workers that announced themselves within a day: whether they are alive, and which tasks they do.

    Example: mutirao worker list
    """
    found = visit(database, lambda engine: engine.workers(), must_exist=True)
    if json:
        return print_json(found)
    return console.print(_listing(found) if found else "No workers.", highlight=False)


class ListedCommand(TyperCommand):
    """A command that takes any word, and has `list` beside."""

    commands = {"list": typer.main.get_command(_app)}  # noqa: RUF012 the name that groups have for it

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if args[:1] == ["list"]:
            return self.commands["list"].make_context(f"{info_name} list", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _listing(found: list[WorkerRecord]) -> Listing:
    listing = Listing(
        "worker", "alive", "seen", "running", "program", "tasks",
        numbers=("running",), loose=("tasks",), spare=("program", "running"),
    )  # fmt: skip
    for each in found:
        alive = Text("yes", "green") if each.alive else Text("stopped" if each.stopped_at else "silent", "red")
        seen = render.ago(each.stopped_at or each.seen_at)
        listing.add_row(Text(each.name), alive, seen, str(each.running), each.program or "", Text(_tasks(each.tasks)))
    return listing


def _tasks(tasks: list[str]) -> str:
    """By flow: `travel: book_hotel, book_flight`."""
    flows: dict[str, list[str]] = {}
    for each in tasks:
        flow, task = each.split(".")
        flows.setdefault(flow, []).append(task)
    return "; ".join(f"{flow}: {', '.join(names)}" for flow, names in flows.items())

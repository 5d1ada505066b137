"""`mutirao pdl`: processes as text. Files are checked, formatted, put in place; and flows are written as text again."""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, print_json
from mutirao.cli.pdl_file import (
    REFUSED,
    as_json,
    formatted,
    judge,
    print_findings,
    read_file,
    refuse,
    still_to_make,
)
from mutirao.cli.render import moment
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.engine import Engine
from mutirao.database.library import LibraryRecord
from mutirao.errors import MutiraoError, OperatorError, RequestError
from mutirao.language.pdl import examine, to_pdl, with_creator
from mutirao.model import Bundle, Definition, Inventory

app = typer.Typer(cls=Group, add_completion=False, help="Processes as text. Example: mutirao pdl check travel.pdl")

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="PDL files; they are read together.")]


@app.command()
def check(
    files: Files,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="URL",
            help="Ask this engine as well: for what the files do not define, and about the conditions. "
            "postgresql://… of a server, or embedded:NAME. Default: only the files.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say what is wrong with files, all of it, with its place. Nothing is changed.

    Example: mutirao pdl check travel.pdl
    """
    sources = [read_file(file) for file in files]
    if database is None:
        reading = examine(sources)
    else:
        reading = visit(database, lambda engine: judge(engine, sources), must_exist=True)
    errors, warnings = reading.findings.errors, reading.findings.warnings
    if json:
        print_json({"ok": not errors, "findings": [as_json(each) for each in (*errors, *warnings)]})
    else:
        print_findings((*errors, *warnings))
        if not errors:
            console.print(Text("ok ", "green").append(_summary(reading.bundle), "default"), soft_wrap=True)
    if errors:
        raise typer.Exit(REFUSED)


@app.command("fmt")
def fmt(
    files: Files,
    check: Annotated[bool, typer.Option("--check", help="Only say which files would change; exit 1 if any.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Only show what would change; exit 1 if anything.")] = False,
) -> None:
    """Put files into the one layout. Their meaning and their comments stay.

    Example: mutirao pdl fmt travel.pdl
    """
    sources = [read_file(file) for file in files]
    pairs = [(file, source.text, formatted(source)) for file, source in zip(files, sources, strict=True)]
    changed = [(file, before, after) for file, before, after in pairs if before != after]
    for file, before, after in changed:
        if diff:
            name = str(file)
            lines = difflib.unified_diff(
                before.splitlines(), after.splitlines(), name, f"{name} formatted", lineterm=""
            )
            console.file.writelines(f"{line}\n" for line in lines)
        elif check:
            console.print(Text(f"would change {file}"), soft_wrap=True)
        else:
            file.write_text(after, "utf-8", newline="\n")
            console.print(Text(f"formatted {file}"), soft_wrap=True)
    if not changed and not diff:
        console.print(f"{counted(len(files), 'file')} {'is' if len(files) == 1 else 'are'} in the right form.")
    if changed and (check or diff):
        raise typer.Exit(REFUSED)


@app.command()
def apply(
    files: Files,
    creator: Annotated[
        str | None,
        typer.Option("--creator", metavar="ROLE", help="Who may create instances of the flows that do not say so."),
    ] = None,
    database: Database = None,
) -> None:
    """Put all that files define in place: task models, applications, flows, orderings. All of it or nothing.

    Example: mutirao pdl apply travel.pdl --creator travel_desk
    """
    sources = [read_file(file) for file in files]

    async def put(engine: Engine) -> None:
        inventory = await engine.library.inventory()
        reading = examine(sources, inventory)
        print_findings(reading.findings.warnings, to_stderr=True)
        refuse(reading, still_to_make(reading.bundle, inventory, database))
        bundle = with_creator(reading.bundle, creator, inventory)
        before = {record.name: record.version for record in await engine.flows()}
        try:
            versions = await engine.library.apply(bundle, sources=reading.texts)
        except OperatorError:
            raise
        except MutiraoError:
            await reading.judge(engine.library.try_out)  # all that is wrong, and not the first alone
            refuse(reading)
            raise
        _print_applied(bundle, versions, before)

    visit(database, put)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")],
    version: Annotated[int | None, typer.Option("--version", help="An earlier version. Default: the newest.")] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Write a flow as PDL, with the task models and applications that it uses, however it was defined.

    Example: mutirao pdl show travel
    """

    async def look(engine: Engine) -> Bundle:
        definition = await engine.definition(name, version)
        return _with_used(definition, await engine.library.inventory())

    text = to_pdl(visit(database, look, must_exist=True))
    if json:
        return print_json({"flow": name, "pdl": text})
    console.file.write(text)
    return None


@app.command("list")
def list_library(database: Database = None, json: Json = False) -> None:
    """List the task models, applications and orderings, and who uses each.

    Example: mutirao pdl list
    """
    found = visit(database, lambda engine: engine.library.all(), must_exist=True)
    if json:
        return print_json(found)
    if not found:
        line = f"There is nothing yet. Put something in place: {calling(database)('pdl apply FILE.pdl')}"
        return console.print(line, highlight=False, markup=False, soft_wrap=True)
    return console.print(_listing(found))


@app.command()
def drop(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="task_model, application or ordering.")],
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Its name; of an ordering both flows.")],
    database: Database = None,
) -> None:
    """Take something out of the library. What the newest version of a flow uses is not dropped.

    Example: mutirao pdl drop task_model Writing
    """

    async def act(engine: Engine) -> None:
        library = engine.library
        match kind, names:
            case "task_model", [name]:
                await library.drop_model(name)
            case "application", [name]:
                await library.drop_application(name)
            case "ordering", [first, second]:
                await library.drop_ordering(first, second)
            case _:
                right = "task_model NAME, application NAME or ordering FLOW FLOW"
                raise RequestError("wrong_call", f'"{" ".join([kind, *names])}" cannot be dropped; give {right}')

    visit(database, act, must_exist=True)
    console.print(Text(f"{' '.join(names)} is gone."))


def _with_used(flow: Definition, inventory: Inventory) -> Bundle:
    """As far as they are in the library: an earlier version may have used what is gone."""
    used = {task.model for task in flow.tasks}
    models = [model for name, model in inventory.models.items() if name in used]
    run = {task.application for task in flow.tasks} | {model.application for model in models}
    applications = [application for name, application in inventory.applications.items() if name in run]
    return Bundle(flows=(flow,), models=tuple(models), applications=tuple(applications))


def _summary(bundle: Bundle) -> str:
    counts = (
        (len(bundle.flows), "flow"),
        (len(bundle.models), "task model"),
        (len(bundle.applications), "application"),
        (len(bundle.orderings), "ordering"),
    )
    return ", ".join(counted(number, what) for number, what in counts if number) or "nothing is defined"


def _print_applied(bundle: Bundle, versions: dict[str, int], before: dict[str, int]) -> None:
    for name, version in versions.items():
        news = "applied" if version != before.get(name) else "unchanged"
        console.print(f"{name}: {news}, version {version}", highlight=False)
    others = _summary(replace(bundle, flows=()))
    if bundle.models or bundle.applications or bundle.orderings:
        console.print(f"in the library: {others}", highlight=False)


def _listing(found: Sequence[LibraryRecord]) -> Listing:
    listing = Listing(
        "kind", "name", "about", "used by", "since", "by", loose=("used by",), wraps=("about",), spare=("by", "since")
    )
    for each in found:
        what = (Text(each.name), Text(_pairs(each)), Text(", ".join(each.used_by)))
        listing.add_row(each.kind, *what, moment(each.made_at), Text(each.made_by))
    return listing


def _pairs(entry: LibraryRecord) -> str:
    """What an ordering orders, and of whom."""
    pairs = ", ".join(f"{first}: {second}" for first, second in entry.document.get("pairs", ()))
    return f"{pairs}; on {entry.document['on']}" if pairs and entry.document.get("on") else pairs

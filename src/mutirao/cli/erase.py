"""`mutirao erase`: one person's data, found wherever an instance keeps it, and erased on demand."""

import shlex
from typing import Annotated

import typer

from mutirao.cli import render
from mutirao.cli.arguments import FlowOption
from mutirao.cli.assignment import search_text
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, counting, print_json, progress
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.engine import Engine
from mutirao.database.erase import Erasure, Sought
from mutirao.database.record import ErasureRecord, Holder, Instance
from mutirao.errors import RequestError

app = typer.Typer(
    cls=Group, add_completion=False, help="One person's data. Example: mutirao erase find ann@example.org"
)

_LISTED = 50
_MOST = 10_000

Value = Annotated[
    str | None, typer.Argument(metavar="[VALUE]", help="A text that identifies the person, such as an address.")
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="ATTR=VALUE", help="This value of an attribute of --flow, now or earlier."),
]


@app.command("find")
def find_instances(
    value: Value = None, where: Where = None, flow: FlowOption = None, database: Database = None, json: Json = False
) -> None:
    """List the instances that keep a value: in their state, anywhere in their trace, or in a job.

    Example: mutirao erase find ann@example.org
    """

    async def look(engine: Engine) -> tuple[list[Instance], list[Holder]]:
        found, text = await _found(engine, value, where, flow, quiet=json)
        return [await engine.instance(number) for number in found[:_MOST]], await engine.find_elsewhere(text)

    found, elsewhere = visit(database, look, must_exist=True)
    if json:
        return print_json(found)
    if found:
        console.print(_listing(found))
    else:
        console.print("No instance keeps it.", highlight=False)
    if len(found) > _LISTED:
        console.print(f"and {counted(len(found) - _LISTED, 'more', 'more')}; all of them: --json", style="dim")
    return _name(elsewhere)


@app.command()
def run(
    value: Value = None,
    where: Where = None,
    flow: FlowOption = None,
    attributes: Annotated[
        list[str] | None, typer.Option("--attribute", metavar="NAME", help="Blank this one too; repeat it for more.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop the instances whole, instead of blanking.")] = False,
    may_be_open: Annotated[bool, typer.Option("--open", help="Also blank in instances that are open.")] = False,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Kept; without the value.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Erase a person's data wherever it is found: attributes are blanked, in the state and in the whole trace.

    Example: mutirao erase run ann@example.org --attribute name --reason "asked by letter" --yes
    """

    async def act(engine: Engine) -> tuple[dict[int, str | None], list[Holder]]:
        found, text = await _found(engine, value, where, flow, quiet=json)
        if found and not yes:
            _confirm(len(found), drop=drop)
        erasure = Erasure(
            value=text,
            attributes=attributes or (),
            how="drop" if drop else "blank",
            reason=reason,
            may_be_open=may_be_open,
        )
        if not found and attributes:
            await engine.erase([0], erasure)  # refuses what makes no sense
        with counting("Erasing", len(found), quiet=json) as advance:
            return await engine.erase(found, erasure, advance), await engine.find_elsewhere(text)

    answers, elsewhere = visit(database, act, must_exist=True)
    if json:
        return print_json([{"instance": number, "refused": refused} for number, refused in answers.items()])
    done = [number for number, refused in answers.items() if refused is None]
    _print_erased(done, answers)
    _name(elsewhere)
    if len(done) < len(answers) or elsewhere:
        raise typer.Exit(1)
    return None


@app.command("list")
def list_erasures(
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most.")] = 20,
    database: Database = None,
    json: Json = False,
) -> None:
    """List what was erased, newest first: where, by whom and why, never what.

    Example: mutirao erase list
    """

    async def look(engine: Engine) -> list[ErasureRecord]:
        return await engine.erasures(limit)

    found = visit(database, look, must_exist=True)
    if json:
        return print_json(found)
    if not found:
        return console.print("Nothing was erased.", highlight=False)
    listing = Listing("instance", "flow", "erased", "when", "by", "reason", numbers=("instance",), loose=("reason",))
    for each in found:
        what = "all of it" if each.how == "drop" else ", ".join(each.attributes) or "words"
        listing.add_row(str(each.instance), each.flow, what, render.ago(each.at), each.writer, each.reason or "")
    return console.print(listing)


def _listing(found: list[Instance]) -> Listing:
    listing = Listing("id", "flow", "status", "started", numbers=("id",), spare=("started",))
    for each in found[:_LISTED]:
        listing.add_row(str(each.id), each.flow, render.status(each.status), render.ago(each.started_at))
    return listing


def _print_erased(done: list[int], answers: dict[int, str | None]) -> None:
    console.print(
        f"Erased in {counted(len(done), 'instance')}." if answers else "No instance keeps it.", highlight=False
    )
    for number, refused in answers.items():
        if refused is not None:
            why = refused.replace("say that open ones may be blanked too", "say --open")
            console.print(f"Not in {number}: {why}", highlight=False, markup=False, soft_wrap=True)
    if done:
        hint = "Backups, exported files, and the server's own logs still have it; they are for you to deal with."
        console.print(hint, style="dim", highlight=False)


def _name(elsewhere: list[Holder]) -> None:
    for each in elsewhere:
        way_out = (
            f"mutirao schedule drop {shlex.quote(each.name)}"
            if each.what == "schedule"
            else f"mutirao batch stop {each.name}"
        )
        console.print(f"Also in {each.what} {each.name}, which erasing leaves alone: {way_out}", highlight=False)


def _confirm(number: int, *, drop: bool) -> None:
    question = f"{'Drop' if drop else 'Blank it in'} {counted(number, 'instance')}? It cannot be undone."
    if not progress.is_terminal:
        raise RequestError("wrong_call", f"{question} Say --yes, since there is nobody to ask here")
    typer.confirm(question, abort=True, err=True)


async def _found(
    engine: Engine, value: str | None, where: str | None, flow: str | None, *, quiet: bool
) -> tuple[list[int], str]:
    """The instances, and the value they keep."""
    if (value is None) == (where is None):
        raise RequestError("wrong_call", "give either a value, or --where ATTR=VALUE")
    attribute = None
    if where is not None:
        if flow is None:
            raise RequestError("wrong_call", "--where needs --flow: an attribute belongs to a flow")
        attribute, value = search_text(await engine.definition(flow), where)
    sought = Sought(value=value or "", flow=flow, attribute=attribute)
    with counting("Looking", await engine.count_instances(flow), quiet=quiet) as advance:
        return await engine.find_value(sought, advance), sought.value

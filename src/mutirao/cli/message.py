"""`mutirao message`: what persons were told, and what of it they have read."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group, misuse
from mutirao.database.engine import Engine
from mutirao.database.message import MANY, MessageRecord
from mutirao.errors import RequestError

app = typer.Typer(
    cls=Group, add_completion=False, help="What persons were told. Example: mutirao message list --as manager"
)

As = Annotated[str, typer.Option("--as", metavar="PERSON", help="Whose messages.")]


@app.command("list")
def list_messages(
    person: As,
    unread: Annotated[bool, typer.Option("--unread", help="Only those that were not read.")] = False,
    kinds: Annotated[list[str] | None, typer.Option("--kind", metavar="KIND", help="Only of this kind.")] = None,
    before: Annotated[
        int | None, typer.Option("--before", metavar="ID", help="The next page: before this one.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="So many at most.")] = 50,
    database: Database = None,
    json: Json = False,
) -> None:
    """List a person's messages, newest first; those that were not read are marked.

    Example: mutirao message list --as manager --unread
    """

    async def look(engine: Engine) -> tuple[list[MessageRecord], int]:
        number = await engine.persons.number(person)
        page = await engine.messages.page(number, unread=unread, kinds=kinds or None, before=before, limit=limit)
        return page, await engine.messages.unread(number)

    found, number = visit(database, look, must_exist=True)
    if json:
        return print_json({"messages": found, "unread": number})
    console.print(_listing(found) if found else "No messages.", highlight=False)
    return console.print(f"{number}{' or more' if number == MANY else ''} not read", style="dim", highlight=False)


@app.command()
def show(
    number: Annotated[int, typer.Argument(metavar="ID", help="The message's number.")],
    person: As,
    database: Database = None,
    json: Json = False,
) -> None:
    """Show a message in full. It is not marked as read by that.

    Example: mutirao message show 1200 --as manager
    """

    async def look(engine: Engine) -> MessageRecord:
        actor = await engine.persons.number(person)
        for each in await engine.messages.page(actor, before=number + 1, limit=1):
            if each.id == number:
                return each
        raise RequestError("unknown_message", f"{person} has no message {number}")

    found = visit(database, look, must_exist=True)
    if json:
        return print_json(found)
    rows: dict[str, Any] = {
        "message": found.id,
        "kind": found.kind,
        "at": render.moment(found.at),
        "from": found.sender,
    }
    about = {"instance": found.instance, "job": found.job, "task": found.task}
    rows.update({name: value for name, value in about.items() if value is not None})
    rows["read"] = render.moment(found.read_at) or "not yet"
    console.print(render.facts(rows))
    return console.print(Text(f"\n{found.text}"), highlight=False)


@app.command()
def read(
    person: As,
    messages: Annotated[list[int] | None, typer.Argument(metavar="ID", help="Messages by number.")] = None,
    up_to: Annotated[int | None, typer.Option("--up-to", metavar="ID", help="All up to this one.")] = None,
    database: Database = None,
) -> None:
    """Mark messages as read: some, or all up to one.

    Example: mutirao message read --as manager --up-to 1200
    """
    if bool(messages) == (up_to is not None):
        raise misuse("give the numbers of messages, or --up-to")

    async def act(engine: Engine) -> int:
        number = await engine.persons.number(person)
        if up_to is not None:
            return await engine.messages.read_up_to(number, up_to)
        return await engine.messages.read(number, messages or [])

    done = visit(database, act, must_exist=True)
    console.print(Text(f"{counted(done, 'message')} marked as read."))


def _listing(found: Sequence[MessageRecord]) -> Listing:
    listing = Listing(
        "id", "", "at", "kind", "from", "text", numbers=("id",), loose=("text",), wraps=("text",), spare=("from", "at")
    )
    for each in found:
        new = "" if each.read_at else "●"
        listing.add_row(str(each.id), new, render.moment(each.at), each.kind, each.sender, each.text)
    return listing

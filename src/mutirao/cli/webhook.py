"""`mutirao webhook`: messages sent on by HTTP."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, print_json, progress
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.engine import Engine
from mutirao.database.webhook import DeliveryRecord, WebhookAddress, WebhookRecord
from mutirao.errors import RequestError
from mutirao.people.address import AddressRefused, allowed_networks, checked_address
from mutirao.people.webhook import WebhookSender

app = typer.Typer(cls=Group, add_completion=False, help="Messages sent on by HTTP. Example: mutirao webhook list")

_LOOKUP = 5.0

Number = Annotated[int, typer.Argument(metavar="ID", help="The webhook's number.")]


@app.command()
def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where to: http or https.")],
    person: Annotated[
        str | None, typer.Option("--person", metavar="NAME", help="Only this person's messages. Default: everybody's.")
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Only of this kind; repeat it for more.")
    ] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Send messages on to an address; the secret that signs them is made and shown.

    Example: mutirao webhook add https://example.org/hook --kind task_failed --kind deadline
    """

    async def act(engine: Engine) -> tuple[WebhookRecord, WebhookAddress, str | None]:
        number = None if person is None else await engine.persons.number(person)
        made, address = await engine.webhooks.add(None, url, person=number, kinds=kinds or None)
        return made, address, await _doubt(address.url)

    made, address, doubt = visit(database, act)
    if doubt is not None:
        progress.print(Text(f"warning: nothing is sent there: {doubt}", "yellow"), soft_wrap=True)
    if json:
        return print_json({"webhook": made, "address": address})
    return console.print(render.facts({**_facts(made, address), "secret": address.secret}))


async def _doubt(url: str) -> str | None:
    """Why a clock that runs as this command does would not send anything there."""
    found = urlsplit(url)
    port = found.port or (443 if found.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_LOOKUP):
            await checked_address(found.hostname or "", port, allowed_networks())
    except AddressRefused as error:
        return str(error)
    except TimeoutError:
        return f"{found.hostname} is not found within {_LOOKUP:g} s"
    return None


@app.command("list")
def list_webhooks(database: Database = None, json: Json = False) -> None:
    """List webhooks, with how many messages wait and were given up.

    Example: mutirao webhook list
    """
    found = visit(database, lambda engine: engine.webhooks.all(None), must_exist=True)
    if json:
        return print_json(found)
    return console.print(_listing(found) if found else "No webhooks.", highlight=False)


@app.command()
def show(
    number: Number,
    secret: Annotated[bool, typer.Option("--secret", help="The secret too.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="So many deliveries at most.")] = 20,
    database: Database = None,
    json: Json = False,
) -> None:
    """Show a webhook, and what became of the last messages.

    Example: mutirao webhook show 3
    """

    async def look(engine: Engine) -> tuple[WebhookRecord, WebhookAddress, list[DeliveryRecord]]:
        found = await engine.webhooks.get(None, number)
        return (
            found,
            await engine.webhooks.address(None, number),
            await engine.webhooks.deliveries(None, number, limit=limit),
        )

    found, address, deliveries = visit(database, look, must_exist=True)
    told = {"secret": address.secret} if secret else {}
    if json:
        return print_json({"webhook": found, "url": address.url, **told, "deliveries": deliveries})
    console.print(render.facts({**_facts(found, address), **told}))
    if deliveries:
        console.print("\n[bold]Deliveries[/bold]")
        console.print(_deliveries(deliveries), highlight=False)
    return None


@app.command("try")
def try_out(number: Number, database: Database = None) -> None:
    """Send a message that says nothing, from here and now, and tell what came back.

    Example: mutirao webhook try 3
    """

    async def act(engine: Engine) -> DeliveryRecord:
        delivery = await engine.webhooks.try_out(None, number)
        sender = WebhookSender(engine)
        await sender.take(delivery)
        await sender.arrived()
        found = await engine.webhooks.deliveries(None, number, before=delivery + 1, limit=1)
        return found[0]

    found = visit(database, act, must_exist=True)
    if found.error is not None:
        raise RequestError("not_received", f"webhook {number} did not receive it: {found.error}")
    console.print(Text(f"Received; the answer was {found.answer}."))


@app.command()
def retry(
    number: Number,
    delivery: Annotated[
        int | None, typer.Option("--delivery", metavar="ID", help="Only this one, whatever became of it.")
    ] = None,
    database: Database = None,
) -> None:
    """Send again what was given up.

    Example: mutirao webhook retry 3
    """
    again = visit(database, lambda engine: engine.webhooks.retry(None, number, delivery), must_exist=True)
    console.print(Text(f"{counted(again, 'message')} on the way again."))


@app.command()
def pause(number: Number, database: Database = None) -> None:
    """Send nothing until it is resumed; what comes meanwhile is kept.

    Example: mutirao webhook pause 3
    """
    visit(database, lambda engine: engine.webhooks.pause(None, number), must_exist=True)
    console.print(Text(f"Webhook {number} is paused."))


@app.command()
def resume(number: Number, database: Database = None) -> None:
    """Let a paused webhook go on, with what has come meanwhile.

    Example: mutirao webhook resume 3
    """
    visit(database, lambda engine: engine.webhooks.resume(None, number), must_exist=True)
    console.print(Text(f"Webhook {number} goes on."))


@app.command()
def remove(number: Number, database: Database = None) -> None:
    """Take a webhook away, with what it has still to send.

    Example: mutirao webhook remove 3
    """
    visit(database, lambda engine: engine.webhooks.drop(None, number), must_exist=True)
    console.print(Text(f"Webhook {number} is gone."))


def _facts(found: WebhookRecord, address: WebhookAddress) -> dict[str, Any]:
    return {
        "webhook": f"{found.id}{', paused' if found.paused else ''}",
        "url": Text(address.url),
        "whose": found.person or "everybody's",
        "kinds": ", ".join(found.kinds) if found.kinds else "all",
        "made": f"{render.moment(found.made_at)} by {found.made_by}",
        "waiting": f"{found.waiting:,}",
        "given up": f"{found.given_up:,}",
    }


def _listing(found: Sequence[WebhookRecord]) -> Listing:
    listing = Listing(
        "id", "target", "whose", "kinds", "waiting", "given up", "last sent",
        numbers=("id", "waiting", "given up"), loose=("kinds",), spare=("kinds", "last sent"),
    )  # fmt: skip
    for each in found:
        listing.add_row(
            str(each.id),
            each.target,
            each.person or "everybody's",
            ", ".join(each.kinds) if each.kinds else "all",
            "paused" if each.paused else f"{each.waiting:,}",
            f"{each.given_up:,}",
            render.moment(each.sent_at) if each.sent_at else "",
        )
    return listing


def _deliveries(found: Sequence[DeliveryRecord]) -> Listing:
    listing = Listing("id", "kind", "status", "tries", "made", "problem", numbers=("id", "tries"), loose=("problem",))
    for each in found:
        problem = Text(each.error or "", "red")
        listing.add_row(
            str(each.id), each.kind or "trial", each.status, str(each.tries), render.moment(each.made_at), problem
        )
    return listing

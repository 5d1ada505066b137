"""`mutirao setting`: what holds for the whole engine."""

from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.arguments import Reason
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group, misuse
from mutirao.database.engine import Engine
from mutirao.database.setting import SettingRecord
from mutirao.model.value import ENCODER

_UNITS = {
    "reminders": "hours before a deadline",
    "transfer": "hours before a deadline",
    "session_idle_hours": "hours",
    "session_hours": "hours",
    "keep_messages": "days",
}

app = typer.Typer(cls=Group, add_completion=False, help="What holds for all. Example: mutirao setting list")


@app.command("list")
def list_settings(database: Database = None, json: Json = False) -> None:
    """List settings, and who set them last.

    Example: mutirao setting list
    """
    _print(visit(database, lambda engine: engine.settings.all(), must_exist=True), json=json)


@app.command("set")
def set_settings(
    values: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE", help="As JSON: transfer=12, reminders=[36,12,1]. All or none.")
    ],
    reason: Reason = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Set some of them together; who, when and why is kept.

    Example: mutirao setting set reminders=[36,12,1] transfer=12
    """
    changes = dict(_read(each) for each in values)

    async def act(engine: Engine) -> list[SettingRecord]:
        await engine.settings.set(None, changes, reason=reason)
        return await engine.settings.all()

    _print(visit(database, act, must_exist=True), json=json)


@app.command()
def history(
    before: Annotated[
        int | None, typer.Option("--before", metavar="ID", help="The next page: before this one.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="So many at most.")] = 20,
    database: Database = None,
    json: Json = False,
) -> None:
    """Tell who set what, and why, newest first.

    Example: mutirao setting history --limit 5
    """
    found = visit(database, lambda engine: engine.settings.changes(before=before, limit=limit), must_exist=True)
    if json:
        return print_json(found)
    listing = Listing("id", "name", "was", "is", "by", "at", "why", numbers=("id",), loose=("why",), spare=("at",))
    for each in found:
        was, now = (ENCODER.encode(value).decode() for value in (each.before, each.after))
        at = render.moment(each.at)
        listing.add_row(str(each.id), each.name, was, now, Text(each.writer), at, Text(each.reason or ""))
    return console.print(listing if found else "Nothing was set yet.", highlight=False)


def _read(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise misuse(f'"{text}" is no setting: say NAME=VALUE, such as transfer=12')
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        raise misuse(f'the value of "{name}" is not JSON: {value}') from None


def _print(found: list[SettingRecord], *, json: bool) -> None:
    if json:
        return print_json(found)
    listing = Listing("name", "value", "in", "set by", "at", spare=("at", "set by"))
    for each in found:
        at = render.moment(each.set_at) if each.set_at else ""
        value = ENCODER.encode(each.value).decode()
        listing.add_row(each.name, value, _unit(each.name), Text(each.set_by or ""), at)
    return console.print(listing, highlight=False)


def _unit(name: str) -> str:
    """What its number counts. Whatever is called a limit or a quota of files is in bytes."""
    return _UNITS.get(name, "bytes" if name.startswith("file") else "")

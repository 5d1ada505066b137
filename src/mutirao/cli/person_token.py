"""`mutirao person token`: by what programs act as a person."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.listing import Listing
from mutirao.cli.measure import read_period
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.access import TokenRecord
from mutirao.people import add_token

app = typer.Typer(
    cls=Group,
    add_completion=False,
    help="By what programs act as a person: add, list, revoke. Example: mutirao person token list clerk_1",
)

Person = Annotated[str, typer.Argument(metavar="NAME", help="The person's name.")]
Token = Annotated[str, typer.Argument(metavar="TOKEN", help="The token's name, such as the program's.")]


@app.command()
def add(
    person: Person,
    token: Token,
    expires: Annotated[str | None, typer.Option("--expires", metavar="TIME", help="After 90d, for one.")] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Let a program act as a person. The token is shown once, and can be found out by nobody afterwards.

    Example: mutirao person token add clerk_1 printer --expires 90d
    """
    expires_at = None if expires is None else datetime.now(UTC) + read_period(expires)
    made = visit(
        database, lambda engine: add_token(engine, None, person, token, expires_at=expires_at), must_exist=True
    )
    if json:
        return print_json(made)
    return console.print(Text(made.secret), soft_wrap=True)


@app.command("list")
def list_tokens(person: Person, database: Database = None, json: Json = False) -> None:
    """List the tokens of a person: their names, when they expire and when they were used last.

    Example: mutirao person token list clerk_1
    """
    found = visit(database, lambda engine: engine.access.tokens(None, person), must_exist=True)
    if json:
        return print_json(found)
    return console.print(listing(found) if found else "No tokens.", highlight=False)


@app.command()
def revoke(person: Person, token: Token, database: Database = None) -> None:
    """End what a program may do by a token, at once.

    Example: mutirao person token revoke clerk_1 printer
    """
    visit(database, lambda engine: engine.access.revoke_token(None, person, token), must_exist=True)
    console.print(Text(f"{token} is revoked."))


def listing(found: Sequence[TokenRecord]) -> Listing:
    made = Listing("token", "made", "by", "expires", "used", spare=("by", "made"))
    for each in found:
        expires = render.moment_to_come(each.expires_at) if each.expires_at else "never"
        used = render.ago(each.used_at) if each.used_at else "never"
        made.add_row(each.name, render.moment(each.made_at), each.made_by, expires, used)
    return made

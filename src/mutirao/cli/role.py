"""`mutirao role`: what work is offered to, and who is in it. Like `mutirao person`, on the database itself."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.engine import Engine
from mutirao.database.person import PersonFilter
from mutirao.database.role import RoleChange, RoleRecord

app = typer.Typer(cls=Group, add_completion=False, help="What work is offered to. Example: mutirao role list")

Name = Annotated[str, typer.Argument(metavar="ROLE", help="The role's name.")]
Persons = Annotated[list[str], typer.Argument(metavar="PERSON", help="Persons by name.")]
Description = Annotated[str | None, typer.Option("--description", metavar="TEXT", help="What it is for.")]

_SHOWN = 1000


@app.command()
def add(name: Name, description: Description = None, database: Database = None, json: Json = False) -> None:
    """Add a role, with nobody in it yet.

    Example: mutirao role add clerk --description "Answers requests."
    """
    made = visit(database, lambda engine: engine.roles.add(None, name, description=description))
    _print(made, [], json=json)


@app.command("list")
def list_roles(database: Database = None, json: Json = False) -> None:
    """List roles by name, and how many persons are in each.

    Example: mutirao role list
    """
    found = visit(database, lambda engine: engine.roles.all(None), must_exist=True)
    if json:
        return print_json(found)
    return console.print(_listing(found), highlight=False)


@app.command()
def show(name: Name, database: Database = None, json: Json = False) -> None:
    """Show a role, and who is in it.

    Example: mutirao role show clerk
    """

    async def look(engine: Engine) -> tuple[RoleRecord, list[str]]:
        found = await engine.roles.get(None, name)
        members = await engine.persons.page(None, PersonFilter(role=name), limit=_SHOWN)
        return found, [each.name for each in members]

    _print(*visit(database, look, must_exist=True), json=json)


@app.command()
def rename(
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="What it is called from now on.")],
    description: Description = None,
    database: Database = None,
) -> None:
    """Rename a role. Flows that are in place follow; their files have to say the new name when they are applied again.

    Example: mutirao role rename clerk secretary
    """
    change: RoleChange = {"name": new_name}
    if description is not None:
        change["description"] = description or None
    visit(database, lambda engine: engine.roles.change(None, name, change), must_exist=True)
    console.print(Text(f"{name} is called {new_name} now."))


@app.command()
def describe(
    name: Name,
    description: Annotated[str, typer.Argument(metavar="TEXT", help="What it is for; empty: nothing is said.")],
    database: Database = None,
) -> None:
    """Say what a role is for.

    Example: mutirao role describe clerk "Answers requests."
    """
    change: RoleChange = {"description": description or None}
    visit(database, lambda engine: engine.roles.change(None, name, change), must_exist=True)
    console.print(Text(f"{name} is described."))


@app.command()
def remove(name: Name, database: Database = None) -> None:
    """Remove a role that no flow and no open work item needs.

    Example: mutirao role remove clerk
    """
    visit(database, lambda engine: engine.roles.remove(None, name), must_exist=True)
    console.print(Text(f"{name} is removed."))


@app.command()
def put(name: Name, persons: Persons, database: Database = None) -> None:
    """Put persons into a role: they see at once what is offered to it.

    Example: mutirao role put clerk clerk_1 clerk_2
    """
    number = visit(database, lambda engine: engine.roles.put(None, name, persons), must_exist=True)
    console.print(Text(f"{counted(number, 'person')} put into {name}."))


@app.command()
def take(name: Name, persons: Persons, database: Database = None) -> None:
    """Take persons out of a role; what they hold of it goes back to it.

    Example: mutirao role take clerk clerk_2
    """
    number = visit(database, lambda engine: engine.roles.take(None, name, persons), must_exist=True)
    console.print(Text(f"{counted(number, 'person')} taken out of {name}."))


def _print(found: RoleRecord, members: Sequence[str], *, json: bool) -> None:
    if json:
        return print_json({"role": found, "members": members})
    rows = {"role": found.name, "for": found.description or "", "revision": found.revision}
    more = f", and {found.members - _SHOWN:,} more" if found.members > _SHOWN else ""
    return console.print(render.facts({**rows, "members": (", ".join(members) or "none") + more}))


def _listing(found: Sequence[RoleRecord]) -> Listing:
    listing = Listing("name", "members", "description", numbers=("members",), loose=("description",))
    for each in found:
        listing.add_row(each.name, f"{each.members:,}", render.one_line(each.description or ""))
    return listing

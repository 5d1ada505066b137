"""`mutirao worklist filter`: what persons want to see of their lists again and again."""

from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.acting import Person, act_as
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.usage import Group, misuse
from mutirao.database.engine import Engine
from mutirao.database.item import ALL_ITEMS, ItemFilter, SavedFilter
from mutirao.errors import RequestError
from mutirao.model.name import suggest

app = typer.Typer(
    cls=Group, add_completion=False, help="Saved filters. Example: mutirao worklist filter list --as clerk_1"
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="What they call it.")]
UseFilter = Annotated[
    str | None, typer.Option("--filter", metavar="NAME", help="One that they saved; what else is said goes before it.")
]


async def choose_items(engine: Engine, actor: int, saved: str | None, given: dict[str, Any]) -> ItemFilter:
    """What was said (all that is not None), over what was saved."""
    base = ALL_ITEMS if saved is None else await _saved(engine, actor, saved)
    return replace(base, **{name: value for name, value in given.items() if value not in (None, False, {})})


async def _saved(engine: Engine, actor: int, name: str) -> ItemFilter:
    known = {each.name: each.filter for each in await engine.worklists.filters(actor)}
    if name not in known:
        raise RequestError("unknown_filter", f'there is no saved filter "{name}"{suggest(name, list(known))}')
    return known[name]


def read_pairs(given: list[str] | None) -> dict[str, str]:
    return dict(map(_pair, given or ()))


def _pair(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals:
        raise misuse(f'--where is ATTR=VALUE: got "{given}"')
    return name, value


@app.command("list")
def list_filters(person: Person, database: Database = None, json: Json = False) -> None:
    """List the filters that a person has saved, by `mutirao worklist list … --save NAME`.

    Example: mutirao worklist filter list --as clerk_1
    """
    found = act_as(database, person, lambda engine, actor: engine.worklists.filters(actor))
    if json:
        return print_json(found)
    return console.print(_listing(found) if found else "No filters.", highlight=False)


@app.command()
def rename(
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="What they call it now.")],
    person: Person,
    database: Database = None,
) -> None:
    """Call a filter otherwise.

    Example: mutirao worklist filter rename urgent "very urgent" --as clerk_1
    """
    act_as(database, person, lambda engine, actor: engine.worklists.rename_filter(actor, name, new_name))
    console.print(Text(f"Filter {name} is called {new_name}."))


@app.command()
def remove(name: Name, person: Person, database: Database = None) -> None:
    """Forget a filter.

    Example: mutirao worklist filter remove urgent --as clerk_1
    """
    act_as(database, person, lambda engine, actor: engine.worklists.drop_filter(actor, name))
    console.print(Text(f"Filter {name} is removed."))


def _listing(found: list[SavedFilter]) -> Listing:
    listing = Listing("name", "chooses", "saved", loose=("chooses",), spare=("saved",))
    for each in found:
        said = {name: value for name, value in each.filter.document().items() if value != getattr(ALL_ITEMS, name)}
        listing.add_row(Text(each.name), Text(render.state(said) or "all"), render.moment(each.saved_at))
    return listing

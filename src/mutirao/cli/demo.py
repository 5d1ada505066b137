r"""`mutirao demo`: a flow from its first row to its last, step by step, in SQL.

A tour is a file `tour/NAME.sql`: blocks with an empty line between, each a few words in comments and then SQL. As in
psql, `\gset` at the end of a query keeps the columns of its row, for `:column` to stand for later.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.output import console, progress
from mutirao.cli.session import run
from mutirao.database.connection import refusals
from mutirao.database.engine import Engine
from mutirao.errors import MutiraoError, RequestError
from mutirao.model.name import suggest
from mutirao.testing import throwaway_database

app = typer.Typer(add_completion=False)

_KEEP = "\\gset"
_VARIABLE = re.compile(r"(?<![:\w]):([a-z_]+)")


@dataclass(frozen=True)
class Step:
    words: str
    sql: str
    keeps: bool


@dataclass(frozen=True)
class Rows:
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@app.command()
def demo(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which tour. There is: wed.")] = "wed",
    pause: Annotated[
        float | None,
        typer.Option("--pause", min=0, metavar="SECONDS", help="Between two steps. Default: 1.5 to watch."),
    ] = None,
) -> None:
    """Show a flow step by step, in SQL, in a database of its own that is gone afterwards.

    Example: mutirao demo wed --pause 3
    """
    steps = list(_read(_tour(name)))
    run(_show(steps, pause if pause is not None else 1.5 if console.is_terminal else 0.0))


def _tour(name: str) -> str:
    folder = files("mutirao.cli").joinpath("tour")
    known = [file.name.removesuffix(".sql") for file in folder.iterdir() if file.name.endswith(".sql")]
    if name not in known:
        raise RequestError("unknown_tour", f'there is no tour "{name}"{suggest(name, known)}')
    return folder.joinpath(f"{name}.sql").read_text("utf-8")


def _read(tour: str) -> Iterator[Step]:
    for block in tour.strip().split("\n\n"):
        lines = block.splitlines()
        words = " ".join(line.removeprefix("-- ") for line in lines if line.startswith("-- "))
        sql = "\n".join(line for line in lines if not line.startswith("-- "))
        yield Step(words, sql.removesuffix(_KEEP).rstrip(), sql.endswith(_KEEP))


async def _show(steps: Sequence[Step], pause: float) -> None:
    with progress.status("Making a database for the tour …"):
        database = throwaway_database()
        url = await database.__aenter__()
    try:
        async with Engine(url, upgrade=False) as engine, engine.connection() as connection:
            kept: dict[str, Any] = {}
            for step in steps:
                await _take_step(connection, step, kept)
                await asyncio.sleep(pause)
    finally:
        await database.__aexit__(None, None, None)
    console.print(f"\nThat was all. See a worker do such jobs by itself: {calling(None)('up')}", style="dim")


async def _take_step(connection: Any, step: Step, kept: dict[str, Any]) -> None:
    if step.words:
        console.print(Text(f"\n{step.words}", "bold"))
    sql = _VARIABLE.sub(lambda found: str(kept.get(found[1], found[0])), step.sql)
    console.print(Padding(Syntax(sql, "sql", background_color="default", word_wrap=True), (0, 0, 0, 2)))
    try:
        with refusals():
            found = await _execute(connection, sql)
    except MutiraoError as error:
        console.print(Padding(Text(f"refused: {error}", "red"), (0, 0, 0, 2)))
        return
    if found is None:
        return
    if step.keeps:
        kept.update(zip(found.columns, found.rows[0], strict=True))
    console.print(Padding(_listing(found), (1, 0, 0, 2)))


async def _execute(connection: Any, sql: str) -> Rows | None:
    """What the last statement answered, if it is a query."""
    cursor = await connection.execute(sql)
    while cursor.nextset():
        pass
    if cursor.description is None:
        return None
    return Rows([column.name for column in cursor.description], await cursor.fetchall())


def _listing(found: Rows) -> Listing:
    listing = Listing(*found.columns, wraps=found.columns)
    for row in found.rows:
        listing.add_row(*map(_shown, row))
    return listing


def _shown(value: Any) -> str:
    match value:
        case datetime():
            return render.moment(value)
        case list():
            return ", ".join(map(str, value))
        case None:
            return ""
        case _:
            return render.value(value)

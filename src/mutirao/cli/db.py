"""`mutirao db`: the database underneath."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from psycopg import AsyncConnection
from rich.table import Table

from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, human_size, print_json, progress
from mutirao.cli.usage import Group
from mutirao.database import backup as files
from mutirao.database import migrate, overview
from mutirao.database.address import resolve
from mutirao.database.client import command
from mutirao.database.connection import connect

app = typer.Typer(cls=Group, add_completion=False, help="The database underneath. Example: mutirao db status")

Result = TypeVar("Result")

# A refusal comes out of functions that call each other; which, is of no use to whoever made the request.
_ONE_LINE_ERRORS = ("-v", "SHOW_CONTEXT=never")


@app.command()
def status(database: Database = None, json: Json = False) -> None:
    """Show the server, the schema's version and the sizes.

    Example: mutirao db status --json
    """
    address = resolve(database)
    found = _with_connection(database, overview.overview)
    if json:
        print_json({"where": str(address), **_plain(found)})
    else:
        console.print(_facts(str(address), found))
        if found.tables:
            console.print(_sizes(found))


@app.command()
def upgrade(database: Database = None) -> None:
    """Bring the schema up to date. Safe to run from any number of places at once.

    Example: mutirao db upgrade --database postgresql://mutirao@db.example.org/mutirao
    """
    applied = _with_connection(database, migrate.upgrade)
    for step in applied:
        console.print(f"applied {step}", highlight=False)
    console.print(f"The schema is up to date: {migrate.schema().migrations[-1]}.", highlight=False)


@app.command(context_settings={"ignore_unknown_options": True})
def shell(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[PSQL ARGUMENTS]", help="Passed on to psql.")
    ] = None,
    database: Database = None,
) -> None:
    """Open psql on the database.

    Example: mutirao db shell -- -c "select * from mutirao.migration"
    """
    address = resolve(database)
    with address as url:
        if address.is_embedded:
            asyncio.run(_bring_up_to_date(url))
        words, environment = command("psql", url, *_ONE_LINE_ERRORS, *(arguments or []))
        # Ctrl-C cancels a query in psql; it must not end us, who keep the server running for it.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            code = subprocess.run(words, env=environment, check=False).returncode  # noqa: S603 our own psql
        finally:
            signal.signal(signal.SIGINT, before)
    sys.exit(code)


async def _bring_up_to_date(url: str) -> None:
    async with await connect(url) as connection:
        await migrate.upgrade(connection)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")],
    database: Database = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write everything of Mutirão's in the database to a file.

    Example: mutirao db backup friday.mutirao
    """
    with resolve(database) as url, _reporting("Saving") as report:
        size = asyncio.run(files.backup(url, file, force=force, report=report))
    console.print(f"Saved to {file} ({human_size(size)}).", highlight=False)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `mutirao db backup` wrote.")],
    database: Database = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the database.")] = False,
) -> None:
    """Bring a backup into an empty database, whole or not at all, from any server to any other.

    Example: mutirao db restore friday.mutirao --database postgresql://mutirao@db.example.org/mutirao
    """
    with resolve(database) as url, _reporting("Restoring") as report:
        asyncio.run(files.restore(url, file, force=force, report=report))
    console.print("Restored. Run `mutirao db upgrade` if this Mutirão is newer than the backup.", highlight=False)


Role = Annotated[str, typer.Argument(metavar="ROLE", help="A role of the database.")]


@app.command()
def grant(
    role: Role,
    level: Annotated[
        Literal["read", "work", "define"],
        typer.Argument(help="read: look. work: also start instances and do jobs. define: also make flows."),
    ],
    database: Database = None,
) -> None:
    """Say what a role of the database may do.

    Example: mutirao db grant shop_worker work
    """
    _with_connection(database, lambda connection: overview.grant(connection, role, level))
    console.print(f"{role} may now {level}.", highlight=False)


@app.command()
def revoke(role: Role, database: Database = None) -> None:
    """Take back whatever a role of the database was granted.

    Example: mutirao db revoke shop_worker
    """
    _with_connection(database, lambda connection: overview.revoke(connection, role))
    console.print(f"What {role} was granted is taken back.", highlight=False)


def _with_connection(database: str | None, action: Callable[[AsyncConnection[Any]], Awaitable[Result]]) -> Result:
    async def act(url: str) -> Result:
        async with await connect(url) as connection:
            return await action(connection)

    with resolve(database) as url:
        return asyncio.run(act(url))


@contextmanager
def _reporting(what: str) -> Iterator[Callable[[str], None]]:
    with progress.status(f"{what} …") as shown:
        yield lambda line: shown.update(f"{what} … [dim]{line}[/dim]")


def _plain(found: overview.Overview) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__dataclass_fields__}


def _facts(where: str, found: overview.Overview) -> Table:
    table = Table(show_header=False, box=None)
    schema = "none" if found.schema is None else f"{found.schema:04d}"
    rows = {
        "server": f"PostgreSQL {found.server}",
        "where": where,
        "role": found.role,
        "size": human_size(found.bytes),
        "schema": f"{schema} of {found.program:04d}",
        "pending": ", ".join(found.pending) or "nothing",
    }
    for name, value in rows.items():
        table.add_row(f"[bold]{name}[/bold]", value)
    return table


def _sizes(found: overview.Overview) -> Table:
    table = Table("table", "rows, about", "size")
    for column in table.columns[1:]:
        column.justify = "right"
    for size in found.tables:
        table.add_row(size.name, f"{size.rows:,}", human_size(size.bytes))
    return table

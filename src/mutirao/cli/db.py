"""`mutirao db`: the database underneath."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import typer
from psycopg import AsyncConnection

from mutirao.cli import render
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, print_json, progress
from mutirao.cli.usage import Group
from mutirao.database import backup as files
from mutirao.database import migrate, overview
from mutirao.database.address import resolve, without_password
from mutirao.database.client import command
from mutirao.database.connection import connect
from mutirao.errors import OperatorError

app = typer.Typer(cls=Group, add_completion=False, help="The database underneath. Example: mutirao db status")

Result = TypeVar("Result")
Action: TypeAlias = Callable[[AsyncConnection[Any]], Coroutine[Any, Any, Result]]

# A refusal comes out of functions that call each other; which, is of no use to whoever made the request.
_ONE_LINE_ERRORS = ("-v", "SHOW_CONTEXT=never")

# So many tables that a backup leaves out are named.
_NAMED = 5

# What people ask the size of; the others are the engine's own business and small.
_MAIN_TABLES = ("instance", "job", "closed", "trace", "search", "flow", "version")


@app.command()
def status(database: Database = None, json: Json = False) -> None:
    """Show the server, the schema's version and the sizes.

    Example: mutirao db status --json
    """
    address = resolve(database, must_exist=True)
    with address as url:
        found = asyncio.run(_connected(url, overview.overview))
    if json:
        return print_json({"where": str(address), "url": url, **_plain(found)})
    console.print(_facts(str(address), url, found))
    if found.tables:
        console.print()
        console.print(_sizes(found.tables))
    return None


@app.command("url")
def show_url(database: Database = None, json: Json = False) -> None:
    """Print the address that any client of PostgreSQL can connect to; a password only with --json.

    Example: mutirao db url
    """
    address = resolve(database, must_exist=True)
    with address as url:
        if json:
            return print_json({"url": url})
    console.print(without_password(url), highlight=False, markup=False, soft_wrap=True)
    if address.is_embedded and console.is_terminal:
        clock = calling(database)("clock")
        line = f"It answers as long as some mutirao process uses it: keep `{clock}` running meanwhile."
        progress.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)
    return None


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
    """As far as we can: whoever has to mend the schema needs the shell most."""
    try:
        await _connected(url, migrate.upgrade)
    except OperatorError as error:
        progress.print(f"warning: {error}", style="yellow", highlight=False, markup=False, soft_wrap=True)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")],
    database: Database = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write everything of Mutirão's in the database to a file.

    Example: mutirao db backup friday.mutirao
    """
    with resolve(database, must_exist=True) as url, _reporting("Saving") as report:
        size = asyncio.run(files.backup(url, file, force=force, report=report))
        others = asyncio.run(files.left_out(url))
    console.print(f"Saved to {file} ({render.size(size)}).", highlight=False)
    if others:
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        whole = calling(database)("db url")
        line = f"Not in it: {', '.join(others[:_NAMED])}{more}. To save those too, pg_dump what `{whole}` says."
        console.print(line, highlight=False, markup=False, soft_wrap=True)


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
    upgrading = calling(database)("db upgrade")
    line = f"Restored. Run `{upgrading}` if this Mutirão is newer than the backup."
    console.print(line, highlight=False, markup=False, soft_wrap=True)


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
    _with_connection(database, lambda connection: overview.grant(connection, role, level), must_exist=True)
    console.print(f"{role} may now {level}.", highlight=False)


@app.command()
def revoke(role: Role, database: Database = None) -> None:
    """Take back whatever a role of the database was granted.

    Example: mutirao db revoke shop_worker
    """
    _with_connection(database, lambda connection: overview.revoke(connection, role), must_exist=True)
    console.print(f"What {role} was granted is taken back.", highlight=False)


def _with_connection(database: str | None, action: Action[Result], *, must_exist: bool = False) -> Result:
    with resolve(database, must_exist=must_exist) as url:
        return asyncio.run(_connected(url, action))


async def _connected(url: str, action: Action[Result]) -> Result:
    async with await connect(url) as connection:
        return await action(connection)


@contextmanager
def _reporting(what: str) -> Iterator[Callable[[str], None]]:
    with progress.status(f"{what} …") as shown:
        yield lambda line: shown.update(f"{what} … [dim]{line}[/dim]")


def _plain(found: overview.Overview) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__dataclass_fields__}


def _facts(where: str, url: str, found: overview.Overview) -> Any:
    return render.facts(
        {
            "server": f"PostgreSQL {found.server}",
            "where": where,
            "url": without_password(url),
            "role": found.role,
            "size": render.size(found.bytes),
            "schema": _schema(found),
            **({"problem": found.problem} if found.problem else {"pending": ", ".join(found.pending) or "nothing"}),
        }
    )


def _schema(found: overview.Overview) -> str:
    if found.schema is None:
        return f"none; this program has {found.program:04d}"
    if found.schema == found.program:
        return f"{found.schema:04d}" if found.problem else f"{found.schema:04d}, this program's"
    age = "newer" if found.schema > found.program else "older"
    return f"{found.schema:04d}, {age} than this program ({found.program:04d})"


def _sizes(tables: Sequence[overview.TableSize]) -> Listing:
    """Those that matter, in the order of their names above; the rest in one line."""
    listing = Listing("table", "rows", "size", numbers=("rows", "size"))
    known = {each.name: each for each in tables}
    for table in (known.pop(name) for name in _MAIN_TABLES if name in known):
        listing.add_row(table.name, _rows(table), render.size(table.bytes))
    if known:
        size = render.size(sum(each.bytes for each in known.values()))
        listing.add_row(f"and {counted(len(known), 'small one')} of the engine's", "", size)
    return listing


def _rows(table: overview.TableSize) -> str:
    if table.rows is None:
        return "?"
    return f"{table.rows:,}" if table.is_exact else f"about {table.rows:,}"

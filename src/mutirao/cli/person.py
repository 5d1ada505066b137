"""`mutirao person`: who may do work and see it. It works on the database itself, as whoever runs the engine."""

import shlex
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from mutirao.cli import person_token, render
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.measure import read_moment
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, print_json
from mutirao.cli.secret_input import PasswordStdin, read_password
from mutirao.cli.session import visit
from mutirao.cli.usage import Group, misuse
from mutirao.database.access import SessionRecord, TokenRecord
from mutirao.database.engine import Engine
from mutirao.database.person import Away, PersonChange, PersonFilter, PersonRecord
from mutirao.people import reset_password, set_password
from mutirao.people.password import check_password

app = typer.Typer(cls=Group, add_completion=False, help="Who may come in. Example: mutirao person list")
app.add_typer(person_token.app, name="token")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The person's name.")]
FullName = Annotated[str | None, typer.Option("--full-name", metavar="TEXT", help="What others call them.")]
Email = Annotated[str | None, typer.Option("--email", metavar="ADDRESS", help="Their e-mail address.")]
Revision = Annotated[
    int | None, typer.Option("--revision", metavar="NUMBER", help="Only if nothing has changed since this one.")
]


@app.command()
def add(
    name: Name,
    full_name: FullName = None,
    email: Email = None,
    roles: Annotated[list[str] | None, typer.Option("--role", metavar="ROLE", help="Put them into it.")] = None,
    from_stdin: PasswordStdin = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Add a person. They can sign in once they have a password.

    Example: mutirao person add clerk_1 --role clerk
    """
    password = read_password(name, from_stdin=True) if from_stdin else None
    if password is not None:
        check_password(name, password)  # before anything is done

    async def act(engine: Engine) -> PersonRecord:
        made = await engine.persons.add(None, name, full_name=full_name, email=email, roles=roles or [])
        if password is not None:
            await set_password(engine, None, made.id, password)
        return made

    _print_person(visit(database, act), json=json)
    if password is None and not json:
        command = calling(database)(f"person password {shlex.quote(name)}")
        console.print(Text(f"No password yet: {command}", "dim"), soft_wrap=True)


@app.command("list")
def list_persons(
    role: Annotated[str | None, typer.Option("--role", metavar="ROLE", help="Only those in it.")] = None,
    search: Annotated[str | None, typer.Option("--search", metavar="TEXT", help="Only with this in the name.")] = None,
    here: Annotated[bool, typer.Option("--here", help="Only those who are active: signed in and seen lately.")] = False,
    disabled: Annotated[bool, typer.Option("--disabled", help="Only those who are disabled.")] = False,
    after: Annotated[str | None, typer.Option("--after", metavar="NAME", help="The next page: after this.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="So many at most.")] = 100,
    database: Database = None,
    json: Json = False,
) -> None:
    """List persons by name, with their roles and how many work items they hold and are alone offered.

    Example: mutirao person list --role clerk --here
    """
    chosen = PersonFilter(role, search, is_here=here or None, is_disabled=disabled or None)
    found = visit(database, lambda engine: engine.persons.page(None, chosen, after=after, limit=limit), must_exist=True)
    if json:
        return print_json(found)
    return console.print(_listing(found) if found else "No persons.", highlight=False)


@app.command()
def show(name: Name, database: Database = None, json: Json = False) -> None:
    """Show a person, where they are signed in, and the tokens of their programs.

    Example: mutirao person show clerk_1
    """

    async def look(engine: Engine) -> tuple[PersonRecord, list[SessionRecord], list[TokenRecord]]:
        found = await engine.persons.get(None, name)
        return found, await engine.access.sessions(None, found.id), await engine.access.tokens(None, found.id)

    found, sessions, tokens = visit(database, look, must_exist=True)
    if json:
        return print_json({"person": found, "sessions": sessions, "tokens": tokens})
    _print_person(found, json=False)
    for session in sessions:
        where = ", ".join(part for part in (session.address, session.agent) if part)
        console.print(Text(f"signed in {render.ago(session.made_at)}, seen {render.ago(session.seen_at)}: {where}"))
    return console.print(person_token.listing(tokens)) if tokens else None


@app.command()
def change(
    name: Name,
    new_name: Annotated[str | None, typer.Option("--name", metavar="NEW", help="What they sign in with.")] = None,
    full_name: FullName = None,
    email: Email = None,
    revision: Revision = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Change what is known of a person; an empty text takes it away. The trace keeps the names it was signed with.

    Example: mutirao person change clerk_1 --email clerk_1@example.org
    """
    wanted: PersonChange = {}
    if new_name is not None:
        wanted["name"] = new_name
    if full_name is not None:
        wanted["full_name"] = full_name or None
    if email is not None:
        wanted["email"] = email or None
    if not wanted:
        raise misuse("say what to change: --name, --full-name or --email")
    changed = visit(
        database, lambda engine: engine.persons.change(None, name, wanted, revision=revision), must_exist=True
    )
    _print_person(changed, json=json)


@app.command()
def disable(name: Name, revision: Revision = None, database: Database = None, json: Json = False) -> None:
    """Let a person do nothing any more: sessions and tokens end, what they hold goes back to its role.

    Example: mutirao person disable clerk_1
    """

    async def act(engine: Engine) -> tuple[PersonRecord, PersonRecord]:
        before = await engine.persons.get(None, name)
        return before, await engine.persons.disable(None, name, revision=revision)

    before, after = visit(database, act, must_exist=True)
    if json:
        return print_json(after)
    items = (before.holds or 0) + (before.offered or 0)
    given_back = f"; {counted(items, 'work item')} given back" if items else ""
    return console.print(Text(f"{name} is disabled{given_back}."))


@app.command()
def enable(name: Name, revision: Revision = None, database: Database = None, json: Json = False) -> None:
    """Let a disabled person sign in again, with the password they had.

    Example: mutirao person enable clerk_1
    """
    enabled = visit(database, lambda engine: engine.persons.enable(None, name, revision=revision), must_exist=True)
    if json:
        return print_json(enabled)
    return console.print(Text(f"{name} is enabled."))


@app.command()
def password(name: Name, from_stdin: PasswordStdin = False, database: Database = None) -> None:
    """Give a person a password; their sessions end. It is asked for, or read from stdin.

    Example: mutirao person password clerk_1
    """
    new = read_password(name, from_stdin=from_stdin)
    visit(database, lambda engine: set_password(engine, None, name, new), must_exist=True)
    console.print(Text(f"{name} has a new password."))


@app.command("reset-password")
def reset(name: Name, database: Database = None, json: Json = False) -> None:
    """Give a person a random password, shown once; for whoever forgot theirs, or the administrator who did.

    Example: mutirao person reset-password clerk_1
    """
    new = visit(database, lambda engine: reset_password(engine, None, name), must_exist=True)
    if json:
        return print_json({"name": name, "password": new})
    return console.print(Text(f"The password of {name} is now {new}"), soft_wrap=True)


@app.command()
def away(
    name: Name,
    from_at: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Default: from now on.")] = None,
    until_at: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Default: until `back`.")] = None,
    substitute: Annotated[
        str | None, typer.Option("--substitute", metavar="NAME", help="Who sees their work meanwhile.")
    ] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Say that a person is away, and who does their work meanwhile.

    Example: mutirao person away clerk_1 --until 2031-12-24 --substitute clerk_2
    """
    since = None if from_at is None else read_moment(from_at)
    until = None if until_at is None else read_moment(until_at)
    said = Away(since, until, substitute)
    found = visit(database, lambda engine: engine.persons.away(None, name, said), must_exist=True)
    _print_person(found, json=json)


@app.command()
def back(name: Name, database: Database = None, json: Json = False) -> None:
    """Say that a person is not away, and will not be.

    Example: mutirao person back clerk_1
    """
    found = visit(database, lambda engine: engine.persons.away(None, name, None), must_exist=True)
    _print_person(found, json=json)


@app.command("sign-out")
def sign_out(name: Name, database: Database = None) -> None:
    """Sign a person out everywhere. Tokens stay.

    Example: mutirao person sign-out clerk_1
    """
    ended = visit(database, lambda engine: engine.access.end_sessions(None, name), must_exist=True)
    console.print(Text(f"{name} is signed out; {counted(ended, 'session')} ended."))


def _print_person(found: PersonRecord, *, json: bool) -> None:
    if json:
        return print_json(found)
    return console.print(render.facts(_facts(found)))


def _facts(found: PersonRecord) -> dict[str, Any]:
    rows: dict[str, Any] = {"person": found.name, "number": found.id}
    if found.full_name:
        rows["full name"] = found.full_name
    if found.email:
        rows["e-mail"] = found.email
    rows["roles"] = ", ".join(found.roles) or "none"
    rows["is"] = _standing(found)
    rows["work items"] = f"holds {found.holds or 0:,}, alone offered {found.offered or 0:,}"
    rows["added"] = f"{render.moment(found.made_at)} by {found.made_by}"
    rows["revision"] = found.revision
    return rows


def _standing(found: PersonRecord) -> Text:
    if found.disabled_at:
        return Text(f"disabled since {render.moment(found.disabled_at)}", "red")
    words = "here" if found.here else f"seen {render.ago(found.seen_at)}" if found.seen_at else "never seen"
    if found.away_from:
        until = f" until {render.moment_to_come(found.away_until)}" if found.away_until else ""
        substitute = f", {found.substitute} stands in" if found.substitute else ""
        words += f", away from {render.moment_to_come(found.away_from)}{until}{substitute}"
    return Text(words)


def _listing(found: Sequence[PersonRecord]) -> Listing:
    listing = Listing(
        "name", "full name", "roles", "is", "holds", "offered",
        numbers=("holds", "offered"), loose=("roles", "is"), spare=("full name", "offered"),
    )  # fmt: skip
    for each in found:
        counts = (f"{each.holds or 0:,}", f"{each.offered or 0:,}")
        listing.add_row(each.name, each.full_name or "", ", ".join(each.roles), _standing(each), *counts)
    return listing

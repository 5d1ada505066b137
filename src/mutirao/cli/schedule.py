"""`mutirao schedule`: flows that a clock starts again and again."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.arguments import Assignments
from mutirao.cli.assignment import read_assignments
from mutirao.cli.listing import Listing
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.engine import Engine
from mutirao.database.record import ScheduleRecord
from mutirao.database.schedule import Schedule
from mutirao.errors import RequestError

app = typer.Typer(cls=Group, add_completion=False, help="Flows started by the clock. Example: mutirao schedule list")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


@app.command()
def add(
    name: Name,
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")],
    cron: Annotated[str, typer.Argument(metavar="CRON", help='Such as "0 6 * * mon-fri" or @daily.')],
    values: Assignments = None,
    zone: Annotated[str, typer.Option("--zone", help="Whose clocks; such as Europe/Berlin.")] = "UTC",
    missed: Annotated[str, typer.Option("--missed", help="skip, once or all.")] = "once",
    overlap: Annotated[str, typer.Option("--overlap", help="allow or skip.")] = "allow",
    time_to: Annotated[
        str | None, typer.Option("--time-to", metavar="ATTR", help="The attribute that receives the time.")
    ] = None,
    priority: Annotated[int, typer.Option("--priority", min=-1_000_000, max=1_000_000, help="Higher goes first.")] = 0,
    database: Database = None,
    json: Json = False,
) -> None:
    """Let a clock start a flow whenever a cron pattern says so; the same again changes nothing.

    Example: mutirao schedule add report sales "0 6 * * mon-fri" region=north --zone America/Sao_Paulo
    """

    async def act(engine: Engine) -> tuple[ScheduleRecord, list[datetime]]:
        definition = await engine.definition(flow)
        files = {each.name for each in definition.attributes if each.type == "file"}
        if given := [word for word in values or () if re.split(":?=", word, maxsplit=1)[0] in files]:
            raise RequestError(
                "wrong_call", f'"{given[0]}": a schedule gives no files; let a task of the flow fetch it'
            )
        state = read_assignments(definition, values)
        wanted = Schedule(name, flow, cron, zone, state, priority, missed, overlap, time_to)  # type: ignore[arg-type]
        return await _with_times(engine, await engine.schedules.put(wanted))

    _print(visit(database, act), json=json)


@app.command("list")
def list_schedules(database: Database = None, json: Json = False) -> None:
    """List schedules, those that fire next first.

    Example: mutirao schedule list
    """
    found = visit(database, lambda engine: engine.schedules.all(), must_exist=True)
    if json:
        return print_json(found)
    return console.print(_listing(found) if found else "No schedules.", highlight=False)


@app.command()
def show(name: Name, database: Database = None, json: Json = False) -> None:
    """Show a schedule, and the next five times that it fires.

    Example: mutirao schedule show report
    """

    async def look(engine: Engine) -> tuple[ScheduleRecord, list[datetime]]:
        return await _with_times(engine, await engine.schedules.get(name))

    _print(visit(database, look, must_exist=True), json=json)


@app.command()
def pause(name: Name, database: Database = None) -> None:
    """Let it start nothing until it is resumed; times that pass meanwhile are not missed.

    Example: mutirao schedule pause report
    """
    visit(database, lambda engine: engine.schedules.pause(name), must_exist=True)
    console.print(Text(f"{name} is paused."))


@app.command()
def resume(name: Name, database: Database = None) -> None:
    """Let a paused schedule go on.

    Example: mutirao schedule resume report
    """

    async def act(engine: Engine) -> ScheduleRecord:
        await engine.schedules.resume(name)
        return await engine.schedules.get(name)

    found = visit(database, act, must_exist=True)
    console.print(Text(f"{name} fires next {_moment(found.next_at, found.zone)}."))


@app.command()
def drop(name: Name, database: Database = None) -> None:
    """Take a schedule away; what it has started goes on.

    Example: mutirao schedule drop report
    """
    visit(database, lambda engine: engine.schedules.drop(name), must_exist=True)
    console.print(Text(f"{name} is gone."))


async def _with_times(engine: Engine, found: ScheduleRecord) -> tuple[ScheduleRecord, list[datetime]]:
    return found, await engine.schedules.times(found.cron, found.zone)


def _print(told: tuple[ScheduleRecord, list[datetime]], *, json: bool) -> None:
    found, times = told
    if json:
        return print_json({"schedule": found, "times": times})
    console.print(render.facts(_facts(found)))
    console.print("\n[bold]Next[/bold]" + (" (when it is resumed)" if found.paused else ""))
    for at in times:
        console.print(f"  {_moment(at, found.zone)}", highlight=False)
    return None


def _facts(found: ScheduleRecord) -> dict[str, Any]:
    rows: dict[str, Any] = {
        "schedule": f"{found.name}{', paused' if found.paused else ''}",
        "starts": found.flow,
        "cron": f"{found.cron}, {found.zone}",
        "state": render.state(found.state) or "as the flow has it",
        "missed": found.missed,
        "overlap": found.overlap,
        "runs": f"{found.runs:,}",
    }
    if found.time_to:
        rows["time to"] = found.time_to
    if found.last_at:
        rows["last"] = f"{_moment(found.last_at, found.zone)}, instance {found.last_instance}"
    if found.problem:
        rows["problem"] = Text(f"{found.problem['code']}: {found.problem['message']}", "red")
    return rows


def _listing(found: Sequence[ScheduleRecord]) -> Listing:
    listing = Listing(
        "name", "flow", "cron", "next", "runs", "last", numbers=("runs",), loose=("last",), spare=("runs", "flow")
    )
    for each in found:
        following = "paused" if each.paused else _moment(each.next_at, each.zone)
        last = Text(f"instance {each.last_instance}" if each.last_instance else "")
        if each.problem:
            last = Text(f"{each.problem['code']}: {each.problem['message']}", "red")
        listing.add_row(each.name, each.flow, f"{each.cron} {each.zone}", following, f"{each.runs:,}", last)
    return listing


def _moment(at: datetime | None, zone: str) -> str:
    """As the clocks of its zone show it."""
    if at is None:
        return ""
    try:
        return at.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M %Z")
    except (ZoneInfoNotFoundError, OSError):  # the server knows it, this machine does not
        return at.strftime("%Y-%m-%d %H:%M %Z")

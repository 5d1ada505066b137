"""`mutirao retention`: how long finished instances are kept."""

from itertools import groupby
from typing import Annotated, Literal

import typer

from mutirao.cli import render
from mutirao.cli.arguments import Reason
from mutirao.cli.listing import Listing
from mutirao.cli.measure import read_moment, read_period
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, counting, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.batch import Batch, Filter
from mutirao.database.engine import Engine
from mutirao.database.record import RetentionRecord

app = typer.Typer(
    cls=Group, add_completion=False, help="How long finished instances are kept. Example: mutirao retention list"
)

Flow = Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")]
Status = Annotated[
    Literal["completed", "terminated", "aborted"] | None,
    typer.Option("--status", help="Only those that ended so. Default: all."),
]


@app.command("set")
def set_rule(
    flow: Flow,
    period: Annotated[str, typer.Argument(metavar="PERIOD", help="Such as 90d, 12h or 1y.")],
    status: Status = None,
    export: Annotated[
        bool, typer.Option("--export", help="Drop only what `mutirao export` has written to a file.")
    ] = False,
    database: Database = None,
) -> None:
    """Say how long finished instances of a flow are kept. Clocks drop them then, beside the running work.

    Example: mutirao retention set travel 90d --status completed
    """
    kept = read_period(period)
    action = "export" if export else "drop"
    visit(database, lambda engine: engine.keep(flow, kept, status=status, action=action), must_exist=True)
    what = f"{status} instances" if status else "finished instances"
    then = "dropped, once they are exported" if export else "dropped"
    console.print(f"From now on, {what} of {flow} are kept for {render.span(kept)} and then {then}.", highlight=False)


@app.command()
def remove(flow: Flow, status: Status = None, database: Database = None) -> None:
    """Keep finished instances of a flow for ever again.

    Example: mutirao retention remove travel
    """
    visit(database, lambda engine: engine.keep(flow, None, status=status), must_exist=True)
    what = f"{status} instances" if status else "finished instances"
    console.print(f"From now on, {what} of {flow} are kept for ever.", highlight=False)


@app.command()
def drop(
    flow: Flow,
    closed_before: Annotated[
        str,
        typer.Option("--closed-before", metavar="TIME", help="Such as 2031-12-24, or 90d for: more than 90 days ago."),
    ],
    status: Status = None,
    reason: Reason = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Drop finished instances by hand, once, as a batch that is recorded and can be stopped and resumed.

    Example: mutirao retention drop travel --closed-before 2031-01-01 --reason "the old shop"
    """

    async def act(engine: Engine) -> Batch:
        chosen = Filter(flow=flow, status=f"closed.{status}" if status else None)
        made = await engine.drop_instances(chosen, closed_before=read_moment(closed_before), reason=reason)
        seen = 0
        with counting("Dropping", made.total, quiet=json) as advance:

            def tell(batch: Batch) -> None:
                nonlocal seen
                advance(batch.seen - seen)
                seen = batch.seen

            return await engine.drive_batch(made.id, tell)

    done = visit(database, act, must_exist=True)
    if json:
        return print_json(done)
    line = f"Batch {done.id}: {counted(done.done, 'finished instance')} of {flow} dropped, {done.skipped:,} younger ones kept."
    return console.print(line, highlight=False)


@app.command("list")
def list_rules(database: Database = None, json: Json = False) -> None:
    """List how long finished instances are kept. Those of a flow that is not listed stay for ever.

    Example: mutirao retention list
    """

    async def look(engine: Engine) -> list[RetentionRecord]:
        return await engine.retention()

    found = visit(database, look, must_exist=True)
    if json:
        return print_json(found)
    if not found:
        return console.print("All finished instances are kept for ever.", highlight=False)
    listing = Listing("flow", "status", "kept for", "then", "set by", spare=("set by",))
    for (flow, period, action, by), rules in groupby(
        found, lambda each: (each.flow, each.period, each.action, each.set_by)
    ):
        then = "dropped" if action == "drop" else "dropped when exported"
        listing.add_row(flow, ", ".join(rule.status for rule in rules), render.span(period), then, by)
    return console.print(listing)

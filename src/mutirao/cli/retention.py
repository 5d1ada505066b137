"""`mutirao retention`: how long finished instances are kept."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Annotated, Literal

import typer

from mutirao.cli import render
from mutirao.cli.arguments import Yes
from mutirao.cli.listing import Listing
from mutirao.cli.many import ask
from mutirao.cli.measure import read_past, read_period
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, counting, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.batch import Batch, Filter
from mutirao.database.engine import Engine
from mutirao.database.keep import FINISHED
from mutirao.database.record import RetentionRecord

app = typer.Typer(
    cls=Group, add_completion=False, help="How long finished instances are kept. Example: mutirao retention list"
)

Flow = Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")]
Status = Annotated[
    Literal["completed", "terminated", "aborted"] | None,
    typer.Option("--status", help="Only those that ended so. Default: all."),
]

_LONG_AGO = timedelta(days=365 * 1000)
"""Before that nothing ended, and not much further back Python's years do."""


@app.command("set")
def set_rule(
    flow: Flow,
    period: Annotated[str, typer.Argument(metavar="PERIOD", help="Such as 90d, 12h or 1y.")],
    status: Status = None,
    export: Annotated[
        bool, typer.Option("--export", help="Drop only what `mutirao export` has written to a file.")
    ] = False,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Say how long finished instances of a flow are kept. Clocks drop them then, beside the running work.

    Without --status it is about all of them, and replaces what was said of one status.

    Example: mutirao retention set travel 90d --status completed
    """
    kept = read_period(period)
    action = "export" if export else "drop"
    what = f"{status} instances" if status else "finished instances"

    async def put(engine: Engine) -> None:
        before = datetime.now(UTC) - min(kept, _LONG_AGO)
        number = await engine.count_finished(flow, before, status=status, exported=export)
        replaced = [] if status else _special([each for each in await engine.retention() if each.flow == flow])
        doubts = [
            f"This replaces the rule that {each.status} ones are kept for {render.span(each.period)}."
            for each in replaced
        ]
        if number:
            doubts.append(f"{_of(flow, number)} ended longer ago than {render.span(kept)}, to be dropped at once.")
        if doubts:
            ask(" ".join(doubts), yes=yes)
        await engine.keep(flow, kept, status=status, action=action)

    visit(database, put, must_exist=True)
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
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Kept with the batch.")] = None,
    yes: Yes = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Drop finished instances by hand, once, as a batch that is recorded and can be stopped and resumed.

    Example: mutirao retention drop travel --closed-before 2031-01-01 --reason "the old shop"
    """
    before = read_past(closed_before)

    async def act(engine: Engine) -> Batch:
        chosen = Filter(flow=flow, status=f"closed.{status}" if status else None)
        if number := await engine.count_finished(flow, before, status=status):
            ask(f"{_of(flow, number)} will be dropped, and cannot be had again.", yes=yes)
        made = await engine.drop_instances(chosen, closed_before=before, reason=reason)
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


def _special(rules: Sequence[RetentionRecord]) -> list[RetentionRecord]:
    """Those that were set for one status: a rule for all is the same for each, or was until one was set apart."""
    if len(rules) < len(FINISHED):
        return list(rules)
    [(general, _)] = Counter((each.period, each.action) for each in rules).most_common(1)
    return [each for each in rules if (each.period, each.action) != general]


def _of(flow: str, number: int) -> str:
    return f"{counted(number, 'finished instance')} of {flow}"

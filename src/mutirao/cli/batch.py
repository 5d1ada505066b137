"""`mutirao batch`: what is done to many instances, how far it has come, and what was refused."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.many import done_word, follow, told
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.batch import Batch, BatchRefusal
from mutirao.database.engine import Engine

app = typer.Typer(cls=Group, add_completion=False, help="Many instances at once. Example: mutirao batch list")

_SOME = 5

BatchId = Annotated[int, typer.Argument(metavar="ID", help="The batch's number.")]


@app.command("list")
def list_batches(
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most.")] = 20,
    database: Database = None,
    json: Json = False,
) -> None:
    """List batches, newest first.

    Example: mutirao batch list
    """
    found = visit(database, lambda engine: engine.batches(limit=limit), must_exist=True)
    if json:
        return print_json(found)
    if not found:
        return console.print("No batches.", highlight=False)
    listing = Listing(
        "batch", "kind", "flow", "status", "done", "of", "refused", "made", "by", "why",
        numbers=("batch", "done", "of", "refused"), loose=("why",), spare=("by", "made", "flow"),
    )  # fmt: skip
    for each in found:
        counts = (
            f"{each.done:,}",
            "" if each.total is None else f"{each.total:,}",
            f"{each.refused:,}" if each.refused else "",
        )
        made = (render.ago(each.made_at), Text(each.made_by), Text(each.reason or ""))
        listing.add_row(str(each.id), each.kind, Text(each.flow or ""), each.status, *counts, *made)
    return console.print(listing)


@app.command()
def show(batch: BatchId, database: Database = None, json: Json = False) -> None:
    """Show a batch: what, to which, by whom and why, how far it has come, and what was refused.

    Example: mutirao batch show 3
    """

    async def look(engine: Engine) -> tuple[Batch, list[BatchRefusal]]:
        return await engine.batch(batch), await engine.batch_refusals(batch)

    found, refusals = visit(database, look, must_exist=True)
    if json:
        return print_json({"batch": found, "refusals": refusals})
    console.print(_facts(found))
    if refusals:
        console.print("\n[bold]Refused[/bold]")
        console.print(_refused(refusals))
        if found.refused > len(refusals):
            console.print(f"and {found.refused - len(refusals):,} more, of which only the number is kept", style="dim")
    return None


@app.command()
def stop(batch: BatchId, database: Database = None) -> None:
    """Stop a batch where it is. What is done stays done.

    Example: mutirao batch stop 3
    """

    async def act(engine: Engine) -> Batch:
        await engine.stop_batch(batch)
        return await engine.batch(batch)

    console.print(told(visit(database, act, must_exist=True)), soft_wrap=True)
    console.print(f"To go on: {calling(database)(f'batch resume {batch}')}", highlight=False, soft_wrap=True)


@app.command()
def resume(batch: BatchId, database: Database = None) -> None:
    """Take up a batch where it was left, or lend a hand to one that runs, and see it through.

    Example: mutirao batch resume 3
    """

    async def act(engine: Engine) -> None:
        found = await engine.batch(batch)
        if not found.is_running:
            await engine.resume_batch(batch)
        await follow(engine, found, calling(database))

    visit(database, act, must_exist=True)


def _refused(refusals: Sequence[BatchRefusal]) -> Listing:
    """By what was said, the most frequent first; each with some of the instances that it was said of."""
    alike: dict[tuple[str, str], list[int]] = {}
    for each in refusals:
        message = _of_any(each.message, each.instance)
        alike.setdefault((each.code, message), []).append(each.instance)
    listing = Listing("instances", "code", "why", "which", numbers=("instances",), wraps=("why",), loose=("which",))
    for (code, message), instances in sorted(alike.items(), key=lambda each: -len(each[1])):
        which = ", ".join(map(str, instances[:_SOME])) + (", …" if len(instances) > _SOME else "")
        listing.add_row(f"{len(instances):,}", code, Text(message), which)
    return listing


def _of_any(message: str, instance: int) -> str:
    """What would be said of another instance as well."""
    rest = re.sub(rf" of instance {instance}\b", "", message.removeprefix(f"instance {instance}: "))
    return re.sub(rf"\binstance {instance}\b", "it", rest)


def _facts(batch: Batch) -> Any:
    rows: dict[str, Any] = {
        "batch": f"{batch.id}: {batch.kind}",
        "to": ", ".join(f"{name} {render.value(value)}" for name, value in batch.filter.items()),
        **{name: render.value(value) for name, value in batch.arguments.items()},
        "status": f"{batch.status} ({batch.note})" if batch.note else batch.status,
        done_word(batch.kind): f"{batch.done:,}" if batch.total is None else f"{batch.done:,} of {batch.total:,}",
        "left alone": f"{batch.skipped:,}",
        "refused": f"{batch.refused:,}",
        "made": f"{render.moment(batch.made_at)} by {batch.made_by}",
    }
    if batch.reason:
        rows["why"] = batch.reason
    if batch.ended_at:
        rows["ended"] = render.moment(batch.ended_at)
    return render.facts(rows)

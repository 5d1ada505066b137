"""What a command does to many instances: it says how many, asks, and shows how far it has come.

The work is a batch, which goes on without the command; so Ctrl-C leaves it running and says how to stop it.
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

import typer
from rich.text import Text

from mutirao.cli.invocation import Invocation
from mutirao.cli.output import console, counted, counting, progress
from mutirao.database.batch import Batch, Filter
from mutirao.database.engine import Engine
from mutirao.errors import RequestError

REFUSED = 1

_DONE = {
    "cancel": "cancelled",
    "suspend": "suspended",
    "resume": "resumed",
    "set": "changed",
    "repair": "repaired",
    "retry": "tried again",
    "skip": "skipped",
    "roll_back": "rolled back",
    "start_task": "given a job of that task",
    "go_back": "taken back to that task",
    "migrate": "moved",
    "drop": "dropped",
    "look": "reopened",
}


@dataclass(frozen=True)
class Order:
    """Do this to those."""

    kind: str
    chosen: Filter
    change: dict[str, Any] | None = None
    task: str | None = None
    safe_point: str | None = None
    reason: str | None = None


def done_word(kind: str) -> str:
    return _DONE.get(kind, "done")


async def carry_out(engine: Engine, order: Order, call: Invocation, *, yes: bool) -> None:
    """Count, ask, and do it."""
    asked: dict[str, Any] = {"change": order.change, "task": order.task, "safe_point": order.safe_point}
    number = await engine.count_batch(order.kind, order.chosen, **asked)
    if not number:
        return console.print("No instances fit.", highlight=False)
    ask(f"{counted(number, 'instance')} will be {done_word(order.kind)}.", yes=yes)
    made = await engine.make_batch(order.kind, order.chosen, **asked, reason=order.reason)
    return await follow(engine, made, call)


def ask(what: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise RequestError("wrong_call", f"{what} Nobody is there to be asked: say --yes")
    typer.confirm(f"{what} Go on?", abort=True, err=True)


async def follow(engine: Engine, batch: Batch, call: Invocation) -> None:
    """Drive it to its end, and say what came of it."""
    ended = await _with_bar(engine, batch, call)
    console.print(told(ended), soft_wrap=True)
    if ended.refused or ended.status == "failed":
        console.print(f"More about it: {call(f'batch show {batch.id}')}", highlight=False, soft_wrap=True)
        raise typer.Exit(REFUSED)


async def _with_bar(engine: Engine, batch: Batch, call: Invocation) -> Batch:
    seen = 0

    def show(found: Batch) -> None:
        nonlocal seen
        advance(found.seen - seen)
        seen = found.seen

    try:
        with counting(f"Batch {batch.id}", batch.total) as advance:
            return await engine.drive_batch(batch.id, show)
    except asyncio.CancelledError:
        line = f"Batch {batch.id} goes on wherever a clock runs. To stop it: {call(f'batch stop {batch.id}')}"
        progress.print(
            f"{line}\nTo see it through: {call(f'batch resume {batch.id}')}", highlight=False, soft_wrap=True
        )
        raise


def told(batch: Batch) -> Text:
    """Such as: Batch 3 finished: 12 instances cancelled, 1 refused."""
    parts = [f"{counted(batch.done, 'instance')} {done_word(batch.kind)}"]
    if batch.refused:
        parts.append(f"{batch.refused:,} refused")
    if batch.skipped:
        parts.append(f"{batch.skipped:,} left alone")
    why = f" ({batch.note})" if batch.note and batch.status in ("failed", "stopped") else ""
    return Text(f"Batch {batch.id} {batch.status}{why}: {', '.join(parts)}")

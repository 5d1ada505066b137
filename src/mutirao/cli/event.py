"""`mutirao event`: what happened outside, for the instances that have a key."""

import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.arguments import Assignments, Reason
from mutirao.cli.file import read_change
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, counting, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.database.engine import Engine
from mutirao.database.record import Event, Sent
from mutirao.database.start import in_batches
from mutirao.errors import RequestError

app = typer.Typer(
    cls=Group, add_completion=False, help="What happened outside. Example: mutirao event send order A-17 paid=true"
)

_SHOWN = 20

Flow = Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")]

OnlyIf = Annotated[
    str | None,
    typer.Option(
        "--only-if", metavar="CONDITION", help="A condition on the instance; where it does not hold, nothing is set."
    ),
]


@app.command()
def send(
    flow: Flow,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key that the instance was started with.")],
    values: Assignments = None,
    event: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The event's own id: of one id only one event is written.")
    ] = None,
    only_if: OnlyIf = None,
    reason: Reason = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Set attributes of the instance that has a key; conditions are looked at again.

    Example: mutirao event send order A-17 paid=true --id bank-4711 --only-if "not paid"
    """

    async def act(engine: Engine) -> Sent:
        change = await read_change(engine, await engine.definition(flow), values)
        if not change:
            raise RequestError("wrong_call", "nothing to set: write attribute=value")
        return await engine.send(flow, Event(key, change, event), only_if=only_if, reason=reason)

    answer = visit(database, act, must_exist=True)
    if json:
        return print_json(answer)
    return console.print(_told(answer), soft_wrap=True)


@app.command()
def load(
    flow: Flow,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines; - is standard input.")],
    only_if: OnlyIf = None,
    reason: Reason = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Send many events, one a line: {"key": "A-17", "change": {"paid": true}, "id": "bank-4711"}.

    What is refused changes nothing and keeps no other from being written; the command then exits with 1.

    Example: mutirao event load order payments.jsonl
    """
    try:
        with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as lines:
            events = [_read(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    except OSError as error:
        raise RequestError("no_such_file", f"{file}: {error.strerror}") from None

    async def act(engine: Engine) -> list[Sent]:
        answers: list[Sent] = []
        with counting("Sending", len(events), quiet=json) as advance:
            for batch in in_batches(events):
                answers += await engine.send_many(flow, batch, only_if=only_if, reason=reason)
                advance(len(batch))
        return answers

    answers = visit(database, act, must_exist=True)
    refused = [answer for answer in answers if answer.outcome == "refused"]
    if json:
        print_json(answers)
    else:
        counts = Counter(answer.outcome.replace("_", " ") for answer in answers)
        told = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
        console.print(f"{counted(len(answers), 'event')}: {told or 'none'}.", highlight=False)
        for answer in refused[:_SHOWN]:
            console.print(_told(answer), soft_wrap=True)
    if refused:
        raise typer.Exit(1)


def _read(number: int, line: bytes) -> Event:
    try:
        return msgspec.json.decode(line, type=Event)
    except msgspec.MsgspecError as error:
        raise RequestError(
            "wrong_call", f'line {number} is no event: {error}; write {{"key": …, "change": {{…}}, "id": …}}'
        ) from None


def _told(answer: Sent) -> Text:
    match answer.outcome:
        case "done":
            return Text(f"Set instance {answer.instance}.")
        case "repeated":
            return Text(f"Event {answer.event} was written before, to instance {answer.instance}: nothing has changed.")
        case "not_now":
            saw = ", ".join(f"{name} is {render.value(value)}" for name, value in (answer.saw or {}).items())
            return Text(f"Not now: {saw}; instance {answer.instance} is as it was.", "yellow")
        case _:
            return Text(f"{answer.key}: {answer.code}: {answer.message}", "red")

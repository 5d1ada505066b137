"""`mutirao instance start`: by whoever operates the engine, or as a person who is then in charge."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Annotated, get_args

import typer

from mutirao.cli import render
from mutirao.cli.arguments import After, Assignments, At, Reason
from mutirao.cli.file import read_change
from mutirao.cli.measure import read_due
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counting, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import misuse
from mutirao.database.charge import Creation
from mutirao.database.engine import Engine
from mutirao.database.record import Instance
from mutirao.database.start import BATCH
from mutirao.errors import RequestError
from mutirao.model.name import suggest
from mutirao.model.offer import Policy, PolicyKind

_POLICIES: tuple[PolicyKind, ...] = get_args(PolicyKind)
_AT_ONCE = 2 * BATCH  # the engine starts two batches side by side


Key = Annotated[str | None, typer.Option("--key", help="What you call it. A key that has an instance starts none.")]
Starter = Annotated[
    str | None, typer.Option("--as", metavar="PERSON", help="Who starts it, and is in charge: of the creator role.")
]
InCharge = Annotated[
    str | None, typer.Option("--in-charge", metavar="PERSON", help="With --as: somebody else is in charge.")
]
Policies = Annotated[
    list[str] | None,
    typer.Option("--policy", metavar="TASK=POLICY", help="With --as: approve=round_robin, or pay=not_as:approve."),
]


def start(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")],
    values: Assignments = None,
    count: Annotated[int, typer.Option("--count", min=1, help="How many, all alike.")] = 1,
    priority: Annotated[int, typer.Option("--priority", min=-1_000_000, max=1_000_000, help="Higher goes first.")] = 0,
    key: Key = None,
    at: At = None,
    after: After = None,
    person: Starter = None,
    in_charge: InCharge = None,
    policies: Policies = None,
    reason: Reason = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Start an instance of a flow, or many; now or later. Attributes not given have their defaults, plan=@plan.pdf sends a file.

    Example: mutirao instance start travel destination=Lisbon --count 10

    As a person: mutirao instance start travel --as clerk_1 --policy approve=least_loaded
    """
    if key is not None and count > 1:
        raise RequestError("wrong_call", "one key is one instance: leave --count out")
    if person is None and (in_charge or policies or reason):
        raise misuse("--in-charge, --policy and --reason go with --as: a person starts it")
    due_at = read_due(at, after)
    chosen = dict(map(_policy, policies or ()))

    async def begin(engine: Engine) -> tuple[list[int], Instance | None]:
        actor = None if person is None else await engine.persons.number(person)
        definition = await engine.definition(flow)
        found = None if key is None else await engine.keyed(flow, key)
        if found is not None and actor is None:
            return [found.id], found
        state = await read_change(engine, definition, values, actor)
        new = Creation(
            flow=flow, state=state, key=key, policies=chosen, in_charge=in_charge, priority=priority, at=due_at
        )
        return await _start_all(engine, actor, new, count, reason, quiet=json), found

    started, found = visit(database, begin)
    if json:
        return print_json({"flow": flow, "instances": started, "started": found is None})
    if found is not None:
        line = f"Key {key} of {flow} is instance {found.id} already, {found.status}."
        return console.print(line, markup=False, highlight=False)
    return _print_started(started, flow, key, "Started" if due_at is None else _later(render.moment_to_come(due_at)))


async def _start_all(
    engine: Engine, actor: int | None, new: Creation, count: int, reason: str | None, *, quiet: bool
) -> list[int]:
    started: list[int] = []
    with counting("Starting", count, quiet=quiet) as advance:
        for portion in _portions(count, 1 if actor is not None else _AT_ONCE):
            started += await _start(engine, actor, new, portion, reason)
            advance(portion)
    return started


async def _start(engine: Engine, actor: int | None, new: Creation, count: int, reason: str | None) -> list[int]:
    if actor is not None:
        return [await engine.charges.create(actor, new, reason=reason)]
    keys = None if new.key is None else [new.key]
    return await engine.start_named(new.flow, repeat(new.state, count), priority=new.priority, keys=keys, at=new.at)


def _policy(word: str) -> tuple[str, Policy]:
    task, equals, policy = word.partition("=")
    kind, _, other = policy.partition(":")
    for known in _POLICIES:
        if equals and kind == known:
            return task, Policy(known, other or None)
    meant = suggest(kind, _POLICIES) if equals else ""
    raise misuse(f'--policy "{word}" is none{meant}; write approve=round_robin, or pay=not_as:approve')


def _portions(count: int, most: int) -> Iterator[int]:
    for begun in range(0, count, most):
        yield min(most, count - begun)


def _later(moment: str) -> str:
    return f"To start {moment}:"


def _print_started(started: Sequence[int], flow: str, key: str | None, when: str) -> None:
    many = f"{len(started):,} instances, {started[0]} to {started[-1]},"
    which = f"instance {started[0]}" if len(started) == 1 else many
    named = "" if key is None else f", key {key}"
    console.print(f"{when} {which} of {flow}{named}.", markup=False, highlight=False)

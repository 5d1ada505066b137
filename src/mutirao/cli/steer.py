"""What `mutirao instance` does to instances that are there: to one by its number, or to all that are chosen."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.text import Text

from mutirao.cli.arguments import IdsAndAssignments, Reason, Revision, Yes
from mutirao.cli.chosen import OF_JOBS, choosing
from mutirao.cli.file import read_change
from mutirao.cli.invocation import calling
from mutirao.cli.many import Order, carry_out
from mutirao.cli.options import Database
from mutirao.cli.output import console
from mutirao.cli.reason import standing
from mutirao.cli.session import visit
from mutirao.database.batch import Filter
from mutirao.database.engine import Engine
from mutirao.database.record import Instance
from mutirao.errors import RequestError

Act = Callable[[Engine, int], Awaitable[None]]
OfTask = Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")]


@choosing(but=("ids", *OF_JOBS))
def set_attributes(
    chosen: Filter,
    words: IdsAndAssignments = None,
    reason: Reason = None,
    revision: Revision = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Change attributes from outside; conditions are looked at again.

    Example: mutirao instance set 17 hotel=Seaside --reason "by telephone"

    Or of many: mutirao instance set --flow travel --where "hotel is null" hotel=Seaside

    What happened outside is better sent, by key and once: mutirao event send --help
    """
    ids, values = apart(words)
    if not values:
        raise RequestError("wrong_call", "nothing to set: write attribute=value")
    chosen = replace(chosen, ids=ids)

    async def one(engine: Engine, instance: int) -> None:
        await engine.set(instance, await _change(engine, instance, values), reason=reason)

    _steer(database, Order("set", chosen, reason=reason), one, values=values, revision=revision, yes=yes)


@choosing(but=("ids", "status", *OF_JOBS))
def repair(
    chosen: Filter,
    words: IdsAndAssignments = None,
    reason: Reason = None,
    revision: Revision = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Correct instances that are exceptions. Their failed jobs go, and fire again where their conditions hold.

    Example: mutirao instance repair 17 destination=Lisbon

    Or many: mutirao instance repair --flow travel --exception nothing_fires destination=Lisbon
    """
    ids, values = apart(words)
    chosen = replace(chosen, ids=ids)

    async def one(engine: Engine, instance: int) -> None:
        await engine.repair(instance, await _change(engine, instance, values), reason=reason)

    order = Order("repair", chosen, reason=reason)
    if not _is_single(chosen):
        order = replace(order, chosen=replace(chosen, status="open.exception"))
    _steer(database, order, one, values=values, revision=revision, yes=yes)


@choosing()
def cancel(
    chosen: Filter,
    undo: Annotated[bool, typer.Option("--undo", help="Undo what they have done, by their compensations.")] = False,
    reason: Reason = None,
    revision: Revision = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Stop instances: what runs may finish, nothing else starts. With --undo, what they have done is undone.

    Example: mutirao instance cancel 17 --reason "ordered twice"

    Or many: mutirao instance cancel --flow travel --status open.exception
    """
    order = Order("roll_back" if undo else "cancel", chosen, reason=reason)
    _steer(database, order, lambda e, i: e.cancel(i, undo=undo, reason=reason), revision=revision, yes=yes)


@choosing()
def roll_back(
    chosen: Filter,
    to: Annotated[str | None, typer.Option("--to", metavar="TASK", help="Back to this safe-point.")] = None,
    reason: Reason = None,
    revision: Revision = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Undo what instances have done, the last first: all of it, or back to a safe-point, from which they go on.

    Example: mutirao instance roll-back 17 --to packed
    """
    order = Order("roll_back", chosen, safe_point=to, reason=reason)
    _steer(database, order, lambda e, i: e.roll_back(i, to, reason=reason), revision=revision, yes=yes)


@choosing()
def start_task(
    task: OfTask,
    chosen: Filter,
    reason: Reason = None,
    revision: Revision = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Start a task by hand, whether or not its condition holds.

    Example: mutirao instance start-task call_customer 17
    """
    order = Order("start_task", chosen, task=task, reason=reason)
    _steer(database, order, lambda e, i: e.start_task(i, task, reason=reason), revision=revision, yes=yes)


@choosing()
def go_back(
    task: OfTask,
    chosen: Filter,
    reason: Reason = None,
    revision: Revision = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Start a task again that has ended, as if nothing had followed it. Nothing is undone.

    Example: mutirao instance go-back check_order 17
    """
    order = Order("go_back", chosen, task=task, reason=reason)
    _steer(database, order, lambda e, i: e.go_back(i, task, reason=reason), revision=revision, yes=yes)


@choosing()
def suspend(
    chosen: Filter,
    reason: Reason = None,
    revision: Revision = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Interrupt instances until they are resumed: what runs may finish.

    Example: mutirao instance suspend 17
    """
    _steer(
        database,
        Order("suspend", chosen, reason=reason),
        lambda e, i: e.suspend(i, reason=reason),
        revision=revision,
        yes=yes,
    )


@choosing(but=("status", *OF_JOBS))
def resume(
    chosen: Filter,
    reason: Reason = None,
    revision: Revision = None,
    yes: Yes = False,
    database: Database = None,
) -> None:
    """Let interrupted instances go on.

    Example: mutirao instance resume 17
    """
    order = Order("resume", chosen, reason=reason)
    if not _is_single(chosen):
        order = replace(order, chosen=replace(chosen, status="open.notrunning.suspended"))
    _steer(database, order, lambda e, i: e.resume(i, reason=reason), revision=revision, yes=yes)


def apart(words: list[str] | None) -> tuple[tuple[int, ...] | None, list[str]]:
    """Numbers are instances, the rest are assignments."""
    ids = tuple(int(word) for word in words or () if word.isdecimal())
    return ids or None, [word for word in words or () if not word.isdecimal()]


def _is_single(chosen: Filter) -> bool:
    return chosen.ids is not None and chosen == Filter(ids=chosen.ids) and len(chosen.ids) == 1


def _steer(
    database: str | None,
    order: Order,
    one: Act,
    *,
    values: list[str] | None = None,
    revision: int | None,
    yes: bool,
) -> None:
    if order.chosen == Filter():
        raise RequestError("wrong_call", "say which: instances by their numbers, or --flow")
    call = calling(database)
    if not _is_single(order.chosen):
        if revision is not None:
            raise RequestError(
                "wrong_call", "--revision is of one instance: say its number, and nothing else to choose by"
            )

        async def all_of_them(engine: Engine) -> None:
            change = await _common_change(engine, order.chosen, values) if values else None
            await carry_out(engine, replace(order, change=change), call, yes=yes)

        return visit(database, all_of_them, must_exist=True)
    [instance] = order.chosen.ids or ()

    async def steer(engine: Engine) -> tuple[Instance, Instance]:
        before = await engine.instance(instance)
        async with engine.unless_changed(instance, revision):
            await one(engine, instance)
        return before, await engine.instance(instance)

    before, found = visit(database, steer, must_exist=True)
    line = Text(f"Instance {instance} ").append_text(standing(found, before, call))
    return console.print(line, soft_wrap=True)


async def _change(engine: Engine, instance: int, values: list[str]) -> dict[str, Any]:
    found = await engine.instance(instance)
    return await read_change(engine, await engine.definition(found.flow, found.version), values)


async def _common_change(engine: Engine, chosen: Filter, values: list[str]) -> dict[str, Any]:
    """Read by the flow that was named, or by that of the first instance."""
    if chosen.flow is None:
        return await _change(engine, (chosen.ids or (0,))[0], values)
    return await read_change(engine, await engine.definition(chosen.flow, chosen.version), values)

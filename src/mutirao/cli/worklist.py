"""`mutirao worklist`: what a person may do and holds. Whoever runs the command acts for the person named with --as."""

import shlex
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text

from mutirao.cli import render, worklist_filter, worklist_page
from mutirao.cli.acting import Person, act_as
from mutirao.cli.arguments import Assignments, Reason
from mutirao.cli.file import read_change
from mutirao.cli.invocation import calling
from mutirao.cli.measure import read_due, read_moment
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.usage import Group, misuse
from mutirao.cli.worklist_filter import UseFilter, choose_items, read_pairs
from mutirao.database.engine import Engine
from mutirao.database.item import ItemCount, ItemPage, ItemView, Taken
from mutirao.errors import RequestError

app = typer.Typer(cls=Group, add_completion=False, help="What persons do. Example: mutirao worklist list --as clerk_1")
app.add_typer(worklist_filter.app, name="filter")

Job = Annotated[int, typer.Argument(metavar="ITEM", help="The number of the work item.")]
Recipient = Annotated[str, typer.Argument(metavar="PERSON", help="The person's name.")]
Flow = Annotated[str | None, typer.Option("--flow", metavar="FLOW", help="Only of this flow.")]
Where = Annotated[list[str] | None, typer.Option("--where", metavar="ATTR=VALUE", help="Of a searchable attribute.")]
Sort = Annotated[str | None, typer.Option("--sort", help="arrival (the default), priority, deadline, size or hand.")]
Descending = Annotated[bool, typer.Option("--descending", help="The other way round.")]
Lock = Annotated[bool, typer.Option("--lock", help="To do it away from the engine.")]


@app.command("list")
def list_items(
    person: Person,
    sort: Sort = None,
    descending: Descending = False,
    status: Annotated[str | None, typer.Option("--status", help="ready, running (held by them) or all.")] = None,
    flow: Flow = None,
    task: Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only of this task.")] = None,
    instance: Annotated[int | None, typer.Option("--instance", metavar="ID", help="Only of this instance.")] = None,
    priority: Annotated[int | None, typer.Option("--priority", metavar="N", help="Of this priority or more.")] = None,
    role: Annotated[str | None, typer.Option("--role", metavar="ROLE", help="Only for this role.")] = None,
    text: Annotated[str | None, typer.Option("--search", metavar="TEXT", help="In names, descriptions, keys.")] = None,
    where: Where = None,
    due_before: Annotated[str | None, typer.Option("--due-before", metavar="TIME", help="Such as 2027-01-31.")] = None,
    overdue: Annotated[bool, typer.Option("--overdue", help="Only what should have been done.")] = False,
    saved: UseFilter = None,
    save: Annotated[str | None, typer.Option("--save", metavar="NAME", help="Keep this filter by a name.")] = None,
    after: Annotated[str | None, typer.Option("--after", metavar="CURSOR", help="The next page.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="So many at most.")] = 50,
    database: Database = None,
    json: Json = False,
) -> None:
    """List what a person may do and holds.

    Example: mutirao worklist list --as clerk_1 --sort deadline --status ready

    Kept, and again: mutirao worklist list --as clerk_1 --overdue --save late; mutirao worklist list --as clerk_1 --filter late
    """
    due = None if due_before is None else read_moment(due_before)
    given: dict[str, Any] = {"sort": sort, "descending": descending}
    given |= {"status": status, "role": role, "priority": priority, "due_before": due, "overdue": overdue}
    given |= {"flow": flow, "task": task, "instance": instance, "text": text, "attributes": read_pairs(where)}

    async def look(engine: Engine, actor: int) -> tuple[ItemPage, list[ItemCount]]:
        chosen = await choose_items(engine, actor, saved, given)
        if save is not None:
            await engine.worklists.save_filter(actor, save, chosen)
        page = await engine.worklists.page(actor, chosen, after=after, limit=limit)
        return page, await engine.worklists.counts(actor)

    page, counts = act_as(database, person, look)
    if json:
        return print_json({"items": page.items, "next": page.next})
    return worklist_page.print_page(page, counts)


@app.command()
def show(job: Job, person: Person, database: Database = None, json: Json = False) -> None:
    """Show an item in full: what it is given, what it is to write, what was said and done about it.

    Example: mutirao worklist show 12 --as clerk_1
    """
    view = act_as(database, person, lambda engine, actor: engine.worklists.show(actor, job))
    return print_json(view) if json else worklist_page.print_item(view)


@app.command()
def select(job: Job, person: Person, lock: Lock = False, database: Database = None, json: Json = False) -> None:
    """Take an item: it leaves everybody else's list.

    Example: mutirao worklist select 12 --as clerk_1
    """
    attempt = act_as(database, person, lambda engine, actor: engine.worklists.select(actor, job, lock=lock))
    _print_taken(Taken(job, attempt), person, json=json)


@app.command("next")
def take_next(
    person: Person,
    sort: Sort = None,
    descending: Descending = False,
    flow: Flow = None,
    saved: UseFilter = None,
    lock: Lock = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Take the first item that nobody else is taking.

    Example: mutirao worklist next --as clerk_1 --sort priority
    """

    async def act(engine: Engine, actor: int) -> Taken | None:
        given = {"sort": sort, "descending": descending, "flow": flow}
        chosen = await choose_items(engine, actor, saved, given)
        return await engine.worklists.next(actor, chosen, lock=lock)

    _print_taken(act_as(database, person, act), person, json=json)


@app.command("lock")
def lock_item(job: Job, person: Person, database: Database = None, json: Json = False) -> None:
    """Take an item to do it away from the engine, if its task allows that.

    Example: mutirao worklist lock 12 --as technician_1
    """
    select(job, person, lock=True, database=database, json=json)


@app.command("return")
def give_back(job: Job, person: Person, reason: Reason = None, database: Database = None) -> None:
    """Give an item back undone.

    Example: mutirao worklist return 12 --as clerk_1 --reason "no time"
    """
    act_as(database, person, lambda engine, actor: engine.worklists.give_back(actor, job, reason=reason))
    console.print(Text(f"Item {job} is for its role again."))


@app.command()
def finish(job: Job, person: Person, values: Assignments = None, database: Database = None) -> None:
    """Finish an item with what it writes; photo=@desk.jpg sends a file.

    Example: mutirao worklist finish 12 approved=true --as clerk_1
    """
    select_first = _select_first(database, job, person)

    async def act(engine: Engine, actor: int) -> str:
        view = await _held(engine, actor, job, select_first)
        version = (await engine.instance(view.item.instance)).version
        change = await read_change(engine, await engine.definition(view.item.flow, version), values, actor)
        return await engine.worklists.finish(actor, job, view.item.attempt or 0, change)

    parked = act_as(database, person, act) == "parked"
    console.print(Text(f"Item {job} is done{', and is written when other jobs have ended' if parked else ''}."))


@app.command()
def fail(
    job: Job,
    person: Person,
    error: Annotated[str, typer.Option("--error", metavar="TEXT", help="Why it cannot be done.")],
    database: Database = None,
) -> None:
    """Finish an item as failed.

    Example: mutirao worklist fail 12 --error "the form is empty" --as clerk_1
    """
    select_first = _select_first(database, job, person)

    async def act(engine: Engine, actor: int) -> str:
        view = await _held(engine, actor, job, select_first)
        return await engine.worklists.fail(actor, job, view.item.attempt or 0, error)

    act_as(database, person, act)
    console.print(Text(f"Item {job} has failed."))


@app.command()
def delegate(job: Job, recipient: Recipient, person: Person, reason: Reason = None, database: Database = None) -> None:
    """Offer an item to one other person alone.

    Example: mutirao worklist delegate 12 clerk_2 --as clerk_1
    """
    act_as(database, person, lambda engine, actor: engine.worklists.delegate(actor, job, recipient, reason=reason))
    console.print(Text(f"Item {job} is offered to {recipient}."))


@app.command()
def insert(job: Job, recipient: Recipient, person: Person, database: Database = None) -> None:
    """Put an item into somebody's list as well.

    Example: mutirao worklist insert 12 technician_1 --as manager
    """
    act_as(database, person, lambda engine, actor: engine.worklists.insert(actor, job, recipient))
    console.print(Text(f"Item {job} is in the list of {recipient}."))


@app.command()
def remove(job: Job, recipient: Recipient, person: Person, database: Database = None) -> None:
    """Take an item out of somebody's list, and out of their hands.

    Example: mutirao worklist remove 12 clerk_2 --as manager
    """
    act_as(database, person, lambda engine, actor: engine.worklists.remove(actor, job, recipient))
    console.print(Text(f"Item {job} is not in the list of {recipient} any more."))


@app.command()
def move(
    job: Job,
    person: Person,
    before: Annotated[int | None, typer.Option("--before", metavar="ITEM", help="Just before this one.")] = None,
    after: Annotated[int | None, typer.Option("--after", metavar="ITEM", help="Just after this one.")] = None,
    swap: Annotated[int | None, typer.Option("--swap", metavar="ITEM", help="In exchange with this one.")] = None,
    database: Database = None,
) -> None:
    """Move an item in the order made by hand, which `--sort hand` shows.

    Example: mutirao worklist move 12 --before 7 --as clerk_1
    """
    if len([each for each in (before, after, swap) if each is not None]) != 1:
        raise misuse("say one of --before, --after and --swap")

    async def act(engine: Engine, actor: int) -> None:
        if swap is not None:
            await engine.worklists.exchange(actor, job, swap)
        else:
            await engine.worklists.move(actor, job, before=before, after=after)

    act_as(database, person, act)
    console.print(Text(f"Item {job} is moved."))


@app.command()
def extend(
    job: Job,
    person: Person,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="To be done by 2031-12-24T18:00.")] = None,
    after: Annotated[str | None, typer.Option("--in", metavar="TIME", help="To be done within 2h or 3d.")] = None,
    reason: Reason = None,
    database: Database = None,
) -> None:
    """Give an item another deadline: the person in charge may, and administrators.

    Example: mutirao worklist extend 12 --in 3d --reason "parts are late" --as manager
    """
    finish_by = read_due(at, after)
    if finish_by is None:
        raise misuse("say by when: --at 2031-12-24T18:00, or --in 3d")
    act_as(database, person, lambda engine, actor: engine.deadlines.extend(actor, job, finish_by, reason=reason))
    console.print(Text(f"Item {job} is to be done by {render.moment_to_come(finish_by)}."))


@app.command()
def comment(
    job: Job,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What there is to say.")],
    person: Person,
    database: Database = None,
) -> None:
    """Say something about an item.

    Example: mutirao worklist comment 12 "who signs this?" --as clerk_1
    """
    number = act_as(database, person, lambda engine, actor: engine.worklists.comment(actor, text, job=job))
    console.print(Text(f"Comment {number}."))


async def _held(engine: Engine, actor: int, job: int, otherwise: str) -> ItemView:
    view = await engine.worklists.show(actor, job)
    if view.item.attempt is None:
        raise RequestError("item_not_held", f"this person does not hold work item {job}: {otherwise}")
    return view


def _select_first(database: str | None, job: int, person: str) -> str:
    return calling(database)(f"worklist select {job} --as {shlex.quote(person)}")


def _print_taken(taken: Taken | None, person: str, *, json: bool) -> None:
    if json:
        return print_json(None if taken is None else asdict(taken))
    if taken is None:
        return console.print("There is nothing to do.")
    facts: dict[str, Any] = {"item": taken.job, "held by": person, "attempt": taken.attempt}
    return console.print(render.facts(facts))

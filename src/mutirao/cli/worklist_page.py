"""How `mutirao worklist` shows items: as a list, and one in full."""

from datetime import datetime
from typing import Any

from rich.text import Text

from mutirao.cli import render
from mutirao.cli.listing import Listing
from mutirao.cli.output import console, counted, human_size
from mutirao.database.item import Item, ItemCount, ItemPage, ItemView


def print_page(page: ItemPage, counts: list[ItemCount]) -> None:
    if not page.items:
        console.print("No items.")
        return
    console.print(_listing(page.items), highlight=False)
    ready, running, overdue = (sum(getattr(each, name) for each in counts) for name in ("ready", "running", "overdue"))
    console.print(Text(f"\nIn all {counted(ready, 'item')} to do, {running} held, {overdue} overdue.", "dim"))
    if page.next is not None:
        console.print(Text(f"More: --after {page.next}", "dim"), soft_wrap=True)


def print_item(view: ItemView) -> None:
    item = view.item
    rows: dict[str, Any] = {
        "item": f"{item.job}, {item.task} of {item.flow}",
        "instance": f"{item.instance}{f', {item.key}' if item.key else ''}",
        "for": f"{item.role}{', offered to one alone' if item.alone else ''}",
        "status": f"{_status(item)}{f', attempt {item.attempt}' if item.attempt else ''}",
        "since": _moment(item.arrived_at),
    }
    if item.description:
        rows["what"] = item.description
    if item.finish_by:
        rows["due"] = _moment(item.finish_by)
    if item.application:
        rows["application"] = item.application
    rows["in charge"] = view.in_charge or "nobody"
    rows["given"] = render.state(view.inputs) or "nothing"
    rows["writes"] = ", ".join(f"{each.name} ({each.type})" for each in view.outputs) or "nothing"
    console.print(render.facts(rows))
    said = [(each.at, each.author, each.text) for each in view.comments]
    done = [(each.at, each.writer, each.kind) for each in view.story]
    for title, lines in (("Comments", said), ("Story", done)):
        if lines:
            console.print(f"\n[bold]{title}[/bold]")
        for at, who, what in lines:
            console.print(Text(f"  {_moment(at)}  {who}: {what}"), highlight=False)


def _listing(items: list[Item]) -> Listing:
    listing = Listing(
        "item", "task", "instance", "role", "status", "priority", "due", "size", "since",
        numbers=("item", "priority", "size"), loose=("task", "instance"), spare=("size", "since", "priority", "role"),
    )  # fmt: skip
    for each in items:
        listing.add_row(
            str(each.job),
            f"{each.flow}.{each.task}",
            each.key or str(each.instance),
            each.role,
            _status(each),
            str(each.priority),
            _moment(each.finish_by),
            human_size(each.size),
            _moment(each.arrived_at),
        )
    return listing


def _status(item: Item) -> str:
    if item.status == "ready":
        return "ready" if item.instead_of is None else f"ready, for {item.instead_of}"
    return f"{'locked' if item.locked else 'held'} by {item.holder}"


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M")

"""How `mutirao worklist` shows items: as a list, and one in full."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from mutirao.cli import render
from mutirao.cli.listing import Listing
from mutirao.cli.output import console, counted
from mutirao.database.item import Attachment, Comment, Item, ItemCount, ItemPage, ItemView
from mutirao.database.story import told


def print_page(page: ItemPage, counts: list[ItemCount]) -> None:
    if not page.items:
        console.print("No items.")
        return
    console.print(item_table(page.items), highlight=False)
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
    print_said(view.comments, view.attachments)
    done = [f"{_moment(each.at)}  {each.writer}: {told(each.kind, item.task, each.note)}" for each in view.story]
    _print_lines("Story", done)


def print_said(comments: Sequence[Comment], attachments: Sequence[Attachment]) -> None:
    """What was said about an instance or an item, and what came too late for it."""
    _print_lines("Comments", [f"{each.id}  {_moment(each.at)}  {each.author}: {each.text}" for each in comments])
    _print_lines("Attachments", [f"{each.id}  {_moment(each.at)}  {_late(each)}" for each in attachments])


def _late(attachment: Attachment) -> str:
    content = attachment.content
    said = render.state(content.get("change") or {}) or str(content.get("error") or "")
    return f"{attachment.person or 'somebody'}, too late: {said}"


def _print_lines(title: str, lines: Sequence[str]) -> None:
    if lines:
        console.print(f"\n[bold]{title}[/bold]")
    for line in lines:
        console.print(Text(f"  {line}"), highlight=False)


def item_table(items: list[Item]) -> Listing:
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
            render.size(each.size),
            _moment(each.arrived_at),
        )
    return listing


def _status(item: Item) -> str:
    if item.status == "ready":
        return "ready" if item.instead_of is None else f"ready, for {item.instead_of}"
    return f"{'locked' if item.locked else 'held'} by {item.holder}"


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M")

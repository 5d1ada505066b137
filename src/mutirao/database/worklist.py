"""Worklists: what a person may do and holds, and all that they do with it. The engine has them as `engine.worklists`.

Every call names its actor first, the number of the person who acts; what they may not see is not there for them. Rules
are in sql/functions/38_actor, 44_offer, 45_item and 49_worklist; the other side of the desk, those in charge of
instances, is `engine.charges`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from psycopg.rows import dict_row

from mutirao.database.caller import Caller, Face
from mutirao.database.item import (
    ALL_ITEMS,
    Attachment,
    Comment,
    Item,
    ItemCount,
    ItemFilter,
    ItemPage,
    ItemView,
    Output,
    SavedFilter,
    StoryRow,
    Taken,
    WorklistSize,
)
from mutirao.database.person import Persons, checked_text
from mutirao.database.query import run_queries
from mutirao.database.sql import query
from mutirao.errors import MutiraoError, RequestError
from mutirao.model import Change
from mutirao.model.plain import encode_plain

PAGE = 50
# done; or parked: it is kept, and written when other jobs of the instance have ended.
Outcome = Literal["done", "parked"]

R = TypeVar("R")


def _document(document: Mapping[str, Any]) -> str:
    return encode_plain(dict(document)).decode()


class Worklists(Face):
    """The worklists of an engine. A recipient is named by number or by name."""

    def __init__(self, engine: Caller, persons: Persons) -> None:
        super().__init__(engine)
        self._persons = persons

    # What there is

    async def page(
        self, actor: int, chosen: ItemFilter = ALL_ITEMS, *, after: str | None = None, limit: int = PAGE
    ) -> ItemPage:
        """Items that the actor may do or holds; `after` is the `next` of the page before."""
        values = (actor, _document(chosen.document()), checked_text("a cursor", after or "") or None, limit)
        async with self.connection() as connection:
            cursor = connection.cursor(row_factory=dict_row)
            rows = await (await cursor.execute(query("worklist"), values)).fetchall()
        cursors = [row.pop("cursor") for row in rows]
        return ItemPage([Item(**row) for row in rows], cursors[-1] if len(rows) == limit else None)

    async def counts(self, actor: int) -> list[ItemCount]:
        """How many there are, by role and flow."""
        return await self._rows(ItemCount, "worklist_counts", [actor])

    async def size(self, actor: int, *, enough: int = 1000) -> WorklistSize:
        """How many there are; where there are enough, no more are counted."""
        [found] = await self._rows(WorklistSize, "worklist_size", [actor, enough])
        return found

    async def show(self, actor: int, job: int) -> ItemView:
        """One item in full."""
        async with self.connection() as connection:
            cursor = connection.cursor(row_factory=dict_row)
            row = await (await cursor.execute(query("item_view"), [actor, job])).fetchone()
        assert row is not None  # noqa: S101 the function answers one row or refuses
        parts = {
            "inputs": row.pop("inputs"),
            "outputs": _records(Output, row.pop("outputs")),
            "in_charge": row.pop("in_charge"),
            "reminders": row.pop("reminders"),
            "comments": _records(Comment, row.pop("all_comments")),
            "attachments": _records(Attachment, row.pop("attachments")),
            "story": _records(StoryRow, row.pop("story")),
            "program": row.pop("program"),
            "offered_to": row.pop("offered_to"),
        }
        return ItemView(Item(**row), **parts)

    async def once_held(self, actor: int, job: int) -> int | None:
        """The instance of an item that the actor has had, though it may have ended."""
        async with self.connection() as connection:
            row = await (await connection.execute(query("once_held"), [job, actor])).fetchone()
        return None if row is None else int(row[0])

    # Doing them

    async def select(self, actor: int, job: int, *, lock: bool = False) -> int:
        """Take an item, with `lock` to do it away from the engine; answers the attempt, which `finish` must name."""
        attempt = int(await self._call("select_item", actor, job, lock))
        await self._ask(actor, job, attempt)
        return attempt

    async def next(self, actor: int, chosen: ItemFilter = ALL_ITEMS, *, lock: bool = False) -> Taken | None:
        """Take the first item that nobody else is taking at this moment, if there is one."""
        found = await self._rows(Taken, "claim_next", [actor, _document(chosen.document()), lock])
        for taken in found:
            await self._ask(actor, taken.job, taken.attempt)
        return found[0] if found else None

    async def _ask(self, actor: int, job: int, attempt: int) -> None:
        """What the item takes from other databases; where it is not to be had, the item is not taken."""
        try:
            await run_queries(self, job, attempt)
        except MutiraoError as error:
            await self.give_back(actor, job, reason=error.message)
            raise

    async def give_back(self, actor: int, job: int, *, reason: str | None = None) -> None:
        """Return an item undone."""
        await self._call("return_item", actor, job, reason)

    async def finish(self, actor: int, job: int, attempt: int, change: Change | None = None) -> Outcome:
        """Finish an item with what it writes. A result that comes too late is refused, and kept as an attachment."""
        return await self._finish(actor, job, attempt, _document(change or {}), None)

    async def fail(self, actor: int, job: int, attempt: int, error: str) -> Outcome:
        """Finish an item as failed, and say why."""
        return await self._finish(actor, job, attempt, "{}", checked_text("an error", error))

    async def _finish(self, actor: int, job: int, attempt: int, change: str, error: str | None) -> Outcome:
        async with self.connection() as connection:
            row = await (
                await connection.execute(query("finish_item"), (actor, job, attempt, change, error))
            ).fetchone()
        assert row is not None  # noqa: S101 the function answers one row or refuses
        outcome, code, message = row
        if outcome == "refused":  # answered and not raised, since what came too late is kept
            raise RequestError(code, message)
        return "parked" if outcome == "parked" else "done"

    # Moving them

    async def delegate(self, actor: int, job: int, recipient: int | str, *, reason: str | None = None) -> None:
        """Offer an item to one other person alone."""
        await self._call("delegate_item", actor, job, await self._persons.number(recipient), reason)

    async def insert(self, actor: int, job: int, recipient: int | str) -> None:
        """Put an item into somebody's list as well."""
        await self._call("insert_item", actor, job, await self._persons.number(recipient))

    async def remove(self, actor: int, job: int, recipient: int | str) -> None:
        """Take an item out of somebody's list, and out of their hands."""
        await self._call("remove_item", actor, job, await self._persons.number(recipient))

    async def move(self, actor: int, job: int, *, before: int | None = None, after: int | None = None) -> None:
        """Put an item before another one, or after it, in the order made by hand."""
        await self._call("move_item", actor, job, before, after)

    async def exchange(self, actor: int, job: int, other: int) -> None:
        """Let two items change places in the order made by hand."""
        await self._call("exchange_items", actor, job, other)

    # Talking about them

    async def comment(self, actor: int, text: str, *, instance: int | None = None, job: int | None = None) -> int:
        """Say something about an instance, or about an item; answers the number of the comment."""
        return int(await self._call("add_comment", actor, instance, checked_text("a comment", text), job))

    async def comments(
        self, actor: int | None, instance: int, *, job: int | None = None, after: int = 0, limit: int = 100
    ) -> list[Comment]:
        """What was said about an instance, or about one item of it; the oldest first. The operator (None) reads all."""
        return await self._rows(Comment, "comments", [actor, instance, job, after, limit])

    async def attachments(
        self, actor: int | None, instance: int, *, job: int | None = None, after: int = 0, limit: int = 100
    ) -> list[Attachment]:
        """What is kept with an instance though it is not of its state, such as results that came too late."""
        return await self._rows(Attachment, "attachments", [actor, instance, job, after, limit])

    async def remove_comment(self, actor: int, comment: int) -> None:
        await self._call("remove_comment", actor, comment)

    # Filters one wants again

    async def save_filter(self, actor: int, name: str, chosen: ItemFilter) -> None:
        """Keep a filter under a name; the same name again replaces it."""
        await self._call("save_filter", actor, checked_text("a name", name), _document(chosen.document()))

    async def filters(self, actor: int) -> list[SavedFilter]:
        async with self.connection() as connection:
            rows = await (await connection.execute(query("filters"), [actor])).fetchall()
        return [SavedFilter(name, ItemFilter.of(document), saved_at) for name, document, saved_at in rows]

    async def rename_filter(self, actor: int, name: str, new_name: str) -> None:
        await self._call("rename_filter", actor, name, checked_text("a name", new_name))

    async def drop_filter(self, actor: int, name: str) -> None:
        await self._call("drop_filter", actor, name)


def _records(kind: type[R], found: Sequence[Any]) -> list[R]:
    return msgspec.convert(found, list[kind])  # type: ignore[valid-type]

"""What the engine tells about work items: plain records; and what one may ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

Sort = Literal["arrival", "priority", "deadline", "size", "hand"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """Which items of a worklist, and in which order.

    They come as they arrived, the most urgent first, by deadline, the smallest first, or as somebody put them by hand;
    `descending` turns that round. `status` is "ready" (nobody holds it), "running" (the person does) or "all".
    `priority` is the least, `text` stands in the name or description of task or flow, begins the key, or is the
    instance's number. Only attributes that are declared searchable can be asked for.
    """

    sort: Sort = "arrival"
    descending: bool = False
    status: Literal["ready", "running", "all"] = "all"
    flow: str | None = None
    task: str | None = None
    role: str | None = None
    instance: int | None = None
    priority: int | None = None
    due_before: datetime | None = None
    overdue: bool = False
    text: str | None = None
    attributes: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As it is sent and saved: only what differs from asking for nothing."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {
            name: value for name, value in given.items() if value is not None and value is not False and value != {}
        }
        if self.due_before is not None:
            plain["due_before"] = self.due_before.isoformat()
        return plain

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "ItemFilter":
        """What was saved."""
        given = {name: value for name, value in document.items() if value is not None}
        if "due_before" in given:
            given["due_before"] = datetime.fromisoformat(given["due_before"])
        return cls(**given)


ALL_ITEMS = ItemFilter()


@dataclass(frozen=True, slots=True)
class Item:
    """A work item as a list shows it.

    `status` is "ready" or "running", then `holder` has it, and `attempt` is there for whoever holds it: finishing names
    it. `alone` is whether it is offered to one person. `instead_of` is who is away, if the item is theirs.
    """

    job: int
    instance: int
    key: str | None
    flow: str
    task: str
    description: str | None
    kind: str
    role: str
    status: str
    holder: str | None
    attempt: int | None
    priority: int
    arrived_at: datetime
    finish_by: datetime | None
    size: int
    application: str | None
    disconnected: bool
    locked: bool
    alone: bool
    instead_of: str | None
    comments: int


@dataclass(frozen=True, slots=True)
class ItemPage:
    """`next` is where the next page goes on; None: this was the last."""

    items: list[Item]
    next: str | None


@dataclass(frozen=True, slots=True)
class ItemCount:
    """How many items of a flow a person may do as a member of a role, holds, and has let pass their deadline."""

    role: str
    flow: str
    ready: int
    running: int
    overdue: int


@dataclass(frozen=True, slots=True)
class WorklistSize:
    """How many items a person may do or holds, and how many of these are overdue: None where enough were counted before."""

    size: int
    overdue: int | None


@dataclass(frozen=True, slots=True)
class Output:
    """An attribute that an item writes."""

    name: str
    type: str
    required: bool


@dataclass(frozen=True, slots=True)
class Comment:
    """What somebody said about an instance, or about one of its items."""

    id: int
    job: int | None
    task: str | None
    author: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Attachment:
    """What belongs to an instance but not to its state, such as a result that came too late."""

    id: int
    job: int | None
    kind: str
    task: str | None
    person: str | None
    content: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class StoryRow:
    """One thing that was done with an item."""

    kind: str
    writer: str
    note: dict[str, Any] | None
    at: datetime


@dataclass(frozen=True, slots=True)
class ItemView:
    """A work item in full: what it is given and is to write, what was said and done, when reminders are to come."""

    item: Item
    inputs: dict[str, Any]
    outputs: list[Output]
    in_charge: str | None
    reminders: list[datetime]
    comments: list[Comment]
    attachments: list[Attachment]
    story: list[StoryRow]
    program: str | None = None  # the file of its application, which is the person's to start
    offered_to: str | None = None  # whom it is offered to alone


@dataclass(frozen=True, slots=True)
class Taken:
    """An item that somebody has just taken."""

    job: int
    attempt: int


@dataclass(frozen=True, slots=True)
class SavedFilter:
    """What a person wants to see again and again, and what they call it."""

    name: str
    filter: ItemFilter
    saved_at: datetime

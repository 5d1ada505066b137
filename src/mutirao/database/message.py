"""Messages to persons. The engine has them as `engine.messages`. A person reads only their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mutirao.database.caller import Face

KINDS = (
    "instance_started",
    "instance_ended",
    "task_failed",
    "deadline",
    "exception",
    "transferred",
    "delegated",
    "offered",
    "taken",
    "in_charge",
)
# As far as unread messages are counted.
MANY = 1000


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """A notice: of which kind, from which instance (its key or its number), and what it says."""

    id: int
    kind: str
    sender: str
    text: str
    instance: int | None
    job: int | None
    task: str | None
    note: dict[str, Any] | None
    at: datetime
    read_at: datetime | None
    flow: str | None = None


class Messages(Face):
    """The messages of an engine's persons. `actor` is the number of the person whose they are."""

    async def page(
        self,
        actor: int,
        *,
        unread: bool = False,
        kinds: Sequence[str] | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[MessageRecord]:
        """A page of them, newest first; the next one is `before` the number of the last."""
        asked = {"person": actor, "unread": unread, "kinds": None if kinds is None else list(kinds), "limit": limit}
        return await self._rows(MessageRecord, "messages", {**asked, "before": 2**62 if before is None else before})

    async def unread(self, actor: int) -> int:
        """How many were not read; `MANY` stands for as many or more."""
        return int(await self._call("unread_messages", actor))

    async def read(self, actor: int, messages: Sequence[int]) -> int:
        """Mark these as read; answers how many were not yet."""
        return int(await self._call("read_messages", actor, list(messages), None))

    async def read_up_to(self, actor: int, message: int) -> int:
        """Mark all up to this one as read, as somebody does who has seen a page; answers how many were not yet."""
        return int(await self._call("read_messages", actor, None, message))

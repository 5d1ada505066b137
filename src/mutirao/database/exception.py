"""Exceptions as work: for which reasons instances are exceptions, and what would be done to all of them at once."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mutirao.database.batch import Filter
from mutirao.database.caller import Caller

MOST_KINDS = 1000


@dataclass(frozen=True, slots=True)
class ExceptionKind:
    """Instances of a flow that are exceptions for the same reason: its code, the task, and the error.

    Where the errors differ, `error` is how they begin, and ends with an ellipsis.
    `since` and `latest` are when the first and the last of them became one, `example` is the oldest instance. A batch of
    the kind `repair` over those that are `chosen` would see to them all.
    """

    flow: str
    code: str
    task: str | None
    error: str | None
    instances: int
    since: datetime
    latest: datetime
    example: int
    repair: str
    chosen: dict[str, Any]

    def filter(self) -> Filter:
        """Those it is about, for `make_batch(kind.repair, kind.filter())`."""
        return Filter(**self.chosen)


class ExceptionCalls(Caller):
    """The part of the engine that is about what needs a person."""

    async def exceptions(self, flow: str | None = None, *, limit: int = 100) -> list[ExceptionKind]:
        """What instances are exceptions for, of a flow or in all, the most frequent first."""
        return await self._rows(ExceptionKind, "exceptions", [flow, limit])

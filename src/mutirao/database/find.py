"""Instances looked for and counted, however many there are. The rules are in sql/functions/69_instance_find.sql and 71_instance_count.sql."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from mutirao.database.caller import Caller
from mutirao.database.record import Instance, InstanceCounts
from mutirao.database.sql import query
from mutirao.model.plain import encode_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFilter:
    """Which instances: all that is said must hold.

    `status` is one or the beginning of one; `in_charge` is who steers it, `person` who has had to do with it; `text` is its
    number, or how its key begins; `attribute` is one of the flow's that are searchable, and has this `value`.
    """

    flow: str | None = None
    status: str | None = None
    in_charge: str | None = None
    person: str | None = None
    started_after: datetime | None = None
    started_before: datetime | None = None
    text: str | None = None
    attribute: str | None = None
    value: str | None = None

    def said(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


class FindCalls(Caller):
    """The part of the engine that is about all instances."""

    async def find_instances(
        self, wanted: InstanceFilter, *, actor: int | None = None, before: int | None = None, limit: int = 50
    ) -> tuple[list[Instance], int | None]:
        """A page of those that fit, newest first; with an actor, of those they have had to do with.

        And before which to go on, if there may be more: only some thousand are looked at, so where few fit a page may have
        fewer than the limit, or none.
        """
        asked = {"actor": actor, "filter": encode_plain(wanted.said()).decode(), "before": before, "room": limit}
        async with self.connection() as connection:
            [(ids, further)] = await (await connection.execute(query("find_instances"), asked)).fetchall()
        return await self._rows(Instance, "found_instances", {"actor": actor, "ids": ids}), further

    async def flows_of_instances(self, numbers: Sequence[int]) -> list[str]:
        """Which flows these are of, open or closed, by name."""
        return list(await self._call("flows_of_instances", list(numbers)))

    async def instance_counts(self, flow: str | None = None) -> list[InstanceCounts]:
        """How many instances there are, flow by flow: quick however many that is."""
        return await self._rows(InstanceCounts, "instance_counts", [flow])

    async def latest_row(self) -> int:
        """The newest row of the trace: another one than before says that something has moved, somewhere."""
        return int(await self._call("latest_row"))

"""What the engine keeps and for how long: retention, export, erasing, limits of size.

Its rules are in sql/functions/30_retention.sql and 41 to 43.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from mutirao.database.batch import Batch, BatchCalls, Filter
from mutirao.database.erase import Erasure, Sought, erase, find
from mutirao.database.export import Exported, ExportOptions, count_exportable, export
from mutirao.database.record import ErasureRecord, Holder, RetentionRecord
from mutirao.database.sql import query

FINISHED = ("completed", "terminated", "aborted")
"""How an instance ends."""


class KeepCalls(BatchCalls):
    """The part of the engine that is about the past."""

    async def keep(
        self, flow: str, period: timedelta | None, *, status: str | None = None, action: str = "drop"
    ) -> None:
        """Say how long finished instances are kept, all of a flow or those of one status; None: for ever."""
        await self._call("keep", flow, period, status, action, self.name)

    async def retention(self) -> list[RetentionRecord]:
        """What was said so, flow by flow."""
        return await self._rows(RetentionRecord, "retention", [])

    async def count_finished(
        self, flow: str, closed_before: datetime, *, status: str | None = None, exported: bool = False
    ) -> int:
        """How many instances of a flow ended before that, all or those of one status; `exported`: that are in a file."""
        statuses = [f"closed.{each}" for each in ([status] if status else FINISHED)]
        asked = {"flow": await self._call("flow_number", flow), "statuses": statuses, "before": closed_before}
        async with self.connection() as connection:
            found = await connection.execute(query("count_finished"), {**asked, "exported": exported})
            row = await found.fetchone()
        return int(row[0]) if row else 0

    async def limit_size(
        self, flow: str, *, state: int | None = None, change: int | None = None, trace: int | None = None
    ) -> None:
        """Set how many bytes a state and a change of this flow may have, and how many rows a trace."""
        await self._call("limit_size", flow, state, change, trace)

    async def count_exportable(self, flow: str, closed_before: datetime | None = None) -> int:
        """How many finished instances of a flow are in no file yet."""
        async with self.connection() as connection:
            return await count_exportable(connection, flow, closed_before)

    async def export(self, options: ExportOptions) -> Exported:
        """Write finished instances that are in no file yet into a folder; with `drop`, drop them afterwards."""
        async with self.connection() as connection:
            return await export(connection, options, self.name)

    async def find_value(self, sought: Sought, report: Callable[[int], None] = lambda _: None) -> list[int]:
        """Which instances keep a value; `report` hears each number that was looked at."""
        found: list[int] = []
        async with self.connection() as connection:
            async for looked, some in find(connection, sought):
                found += some
                report(looked)
        return found

    async def find_elsewhere(self, value: str) -> list[Holder]:
        """Schedules and running batches that hold a value: erasing leaves them alone."""
        return await self._rows(Holder, "find_elsewhere", [value])

    async def count_instances(self, flow: str | None = None) -> int:
        """How many instances there are, open and closed."""
        number = None if flow is None else await self._call("flow_number", flow)
        async with self.connection() as connection:
            row = await (await connection.execute(query("count_instances"), {"flow": number})).fetchone()
        return int(row[0]) if row else 0

    async def erase(
        self, instances: Sequence[int], erasure: Erasure, report: Callable[[int], None] = lambda _: None
    ) -> dict[int, str | None]:
        """Erase in these instances; answers for each why it could not be, or None."""
        answers: dict[int, str | None] = {}
        async with self.connection() as connection:
            async for some in erase(connection, instances, erasure, self.name):
                answers.update(some)
                report(len(some))
        return answers

    async def erasures(self, limit: int = 50) -> list[ErasureRecord]:
        """What was erased, newest first."""
        return await self._rows(ErasureRecord, "erasures", [limit])

    async def drop_instances(
        self, chosen: Filter, *, closed_before: datetime | None = None, reason: str | None = None
    ) -> Batch:
        """Drop the finished instances that are chosen, as a batch; open ones stay."""
        return await self.batch(await self._call("drop_instances", chosen.encode(), closed_before, reason, self.name))

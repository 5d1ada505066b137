"""Batches: one thing done to all instances that a filter chooses; and migrations, which are batches too.

A batch is driven by whoever is there: the clocks, and `drive_batch` beside them. Its rules are in sql/functions/23_batch.sql.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mutirao.database.caller import Caller
from mutirao.errors import RequestError
from mutirao.model import Change
from mutirao.model.plain import encode_plain

# Another drives it at this moment, or all that is left are instances that somebody is writing.
_PAUSE = 0.05
_PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which instances: all that is said must hold.

    `key` is the one it was started with; `status` is one or the beginning of one; `task` and `error` are of a failed job,
    the error by its code or how it begins; `exception` is the code of a reason why it is one; `where` is a condition over the attributes and tasks of the flow.
    """

    flow: str | None = None
    key: str | None = None
    ids: tuple[int, ...] | None = None
    status: str | None = None
    version: int | None = None
    started_before: datetime | None = None
    started_after: datetime | None = None
    task: str | None = None
    error: str | None = None
    exception: str | None = None
    where: str | None = None

    def said(self) -> dict[str, Any]:
        """What it says, without what it leaves open."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}

    def encode(self) -> str:
        return encode_plain(self.said()).decode()


@dataclass(frozen=True, slots=True)
class Batch:
    """How a batch stands; `skipped` had nothing to be done to it.

    `total` is what the filter chose when it was made: None where nobody counted, as for the look at finished instances of a
    live flow that changed.
    """

    id: int
    kind: str
    flow: str | None
    filter: dict[str, Any]
    arguments: dict[str, Any]
    status: str
    total: int | None
    done: int
    skipped: int
    refused: int
    made_by: str
    reason: str | None
    made_at: datetime
    ended_at: datetime | None
    note: str | None

    @property
    def is_running(self) -> bool:
        return self.status == "running"

    @property
    def seen(self) -> int:
        return self.done + self.skipped + self.refused


@dataclass(frozen=True, slots=True)
class BatchRefusal:
    instance: int
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """From which version of a flow to which, by default from all others to the newest; and what was renamed."""

    flow: str
    to: int | None = None
    leaving: int | None = None
    tasks: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    filter: Filter = Filter()

    def values(self) -> tuple[Any, ...]:
        mappings = (encode_plain(dict(each)).decode() for each in (self.tasks, self.attributes))
        return self.flow, self.to, self.leaving, *mappings, self.filter.encode()


@dataclass(frozen=True, slots=True)
class Foretold:
    """What a migration would do to one instance, which has this version now.

    `outcome` is running, completed, exception, suspended, delayed or refused; `moves` are jobs that become those of another task.
    """

    instance: int
    version: int
    outcome: str
    why: str | None
    fires: list[str]
    removes: list[str]
    moves: dict[str, str]


@dataclass(frozen=True, slots=True)
class BatchCount:
    """To how many instances a batch would do it; where it is not exact there may be more."""

    total: int
    is_exact: bool


class BatchCalls(Caller):
    """The part of the engine that is about many instances at once."""

    async def make_batch(  # noqa: PLR0913 what a batch may say
        self,
        kind: str,
        chosen: Filter,
        *,
        change: Change | None = None,
        task: str | None = None,
        safe_point: str | None = None,
        reason: str | None = None,
    ) -> Batch:
        """Have it done to all instances that are chosen.

        It is cancel, suspend, resume, set, repair, retry, skip, roll_back, start_task or go_back; the `task` is the one to
        start or to go back to, the `safe_point` where to roll back to.
        """
        arguments = _arguments(change=change, task=task, safe_point=safe_point)
        return await self.batch(await self._call("make_batch", kind, chosen.encode(), arguments, reason, self.name))

    async def count_batch(
        self,
        kind: str,
        chosen: Filter,
        *,
        change: Change | None = None,
        task: str | None = None,
        safe_point: str | None = None,
    ) -> int:
        """To how many instances it would be done now."""
        arguments = _arguments(change=change, task=task, safe_point=safe_point)
        return int(await self._call("count_batch", kind, chosen.encode(), arguments))

    async def count_batch_within(
        self, patience: timedelta, kind: str, chosen: Filter, *, task: str | None = None
    ) -> BatchCount:
        """The same, or to how many at least if counting takes longer than that."""
        values = [patience, kind, chosen.encode(), _arguments(task=task)]
        return (await self._rows(BatchCount, "count_batch_within", values))[0]

    async def batch(self, batch: int) -> Batch:
        found = await self._rows(Batch, "batches", {"id": batch, "limit": 1})
        if not found:
            raise RequestError("unknown_batch", f"there is no batch {batch}")
        return found[0]

    async def batches(self, *, limit: int = 50) -> list[Batch]:
        """The newest ones."""
        return await self._rows(Batch, "batches", {"id": None, "limit": limit})

    async def batch_refusals(self, batch: int, *, limit: int = 1000) -> list[BatchRefusal]:
        """To which instances it could not be done, and why; the first thousand are kept."""
        return await self._rows(BatchRefusal, "batch_refusals", [batch, limit])

    async def stop_batch(self, batch: int) -> None:
        await self._call("stop_batch", batch, self.name)

    async def resume_batch(self, batch: int) -> None:
        """Take up a batch that was stopped or has failed, where it was left."""
        await self._call("resume_batch", batch, self.name)

    async def drive_batch(self, batch: int, told: Callable[[Batch], object] | None = None) -> Batch:
        """Take it further until it runs no more, beside whoever else does; `told` hears how it stands after each step."""
        while (found := await self.batch(batch)).is_running:
            if told is not None:
                told(found)
            if not await self._call("step_batch", batch):
                await asyncio.sleep(_PAUSE)
        return found

    async def migrate(self, migration: Migration, *, reason: str | None = None) -> Batch:
        """Move instances of a flow that a program defines to another of its versions."""
        return await self.batch(await self._call("migrate_flow", *migration.values(), reason, self.name))

    async def preview_migration(self, migration: Migration) -> AsyncIterator[Foretold]:
        """What that would do to each instance; nothing changes."""
        after = 0
        while page := await self._rows(Foretold, "preview_migration", [*migration.values(), after, _PAGE]):
            for each in page:
                yield each
            after = page[-1].instance


def _arguments(**given: Any) -> str:
    return encode_plain({name: value for name, value in given.items() if value is not None}).decode()

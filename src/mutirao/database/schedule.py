"""Schedules: flows that a clock starts again and again. The engine has them as `engine.schedules`."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from psycopg.rows import class_row

from mutirao.database.record import ScheduleRecord
from mutirao.database.sql import query
from mutirao.errors import RequestError
from mutirao.model import Change
from mutirao.model.name import suggest
from mutirao.model.plain import encode_plain

if TYPE_CHECKING:
    from mutirao.database.engine import Engine


@dataclass(frozen=True, slots=True)
class Schedule:
    """What to start and when: five fields as cron has them, by the clocks of a time zone.

    `missed` says what to do about times that no clock came to within a minute: none of them, one start for all of them,
    or each. `overlap="skip"` starts nothing while the last instance is open. The attribute `time_to` receives the time
    that a start stands for.
    """

    name: str
    flow: str
    cron: str
    zone: str = "UTC"
    state: Change = field(default_factory=dict)
    priority: int = 0
    missed: Literal["skip", "once", "all"] = "once"
    overlap: Literal["allow", "skip"] = "allow"
    time_to: str | None = None


class Schedules:
    """The schedules of an engine."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    async def put(self, schedule: Schedule) -> ScheduleRecord:
        """Put it in place. The same again changes nothing; one that is paused stays so."""
        await self._call(
            "put_schedule",
            schedule.name,
            schedule.flow,
            schedule.cron,
            encode_plain(schedule.state).decode(),
            schedule.zone,
            schedule.priority,
            schedule.missed,
            schedule.overlap,
            schedule.time_to,
            self._engine.name,
        )
        return await self.get(schedule.name)

    async def get(self, name: str) -> ScheduleRecord:
        found = await self.all(name)
        if not found:
            known = [each.name for each in await self.all()]
            raise RequestError("unknown_schedule", f'there is no schedule "{name}"{suggest(name, known)}')
        return found[0]

    async def all(self, name: str | None = None) -> list[ScheduleRecord]:
        """All of them, or the one of that name; those that fire next come first."""
        async with self._engine.connection() as connection:
            cursor = connection.cursor(row_factory=class_row(ScheduleRecord))
            return await (await cursor.execute(query("schedules"), {"name": name})).fetchall()

    async def pause(self, name: str) -> None:
        """Let it start nothing until it is resumed. Times that pass meanwhile are not missed."""
        await self._call("pause_schedule", name)

    async def resume(self, name: str) -> None:
        await self._call("resume_schedule", name)

    async def drop(self, name: str) -> None:
        """Take it away. What it has started goes on."""
        await self._call("drop_schedule", name)

    async def times(self, cron: str, zone: str = "UTC", *, count: int = 5) -> list[datetime]:
        """When a cron pattern fires next."""
        async with self._engine.connection() as connection:
            found = await connection.execute(query("cron_times"), (cron, zone, count))
            return [at for (at,) in await found.fetchall()]

    async def _call(self, name: str, *values: Any) -> None:
        async with self._engine.connection() as connection:
            await connection.execute(query(name), values)

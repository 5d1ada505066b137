"""Schedules, over HTTP."""

from dataclasses import asdict
from datetime import datetime
from urllib.parse import quote

from mutirao.database.record import ScheduleRecord
from mutirao.database.schedule import Schedule
from mutirao.server.client.noun import Noun


class Schedules(Noun):
    async def put(self, schedule: Schedule) -> ScheduleRecord:
        """Put it in place. The same again changes nothing; one that is paused stays so."""
        body = asdict(schedule)
        return await self._http.send(ScheduleRecord, "PUT", _path(body.pop("name")), body)

    async def get(self, name: str) -> ScheduleRecord:
        return await self._http.get(ScheduleRecord, _path(name))

    async def all(self) -> list[ScheduleRecord]:
        return await self._http.get(list[ScheduleRecord], "/api/schedules")

    async def pause(self, name: str) -> None:
        await self._http.do("POST", f"{_path(name)}/pause")

    async def resume(self, name: str) -> None:
        await self._http.do("POST", f"{_path(name)}/resume")

    async def drop(self, name: str) -> None:
        await self._http.do("DELETE", _path(name))

    async def times(self, cron: str, zone: str = "UTC", *, count: int = 5) -> list[datetime]:
        """When a cron pattern fires next."""
        return await self._http.get(list[datetime], "/api/times", cron=cron, zone=zone, count=count)


def _path(name: str) -> str:
    return f"/api/schedules/{quote(name, safe='')}"

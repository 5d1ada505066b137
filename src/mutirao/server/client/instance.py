"""Instances, over HTTP."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from mutirao.database.charge import Undone
from mutirao.database.explanation import Why
from mutirao.database.find import InstanceFilter
from mutirao.database.item import Attachment
from mutirao.database.record import Instance, InstanceCounts, JobRecord, TaskStanding, TraceRow
from mutirao.database.sight import SeenInstance
from mutirao.model import Change
from mutirao.server.client.noun import Noun


class Instances(Noun):
    async def create(  # noqa: PLR0913 all of them by name
        self,
        flow: str,
        state: Change | None = None,
        *,
        instance_key: str | None = None,
        in_charge: str | None = None,
        policies: Mapping[str, Mapping[str, Any]] | None = None,
        priority: int = 0,
        at: datetime | None = None,
        reason: str | None = None,
        key: str | None = None,
    ) -> SeenInstance:
        """Start an instance. `instance_key` is the key that it keeps; `key` makes this request once."""
        body = {
            "flow": flow,
            "state": state or {},
            "key": instance_key,
            "in_charge": in_charge,
            "policies": policies,
            "priority": priority,
            "at": at,
            "reason": reason,
        }
        return await self._http.send(SeenInstance, "POST", "/api/instances", body, key=key)

    def all(  # noqa: PLR0913 all of them by name
        self,
        *,
        flow: str | None = None,
        status: str | None = None,
        in_charge: str | None = None,
        person: str | None = None,
        started_after: datetime | None = None,
        started_before: datetime | None = None,
        text: str | None = None,
        where: str | None = None,
        everybody: bool = False,
        limit: int = 50,
    ) -> AsyncIterator[Instance]:
        """Those that you have had to do with, newest first; `limit` is how many are asked for at once.

        `text` is a number or how a key begins, `where` a searchable attribute of the flow, as name=value.
        """
        wanted = InstanceFilter(
            flow=flow,
            status=status,
            in_charge=in_charge,
            person=person,
            started_after=started_after,
            started_before=started_before,
            text=text,
        )
        said = {name: each.isoformat() if isinstance(each, datetime) else each for name, each in wanted.said().items()}
        return self._http.pages(Instance, "/api/instances", **said, where=where, everybody=everybody, limit=limit)

    async def counts(self, flow: str | None = None) -> list[InstanceCounts]:
        """How many there are, flow by flow: for administrators."""
        return await self._http.get(list[InstanceCounts], "/api/instances/counts", flow=flow)

    async def get(self, instance: int) -> SeenInstance:
        return await self._http.get(SeenInstance, _path(instance))

    def trace(self, instance: int, *, limit: int = 1000) -> AsyncIterator[TraceRow]:
        """What happened, oldest first."""
        return self._http.pages(TraceRow, f"{_path(instance)}/trace", limit=limit)

    async def why(self, instance: int, task: str | None = None, *, at: int | None = None) -> list[Why]:
        return await self._http.get(list[Why], f"{_path(instance)}/why", task=task, at=at)

    async def tasks(self, instance: int) -> list[TaskStanding]:
        """How each of its tasks stands."""
        return await self._http.get(list[TaskStanding], f"{_path(instance)}/tasks")

    def jobs(self, instance: int, *, limit: int = 100) -> AsyncIterator[JobRecord]:
        return self._http.pages(JobRecord, f"{_path(instance)}/jobs", limit=limit)

    def attachments(self, instance: int, *, job: int | None = None, limit: int = 100) -> AsyncIterator[Attachment]:
        """Results that came too late and were kept; also of an instance or an item that has ended."""
        return self._http.pages(Attachment, f"{_path(instance)}/attachments", job=job, limit=limit)

    # Steering: with `seen`, only if nothing was changed since that revision.

    async def set(
        self, instance: int, change: Change, *, reason: str | None = None, seen: int | None = None
    ) -> SeenInstance:
        """Correct attributes."""
        return await self._steer(instance, "set", {"change": change, "reason": reason}, seen)

    async def repair(
        self, instance: int, change: Change | None = None, *, reason: str | None = None, seen: int | None = None
    ) -> SeenInstance:
        return await self._steer(instance, "repair", {"change": change or {}, "reason": reason}, seen)

    async def suspend(self, instance: int, *, reason: str | None = None, seen: int | None = None) -> SeenInstance:
        return await self._steer(instance, "suspend", {"reason": reason}, seen)

    async def resume(self, instance: int, *, reason: str | None = None, seen: int | None = None) -> SeenInstance:
        return await self._steer(instance, "resume", {"reason": reason}, seen)

    async def cancel(
        self, instance: int, *, undo: bool = False, reason: str | None = None, seen: int | None = None
    ) -> SeenInstance:
        """Stop it, and with `undo` undo what it has done."""
        return await self._steer(instance, "cancel", {"undo": undo, "reason": reason}, seen)

    async def roll_back(
        self, instance: int, safe_point: str | None = None, *, reason: str | None = None, seen: int | None = None
    ) -> SeenInstance:
        """Undo what it has done: all of it, or back to a safe-point."""
        return await self._steer(instance, "roll_back", {"safe_point": safe_point, "reason": reason}, seen)

    async def preview_roll_back(self, instance: int, safe_point: str | None = None) -> list[Undone]:
        """What that would undo, task by task, the last first."""
        return await self._http.get(list[Undone], f"{_path(instance)}/roll_back", safe_point=safe_point)

    async def start_task(
        self, instance: int, task: str, *, reason: str | None = None, seen: int | None = None
    ) -> SeenInstance:
        """Start a task by hand."""
        return await self._steer(instance, "start_task", {"task": task, "reason": reason}, seen)

    async def go_back(
        self, instance: int, task: str, *, reason: str | None = None, seen: int | None = None
    ) -> SeenInstance:
        """Start a task again that has ended."""
        return await self._steer(instance, "go_back", {"task": task, "reason": reason}, seen)

    async def hand_over(
        self, instance: int, to: str, *, reason: str | None = None, seen: int | None = None
    ) -> SeenInstance:
        """Put somebody else in charge."""
        return await self._steer(instance, "hand_over", {"to": to, "reason": reason}, seen)

    async def _steer(self, instance: int, act: str, body: dict[str, Any], seen: int | None) -> SeenInstance:
        return await self._http.send(SeenInstance, "POST", f"{_path(instance)}/{act}", body, seen=seen)


def _path(instance: int) -> str:
    return f"/api/instances/{instance}"

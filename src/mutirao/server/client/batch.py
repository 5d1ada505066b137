"""Batches, over HTTP."""

from typing import Any

from mutirao.database.batch import Batch, BatchRefusal, Filter, Migration
from mutirao.model import Change
from mutirao.server.client.noun import Noun


class Batches(Noun):
    async def make(
        self,
        kind: str,
        chosen: Filter,
        *,
        change: Change | None = None,
        reason: str | None = None,
        key: str | None = None,
    ) -> Batch:
        """Have it done to all instances that are chosen: cancel, suspend, resume, set, repair, retry, skip."""
        body = {"kind": kind, "chosen": _said(chosen), "change": change, "reason": reason}
        return await self._http.send(Batch, "POST", "/api/batches", body, key=key)

    async def count(self, kind: str, chosen: Filter, *, change: Change | None = None) -> int:
        """To how many instances it would be done now."""
        body = {"kind": kind, "chosen": _said(chosen), "change": change}
        return (await self._http.send(dict[str, int], "POST", "/api/batches/count", body))["count"]

    async def migrate(self, migration: Migration, *, reason: str | None = None, key: str | None = None) -> Batch:
        """Move instances of a flow to another of its versions."""
        body = {
            "flow": migration.flow,
            "to": migration.to,
            "leaving": migration.leaving,
            "tasks": migration.tasks,
            "attributes": migration.attributes,
            "chosen": _said(migration.filter),
            "reason": reason,
        }
        return await self._http.send(Batch, "POST", "/api/batches/migrate", body, key=key)

    async def get(self, batch: int) -> Batch:
        return await self._http.get(Batch, f"/api/batches/{batch}")

    async def newest(self, *, limit: int = 50) -> list[Batch]:
        return await self._http.get(list[Batch], "/api/batches", limit=limit)

    async def refusals(self, batch: int) -> list[BatchRefusal]:
        return await self._http.get(list[BatchRefusal], f"/api/batches/{batch}/refusals")

    async def stop(self, batch: int) -> None:
        await self._http.do("POST", f"/api/batches/{batch}/stop")

    async def resume(self, batch: int) -> None:
        await self._http.do("POST", f"/api/batches/{batch}/resume")


def _said(chosen: Filter) -> dict[str, Any]:
    fields = ("flow", "key", "ids", "status", "version", "started_before", "started_after", "task", "error", "where")
    return {name: getattr(chosen, name) for name in fields if getattr(chosen, name) is not None}

"""Batches, over HTTP."""

from mutirao.database.batch import Batch, BatchRefusal, Filter, Migration
from mutirao.model import Change
from mutirao.server.client.noun import Noun


class Batches(Noun):
    async def make(  # noqa: PLR0913 what a request may say
        self,
        kind: str,
        chosen: Filter,
        *,
        change: Change | None = None,
        task: str | None = None,
        safe_point: str | None = None,
        reason: str | None = None,
        key: str | None = None,
    ) -> Batch:
        """Have it done to all instances that are chosen; see `Engine.make_batch`."""
        asked = {"change": change, "task": task, "safe_point": safe_point, "reason": reason}
        body = {"kind": kind, "chosen": chosen.said(), **asked}
        return await self._http.send(Batch, "POST", "/api/batches", body, key=key)

    async def count(
        self,
        kind: str,
        chosen: Filter,
        *,
        change: Change | None = None,
        task: str | None = None,
        safe_point: str | None = None,
    ) -> int:
        """To how many instances it would be done now."""
        body = {"kind": kind, "chosen": chosen.said(), "change": change, "task": task, "safe_point": safe_point}
        return (await self._http.send(dict[str, int], "POST", "/api/batches/count", body))["count"]

    async def migrate(self, migration: Migration, *, reason: str | None = None, key: str | None = None) -> Batch:
        """Move instances of a flow to another of its versions."""
        body = {
            "flow": migration.flow,
            "to": migration.to,
            "leaving": migration.leaving,
            "tasks": migration.tasks,
            "attributes": migration.attributes,
            "chosen": migration.filter.said(),
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

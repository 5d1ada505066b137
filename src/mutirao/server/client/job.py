"""Jobs, over HTTP."""

from collections.abc import AsyncIterator
from datetime import timedelta

from mutirao.database.health import Health, Pace, Queue
from mutirao.database.record import Backlog, JobRecord, WorkerRecord
from mutirao.model import Change
from mutirao.server.client.noun import Noun


class Jobs(Noun):
    def all(self, *, flow: str | None = None, status: str | None = None, limit: int = 100) -> AsyncIterator[JobRecord]:
        """All jobs, oldest first; `limit` is how many are asked for at once."""
        return self._http.pages(JobRecord, "/api/jobs", flow=flow, status=status, limit=limit)

    async def get(self, job: int) -> JobRecord:
        return await self._http.get(JobRecord, f"/api/jobs/{job}")

    async def backlog(self) -> list[Backlog]:
        return await self._http.get(list[Backlog], "/api/jobs/backlog")

    async def workers(self) -> list[WorkerRecord]:
        return await self._http.get(list[WorkerRecord], "/api/jobs/workers")

    async def queue(self) -> list[Queue]:
        """What waits for workers, and how many of them do it."""
        return await self._http.get(list[Queue], "/api/jobs/queue")

    async def pace(self, period: timedelta = timedelta(hours=1), *, by_task: bool = True) -> Pace:
        """How much workers did of late, and how long it took them; of an hour at most, or of a day by minute alone."""
        return await self._http.get(
            Pace, "/api/jobs/pace", minutes=round(period / timedelta(minutes=1)), by_task=by_task
        )

    async def health(self) -> Health:
        """How the database is."""
        return await self._http.get(Health, "/api/health")

    async def retry(self, job: int, *, reason: str | None = None, seen: int | None = None) -> None:
        """Try a failed job again, with all its retries; with `seen`, only if that is still the revision of its instance."""
        await self._http.do("POST", f"/api/jobs/{job}/retry", {"reason": reason}, seen=seen)

    async def skip(
        self, job: int, change: Change | None = None, *, reason: str | None = None, seen: int | None = None
    ) -> None:
        """End a job as if it had succeeded, with the change given."""
        await self._http.do("POST", f"/api/jobs/{job}/skip", {"change": change or {}, "reason": reason}, seen=seen)

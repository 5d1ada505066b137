"""Jobs as whoever looks after the engine sees them: what waits, who works, what went wrong, and how much may run."""

from collections.abc import Sequence

from mutirao.database.caller import Caller
from mutirao.database.record import Backlog, JobRecord, LimitRecord, Load, WorkerRecord
from mutirao.database.sql import query
from mutirao.errors import RequestError
from mutirao.model import Change, Limit
from mutirao.model.plain import encode_plain


class JobCalls(Caller):
    """The part of the engine that is about jobs and who does them."""

    async def jobs(
        self,
        instance: int | None = None,
        *,
        status: str | None = None,
        flow: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[JobRecord]:
        """A page of jobs, oldest first: those after this number."""
        asked = {"instance": instance, "status": status, "flow": flow, "after": after, "limit": limit}
        return await self._rows(JobRecord, "jobs", asked)

    async def job(self, job: int) -> JobRecord:
        found = await self._rows(JobRecord, "job", [job])
        if not found:
            raise RequestError("unknown_job", f"there is no job {job}; it may have ended")
        return found[0]

    async def undone(self, flows: Sequence[str], tasks: Sequence[int]) -> list[tuple[str, str, int, int]]:
        """Flow, task, version and number of the open jobs of these flows that are of none of these tasks."""
        async with self.connection() as connection:
            found = await connection.execute(query("undone_tasks"), [list(flows), list(tasks)])
            return await found.fetchall()

    async def load(self) -> list[Load]:
        """What there is to do, for metrics: cheap however much it is. Large numbers of what only waits are estimates."""
        return await self._rows(Load, "load", [])

    async def origins(self, instances: Sequence[int]) -> dict[int, str]:
        """In whose OpenTelemetry context these instances were started, as far as they were."""
        async with self.connection() as connection:
            return dict(await (await connection.execute(query("origins"), (list(instances),))).fetchall())

    async def fates(self, attempts: Sequence[tuple[int, int, int, int]]) -> dict[int, str]:
        """Of attempts that failed (job, attempt, instance, earlier failures): `retried`, `given_up` or `dropped`.

        Of failures for good that the flow sees to: `replaced` by a contingency, `released`, or `rolled_back`.
        """
        columns = [list(column) for column in zip(*attempts, strict=True)]
        async with self.connection() as connection:
            found = await connection.execute(query("fates"), columns)
            return dict(await found.fetchall())

    async def backlog(self) -> list[Backlog]:
        return await self._rows(Backlog, "backlog", [])

    async def workers(self) -> list[WorkerRecord]:
        """The workers that announced themselves within the last day, those that are alive first."""
        return await self._rows(WorkerRecord, "workers", [])

    async def alive_workers(self) -> int:
        """How many of them are alive."""
        return int(await self._call("alive_workers"))

    async def retry(self, job: int, *, reason: str | None = None) -> None:
        """Try a failed job again, with all its retries."""
        await self._call("retry", job, reason, self.name)

    async def skip(self, job: int, change: Change | None = None, *, reason: str | None = None) -> None:
        """End a job as if it had succeeded, with the change given."""
        await self._call("skip", job, encode_plain(change or {}).decode(), reason, self.name)

    async def limit(self, flow: str, task: str, limit: Limit | None) -> None:
        """Limit the jobs of a task from now on, whatever its definition says; None frees them."""
        most = limit or Limit()
        await self._call("limit_task", flow, task, most.at_once, most.per_second, most.per, most.each)

    async def limits(self, flow: str | None = None) -> list[LimitRecord]:
        """The limits in force, and how far they are used."""
        return await self._rows(LimitRecord, "limits", {"flow": flow})

    async def task_numbers(self, flow: str, tasks: Sequence[str]) -> tuple[dict[str, int], int]:
        """The numbers of these tasks and of their flow, as a worker needs them."""
        async with self.connection() as connection:
            found = await connection.execute(query("task_ids"), (flow, list(tasks), flow))
            rows = await found.fetchall()
        return {name: number for name, number, _ in rows}, rows[0][2] if rows else 0

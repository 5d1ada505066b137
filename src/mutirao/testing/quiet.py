"""Whether an engine is quiet: nothing is ready or running, and nothing is due. And what is left, where it is not."""

from datetime import UTC, datetime, timedelta

from mutirao.database.engine import Engine
from mutirao.database.record import JobRecord
from mutirao.database.sql import query
from mutirao.testing.clock import now
from mutirao.worker import Worker

_SHOWN = 10
_NEVER = datetime.max.replace(tzinfo=UTC)


async def unrest(engine: Engine) -> tuple[bool, float | None]:
    async with engine.connection() as connection:
        row = await (await connection.execute(query("unrest"))).fetchone()
    return row or (False, None)


async def is_coming(engine: Engine, task: str) -> bool:
    """Whether a job of this task is ready by now, or is as soon as a clock has looked at the time."""
    async with engine.connection() as connection:
        at = await now(connection)
    jobs = [job for job in await engine.jobs() if task in (job.task, f"{job.flow}.{job.task}")]
    return any(job.status == "ready" or (_due_at(job) or _NEVER) <= at for job in jobs)


def _due_at(job: JobRecord) -> datetime | None:
    return {"running": job.lease_until, "waiting": job.due_at}.get(job.status)


async def account(engine: Engine, worker: Worker, patience: timedelta) -> str:
    done = f"{worker.done:,} attempts went well and {worker.failed:,} failed"
    jobs = [
        job for job in await engine.jobs() if job.status in ("ready", "running", "waiting") and job.task != "_EXCPT"
    ]
    told = [_described(job, worker) for job in jobs[:_SHOWN]]
    if len(jobs) > _SHOWN:
        left = sum(each.ready + each.running + each.waiting for each in await engine.backlog())
        told.append(f"and so on: {left:,} jobs in all")
    return "\n  ".join([f"not quiet after {patience.total_seconds():g} s, in which {done}; what is left:", *told])


def _described(job: JobRecord, worker: Worker) -> str:
    text = f"job {job.id} of instance {job.instance}, task {job.task} of flow {job.flow}: {job.status}"
    if job.status == "running":
        text += f" at {job.worker}"
    elif job.status == "ready" and not worker.does(job.flow, job.task):
        text += ", and none of the flows given has a function for it"
    if job.failures:
        text += f", failed {job.failures} times, last: {(job.error or {}).get('error')}"
    return text

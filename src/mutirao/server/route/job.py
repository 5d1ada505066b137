"""Jobs: tasks under way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from mutirao.database.health import Pace, Queue
from mutirao.database.record import Backlog, JobRecord, WorkerRecord
from mutirao.server.answer import Cursor, Page, PageSize, answer, decode_cursor, done, page
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.revision import unless_changed
from mutirao.server.route.parts import IfMatch, Number, State, Steer, Text, routes
from mutirao.server.who import Who

router = routes("job", "/jobs")

JobStatus = Literal["synchronizing", "ready", "running", "waiting", "held", "failed", "parked"]


class Skip(Steer):
    change: State = {}


@router.get("", response_model=Page[JobRecord])
async def page_of_jobs(
    request: Request,
    who: Administrator,
    flow: Annotated[Text | None, Query(max_length=100)] = None,
    status: JobStatus | None = None,
    limit: PageSize = 100,
    cursor: Cursor = None,
) -> Response:
    """All jobs, oldest first. What a parked one writes when it can is left out where it is large: the job alone has it."""
    after = decode_cursor(cursor, int) or 0
    found = await who.engine.jobs(flow=flow, status=status, after=after, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)


@router.get("/backlog", response_model=list[Backlog])
async def backlog(who: Administrator) -> Response:
    """How many jobs of each task there are, and how long the oldest has waited."""
    return answer(await who.engine.backlog())


@router.get("/workers", response_model=list[WorkerRecord])
async def workers(who: Administrator) -> Response:
    """The workers of the last day, those that are alive first."""
    return answer(await who.engine.workers())


@router.get("/queue", response_model=list[Queue])
async def queue(who: Administrator) -> Response:
    """What waits for workers, task by task, and how many of them do it. Each is counted up to 10,000, however many there are."""
    return answer(await who.engine.queue())


@router.get("/pace", response_model=Pace)
async def pace(
    who: Administrator,
    minutes: Annotated[int, Query(ge=1, le=1440)] = 60,
    by_task: Annotated[bool, Query(description="Task by task as well, of an hour at most.")] = True,
) -> Response:
    """How much workers did of late, minute by minute, the present one last, and task by task. Half of what went well took `p50` seconds at most."""
    return answer(await who.engine.pace(timedelta(minutes=minutes), by_task=by_task))


@router.get("/{job}", response_model=JobRecord)
async def show(who: SignedIn, job: Number) -> Response:
    """One job of an instance that you may see."""
    return answer(await who.sight.job(job))


@router.post("/{job}/retry", status_code=204)
async def retry(who: SignedIn, job: Number, body: Steer = Steer(), if_match: IfMatch = None) -> Response:
    """Try a failed job again, with all its retries: for the person in charge and administrators."""
    async with _unless_changed(who, job, if_match, body.revision):
        await who.engine.charges.retry(who.id, job, reason=body.reason)
    return done()


@router.post("/{job}/skip", status_code=204)
async def skip(who: SignedIn, job: Number, body: Skip = Skip(), if_match: IfMatch = None) -> Response:
    """End a job as if it had succeeded, with the change given."""
    async with _unless_changed(who, job, if_match, body.revision):
        await who.engine.charges.skip(who.id, job, body.change, reason=body.reason)
    return done()


@asynccontextmanager
async def _unless_changed(who: Who, job: int, if_match: str | None, revision: int | None) -> AsyncIterator[None]:
    """The revision is that of the job's instance."""
    instance = (await who.sight.job(job)).instance
    async with unless_changed(who, instance, if_match, revision):
        yield

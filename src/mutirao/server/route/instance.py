"""Instances: runs of flows."""

from typing import Annotated

from fastapi import Query, Request, Response

from mutirao.database.engine import STATUSES
from mutirao.database.explanation import Why
from mutirao.database.record import Instance, JobRecord, TaskStanding, TraceRow
from mutirao.database.sight import SeenInstance
from mutirao.errors import RequestError
from mutirao.server.answer import BIGGEST, Cursor, Page, PageSize, answer, decode_cursor, page
from mutirao.server.need import SignedIn
from mutirao.server.route.parts import Number, Text, routes

router = routes("instance", "/instances")


@router.get("", response_model=Page[Instance])
async def page_of_instances(
    request: Request,
    who: SignedIn,
    flow: Annotated[Text | None, Query(max_length=100)] = None,
    status: Annotated[
        Text | None, Query(max_length=100, description="One, or the beginning of one.", examples=["open"])
    ] = None,
    everybody: Annotated[bool, Query(description="All instances: for administrators.")] = False,
    where: Annotated[
        Text | None,
        Query(max_length=1000, description="For administrators: attribute=value, of one that is searchable."),
    ] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> Response:
    """The instances that you have had to do with, newest first."""
    before = decode_cursor(cursor, int)
    if status is not None and not any(known.startswith(status) for known in STATUSES):
        raise RequestError("wrong_call", f'there is no status "{status}"; an instance is {", ".join(STATUSES)}')
    further = None
    if everybody or where is not None:
        chosen = None if where is None else _attribute(where)
        who.check_administrator()
        found = await who.engine.instances(flow, status=status, where=chosen, before=before, limit=limit + 1)
    else:
        found, further = await who.sight.instances_from(flow, status=status, before=before, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id, further)


def _attribute(where: str) -> tuple[str, str]:
    name, equals, value = where.partition("=")
    if not equals:
        raise RequestError("wrong_call", "where is attribute=value, such as city=Recife")
    return name, value


@router.get("/{instance}", response_model=SeenInstance)
async def show(who: SignedIn, instance: Number) -> Response:
    """One instance: its state, and by its `ETag` the revision that a change may name."""
    found = await who.sight.instance(instance)
    return answer(found, revision=found.revision)


@router.get("/{instance}/trace", response_model=Page[TraceRow])
async def trace(
    request: Request, who: SignedIn, instance: Number, limit: PageSize = 1000, cursor: Cursor = None
) -> Response:
    """What happened to it, oldest first."""
    found = await who.sight.trace(instance, after=decode_cursor(cursor, int) or 0, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)


@router.get("/{instance}/why", response_model=list[Why])
async def why(
    who: SignedIn,
    instance: Number,
    task: Annotated[Text | None, Query(max_length=100)] = None,
    at: Annotated[int | None, Query(ge=1, le=BIGGEST, description="A row of its trace: why it was so then.")] = None,
) -> Response:
    """Why it moves or does not: first about itself, then about each task, then about its end."""
    return answer(await who.sight.why(instance, task, at=at))


@router.get("/{instance}/tasks", response_model=list[TaskStanding])
async def tasks(who: SignedIn, instance: Number) -> Response:
    """How each of its tasks stands."""
    return answer(await who.sight.task_states(instance))


@router.get("/{instance}/jobs", response_model=Page[JobRecord])
async def jobs(
    request: Request, who: SignedIn, instance: Number, limit: PageSize = 100, cursor: Cursor = None
) -> Response:
    """Its tasks under way."""
    found = await who.sight.jobs(instance, after=decode_cursor(cursor, int) or 0, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)

"""Instances: runs of flows."""

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import AwareDatetime, ConfigDict, Field

from mutirao.database.explanation import Why
from mutirao.database.find import InstanceFilter
from mutirao.database.record import Instance, InstanceCounts, JobRecord, TaskStanding, TraceRow
from mutirao.database.sight import SeenInstance
from mutirao.errors import RequestError
from mutirao.server.answer import (
    BIGGEST,
    Cursor,
    Page,
    PageSize,
    answer,
    decode_cursor,
    encode_cursor,
    next_link,
    page,
)
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.route.parts import Body, Number, Text, routes
from mutirao.server.who import Who

router = routes("instance", "/instances")

Word = Annotated[Text | None, Field(max_length=100)]


class Looked(Body):
    """Which instances: all that is said must hold."""

    model_config = ConfigDict(extra="ignore")  # beside it in the address are the page's limit and cursor

    flow: Word = None
    status: Annotated[Word, Field(description="One, or the beginning of one.", examples=["open"])] = None
    in_charge: Annotated[Word, Field(description="The name of who is in charge of it.")] = None
    person: Annotated[Word, Field(description="The name of somebody who has had to do with it.")] = None
    started_after: AwareDatetime | None = None
    started_before: AwareDatetime | None = None
    text: Annotated[
        Text | None, Field(min_length=1, max_length=200, description="Its number, or how its key begins.")
    ] = None
    where: Annotated[
        Text | None, Field(max_length=1000, description="attribute=value, of one that its flow declares searchable.")
    ] = None

    def filter(self) -> InstanceFilter:
        said = self.model_dump(exclude={"where"})
        if self.where is None:
            return InstanceFilter(**said)
        name, equals, value = self.where.partition("=")
        if not equals:
            raise RequestError("wrong_call", "where is attribute=value, such as city=Recife")
        return InstanceFilter(**said, attribute=name, value=value)


@router.get("", response_model=Page[Instance])
async def page_of_instances(
    request: Request,
    who: SignedIn,
    looked: Annotated[Looked, Query()],
    everybody: Annotated[bool, Query(description="All instances: for administrators.")] = False,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> Response:
    """The instances that you have had to do with, newest first. A page may have few, or none, and `next`: there is more to look at."""
    found, further = await find(
        who, looked.filter(), everybody=everybody, before=decode_cursor(cursor, int), limit=limit
    )
    following = None if further is None else encode_cursor(further)
    return answer({"items": found, "next": following}, headers=next_link(request, following))


async def find(
    who: Who, wanted: InstanceFilter, *, everybody: bool, before: int | None, limit: int
) -> tuple[list[Instance], int | None]:
    """For the API and for the page: of those that one has had to do with, or of all."""
    everybody = everybody or (wanted.attribute is not None and who.is_administrator)
    if everybody:
        who.check_administrator()
    among = who.engine if everybody else who.sight
    found, further = await among.find_instances(wanted, before=before, limit=limit + 1)
    return (found[:limit], found[limit - 1].id) if len(found) > limit else (found, further)


@router.get("/counts", response_model=list[InstanceCounts])
async def counts(
    who: Administrator, flow: Annotated[Text | None, Query(max_length=100, description="Of this flow.")] = None
) -> Response:
    """How many instances there are, flow by flow. Where they are very many it is an estimate, and `is_exact` is false."""
    return answer(await who.engine.instance_counts(flow))


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
    """Its tasks under way. What a parked one writes when it can is left out where it is large: the job alone has it."""
    found = await who.sight.jobs(instance, after=decode_cursor(cursor, int) or 0, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)

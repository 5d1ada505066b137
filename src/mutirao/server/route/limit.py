"""All flows at a glance: what is going on in each, how long they are kept, and the limits on their jobs."""

from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import Field

from mutirao.database.record import FlowRecord, LimitRecord, RetentionRecord
from mutirao.model import Limit
from mutirao.server.answer import answer, done
from mutirao.server.need import Administrator
from mutirao.server.route.parts import Body, FlowName, Text, routes

router = routes("flow", "")

TaskName = Annotated[Text, Path(min_length=1, max_length=100, examples=["book_hotel"])]
Most = Annotated[int | None, Field(ge=1, le=2**31 - 1)]


class LimitTo(Body):
    at_once: Most = 5
    per_second: Annotated[float | None, Field(gt=0, le=1e6)] = None
    per: Annotated[Text | None, Field(max_length=100, description="For each value of this attribute …")] = None
    each: Annotated[Most, Field(description="… so many at once.")] = None


@router.get("/overview", response_model=list[FlowRecord])
async def overview(who: Administrator) -> Response:
    """All flows, with what is going on in each."""
    return answer(await who.engine.flows())


@router.get("/retention", response_model=list[RetentionRecord])
async def retention(who: Administrator) -> Response:
    """How long finished instances are kept, flow by flow."""
    return answer(await who.engine.retention())


@router.get("/limits", response_model=list[LimitRecord])
async def limits(who: Administrator, flow: Annotated[Text | None, Query(max_length=100)] = None) -> Response:
    """The limits in force, and how far they are used."""
    return answer(await who.engine.limits(flow))


@router.put("/flows/{flow}/tasks/{task}/limit", status_code=204)
async def set_limit(who: Administrator, flow: FlowName, task: TaskName, body: LimitTo) -> Response:
    """Limit the jobs of a task from now on, whatever its definition says."""
    await who.engine.limit(flow, task, Limit(**body.model_dump()))
    return done()


@router.delete("/flows/{flow}/tasks/{task}/limit", status_code=204)
async def free(who: Administrator, flow: FlowName, task: TaskName) -> Response:
    """Let any number of them run."""
    await who.engine.limit(flow, task, None)
    return done()

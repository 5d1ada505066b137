"""Schedules: flows that a clock starts again and again."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from mutirao.database.record import ScheduleRecord
from mutirao.database.schedule import Schedule
from mutirao.server.answer import answer, done
from mutirao.server.need import Administrator
from mutirao.server.route.parts import Body, Priority, State, Text, routes

router = routes("schedule", "")

Name = Annotated[Text, Path(min_length=1, max_length=100, examples=["every_morning"])]
Cron = Annotated[
    Text, Field(max_length=200, description="Five fields, as cron has them.", examples=["0 8 * * mon-fri"])
]
Zone = Annotated[
    Text, Field(max_length=100, description="By the clocks of this time zone.", examples=["America/Recife"])
]


class PutSchedule(Body):
    flow: Annotated[Text, Field(max_length=100, examples=["report"])]
    cron: Cron
    zone: Zone = "UTC"
    state: State = {}
    priority: Priority = 0
    missed: Annotated[Literal["skip", "once", "all"], Field(description="What to do about times nobody came to.")] = (
        "once"
    )
    overlap: Annotated[Literal["allow", "skip"], Field(description="Whether to start while the last one is open.")] = (
        "allow"
    )
    time_to: Annotated[Text | None, Field(max_length=100, description="The attribute that receives the time.")] = None


@router.get("/schedules", response_model=list[ScheduleRecord])
async def all_schedules(who: Administrator) -> Response:
    """All of them; those that fire next come first."""
    return answer(await who.engine.schedules.all())


@router.get("/times", response_model=list[datetime])
async def times(
    who: Administrator,
    cron: Annotated[Text, Query(max_length=200, examples=["0 8 * * mon-fri"])],
    zone: Annotated[Text, Query(max_length=100)] = "UTC",
    count: Annotated[int, Query(ge=1, le=100)] = 5,
) -> Response:
    """When a cron pattern fires next."""
    return answer(await who.engine.schedules.times(cron, zone, count=count))


@router.get("/schedules/{name}", response_model=ScheduleRecord)
async def show(who: Administrator, name: Name) -> Response:
    """A schedule as it stands."""
    return answer(await who.engine.schedules.get(name))


@router.put("/schedules/{name}", response_model=ScheduleRecord)
async def put(who: Administrator, name: Name, body: PutSchedule) -> Response:
    """Put it in place. The same again changes nothing; one that is paused stays so."""
    return answer(await who.engine.schedules.put(Schedule(name=name, **body.model_dump())))


@router.post("/schedules/{name}/pause", status_code=204)
async def pause(who: Administrator, name: Name) -> Response:
    """Let it start nothing until it is resumed. Times that pass meanwhile are not missed."""
    await who.engine.schedules.pause(name)
    return done()


@router.post("/schedules/{name}/resume", status_code=204)
async def resume(who: Administrator, name: Name) -> Response:
    """Let it go on."""
    await who.engine.schedules.resume(name)
    return done()


@router.delete("/schedules/{name}", status_code=204)
async def drop(who: Administrator, name: Name) -> Response:
    """Take it away. What it has started goes on."""
    await who.engine.schedules.drop(name)
    return done()

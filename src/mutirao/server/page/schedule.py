"""Schedules: flows that a clock starts again and again. For administrators.

Names stand in the query of an address, and not in its path: so a schedule may be called "new", too.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import Query, Request, Response

from mutirao.database.record import ScheduleRecord
from mutirao.errors import MutiraoError
from mutirao.model import Attribute
from mutirao.server.need import Administrator
from mutirao.server.page.cron import in_words
from mutirao.server.page.form import Field, field_for
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import Text
from mutirao.server.who import Who

router = pages()

_FIRST_CRON = "0 8 * * mon-fri"
FlowName = Annotated[Text, Query(max_length=100)]
Cron = Annotated[Text, Query(max_length=200)]
Zone = Annotated[Text, Query(max_length=100)]


@router.get("/schedules")
async def schedules(request: Request, who: Administrator) -> Response:
    """All of them; those that fire next come first."""
    found = await who.engine.schedules.all()
    reader = Reader.of(request)
    words = {each.name: in_words(each.cron, reader) for each in found}
    return render(request, "schedules.html", schedules=found, words=words)


@router.get("/schedules/new")
async def new(request: Request, who: Administrator, flow: FlowName = "") -> Response:
    """A form for one that is not there yet, with fields for the attributes of the flow that was chosen."""
    zone = Reader.of(request).zone.key
    return await _form(request, who, None, flow, cron=_FIRST_CRON, zone=zone)


@router.get("/schedules/change")
async def change(
    request: Request, who: Administrator, name: Annotated[Text, Query(max_length=100)], flow: FlowName = ""
) -> Response:
    found = await who.engine.schedules.get(name)
    return await _form(request, who, found, flow or found.flow, cron=found.cron, zone=found.zone)


@router.get("/schedules/times")
async def times(request: Request, who: Administrator, cron: Cron = "", zone: Zone = "") -> Response:
    """When a pattern fires, as somebody types it: what is wrong with it is an answer as well."""
    return render(request, "schedule_times.html", **await _times(request, who, cron, zone))


async def _form(  # noqa: PLR0913 what it begins with, by name
    request: Request, who: Who, schedule: ScheduleRecord | None, flow: str, *, cron: str, zone: str
) -> Response:
    flows = sorted(each.name for each in await who.engine.flow_heads())
    chosen = flow or (flows[0] if flows else "")
    attributes = (await who.engine.definition(chosen)).attributes if chosen else ()
    state = schedule.state if schedule is not None and schedule.flow == chosen else {}
    return render(
        request,
        "schedule.html",
        schedule=schedule,
        flows=flows,
        chosen=chosen,
        fields=list(_fields(attributes, state, Reader.of(request))),
        receivers=[each.name for each in attributes if each.type in ("timestamp", "date", "text")],
        zones=_zones(),
        **await _times(request, who, cron, zone),
    )


def _fields(attributes: Iterable[Attribute], state: dict[str, Any], reader: Reader) -> Iterator[Field]:
    """A schedule gives no files, and nothing that a query reads."""
    for each in attributes:
        if each.type != "file" and each.query is None:
            yield field_for(each.name, each.type, within="state", value=state.get(each.name), zone=reader.zone)


@cache
def _zones() -> list[str]:
    return sorted(available_timezones())


async def _times(request: Request, who: Who, cron: str, zone: str) -> dict[str, Any]:
    following: list[datetime] = []
    wrong = ""
    try:
        following = await who.engine.schedules.times(cron, zone)
    except MutiraoError as error:
        if error.code not in ("wrong_cron", "unknown_zone", "wrong_call"):
            raise
        wrong = error.message
    return {"cron": cron, "zone": zone, "times": following, "wrong": wrong, "words": in_words(cron, Reader.of(request))}

"""Schedules: flows that a clock starts again and again. For administrators.

Names stand in the query of an address, and not in its path: so a schedule may be called "form", too.
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
from mutirao.server.answer import Cursor, decode_cursor, encode_cursor
from mutirao.server.need import Administrator
from mutirao.server.page.cron import in_words
from mutirao.server.page.form import Field, field_for
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import Text
from mutirao.server.who import Who

router = pages()

_PAGE = 50
_NEVER = 2**53
"""Seconds: after whatever a clock comes to."""
_FIRST_CRON = "0 8 * * mon-fri"
Name = Annotated[Text, Query(max_length=100)]
FlowName = Annotated[Text, Query(max_length=100)]
Cron = Annotated[Text, Query(max_length=200)]
Zone = Annotated[Text, Query(max_length=100)]


@router.get("/schedules")
async def schedules(request: Request, who: Administrator, cursor: Cursor = None) -> Response:
    """Those that fire next come first."""
    after = decode_cursor(cursor, tuple[int, str])
    found = sorted(
        (each for each in await who.engine.schedules.all() if after is None or _turn(each) > after), key=_turn
    )
    shown, reader = found[:_PAGE], Reader.of(request)
    return render(
        request,
        "schedules.html",
        schedules=shown,
        words={each.name: in_words(each.cron, reader) for each in shown},
        cursor=cursor,
        following=encode_cursor(_turn(shown[-1])) if len(found) > _PAGE else None,
    )


@router.get("/schedules/form")
async def form(request: Request, who: Administrator, name: Name = "", flow: FlowName = "") -> Response:
    """To change the one of this name, or to make one; with fields for the attributes of the flow that was chosen."""
    found = await who.engine.schedules.get(name) if name else None
    flows = sorted(each.name for each in await who.engine.flow_heads())
    chosen = flow or (found.flow if found is not None else "".join(flows[:1]))
    attributes = (await who.engine.definition(chosen)).attributes if chosen else ()
    reader = Reader.of(request)
    cron, zone = (_FIRST_CRON, reader.zone.key) if found is None else (found.cron, found.zone)
    state = found.state if found is not None and found.flow == chosen else {}
    return render(
        request,
        "schedule.html",
        schedule=found,
        flows=flows,
        chosen=chosen,
        fields=list(_fields(attributes, state, reader)),
        receivers=[each.name for each in attributes if each.type in ("timestamp", "date", "text")],
        zones=_zones(),
        **await _times(who, cron, zone, reader),
    )


@router.get("/schedules/times")
async def times(request: Request, who: Administrator, cron: Cron = "", zone: Zone = "UTC") -> Response:
    """When a pattern fires, as somebody types it: what is wrong with it is an answer as well."""
    return render(request, "schedule_times.html", **await _times(who, cron, zone, Reader.of(request)))


def _turn(schedule: ScheduleRecord) -> tuple[int, str]:
    """Its place in the list: they fire at whole minutes, and one that is paused comes last."""
    return _NEVER if schedule.next_at is None else int(schedule.next_at.timestamp()), schedule.name


def _fields(attributes: Iterable[Attribute], state: dict[str, Any], reader: Reader) -> Iterator[Field]:
    """A schedule gives no files, and nothing that a query reads."""
    for each in attributes:
        if each.type != "file" and each.query is None:
            needed, value = each.required and each.default is None, state.get(each.name)
            yield field_for(each.name, each.type, within="state", required=needed, value=value, zone=reader.zone)


@cache
def _zones() -> list[str]:
    return sorted(available_timezones())


async def _times(who: Who, cron: str, zone: str, reader: Reader) -> dict[str, Any]:
    following: list[datetime] = []
    wrong = ""
    try:
        following = await who.engine.schedules.times(cron, zone)
    except MutiraoError as error:
        if error.code not in ("wrong_cron", "unknown_zone", "wrong_call"):
            raise
        wrong = error.message
    words = "" if wrong else in_words(cron, reader)
    return {"cron": cron, "zone": zone, "times": following, "wrong": wrong, "words": words}

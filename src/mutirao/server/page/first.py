"""The first page: whoever is new here learns what this is and what to try; whoever works here sees what is going on.

What is asked for is bounded however much there is: some items, some instances, and numbers that the engine keeps at hand.
"""

from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response

from mutirao.database.find import InstanceFilter
from mutirao.database.item import ItemFilter
from mutirao.database.record import Instance
from mutirao.server.need import SignedIn
from mutirao.server.page.first_step import EXAMPLE, lacks_account, steps_of
from mutirao.server.page.notice import notice_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.reason import reasons_of
from mutirao.server.page.shell import pages, render
from mutirao.server.who import Who

router = pages()

SEEN = "mutirao_first"
"""The cookie of whoever does not want to see the first steps any more."""

_FEW = 5
_ENOUGH = 1000
_OF_THE_EXAMPLE = 40


@router.get("/")
async def first(request: Request, who: SignedIn) -> Response:
    flows = {each.name for each in await who.sight.flows()}
    reader = Reader.of(request)
    known = await _own(who, reader)
    if who.is_administrator:
        known |= await _engine(who, reader)
    is_example = who.is_administrator and EXAMPLE in flows  # the steps show what only they may see
    wants_steps = is_example and request.cookies.get(SEEN) != "yes"
    return render(
        request,
        "first.html",
        flows=flows,
        is_example=is_example,
        example=await _example(who) if wants_steps else None,
        events="/api/events?everything=true" if who.is_administrator else "/api/events",
        **known,
    )


async def _own(who: Who, reader: Reader) -> dict[str, Any]:
    """What is the reader's own."""
    engine = who.engine
    found = await engine.worklists.size(who.id, enough=_ENOUGH)
    messages = await engine.messages.page(who.id, unread=True, limit=3)
    return {
        "to_do": found.size,
        "is_more": found.size == _ENOUGH,
        "overdue": found.overdue,
        "items": (await engine.worklists.page(who.id, ItemFilter(sort="deadline"), limit=_FEW)).items,
        "unread": await engine.messages.unread(who.id),
        "messages": [(each, notice_of(reader, each)) for each in messages],
        "charged": await engine.charges.in_charge(who.id, is_open=True, limit=_FEW),
    }


async def _engine(who: Who, reader: Reader) -> dict[str, Any]:
    """What concerns those who look after everything. What exceptions there are, kind by kind, is told on their own page."""
    engine = who.engine
    counts = await engine.instance_counts()
    exceptions = await who.sight.exception_count()
    return {
        "stuck": [(each, reasons_of(reader, each.reasons)) for each in await who.sight.exceptions(limit=_FEW)],
        "exceptions": exceptions,
        "is_more_stuck": exceptions == _ENOUGH,
        "open": sum(each.open for each in counts),
        "closed": sum(each.closed for each in counts),
        "is_exact": all(each.is_exact for each in counts),
        "newest": await engine.instances(status="open", limit=_FEW),
        "workers": await engine.alive_workers(),
        "persons": len(await engine.persons.page(who.id, limit=2)),
    }


@dataclass(frozen=True)
class Example:
    """The example's instances that are open, by the step at which they are; and one that waits for its account."""

    steps: list[tuple[str, str, int]]
    looked_at: Instance | None
    flow: str = EXAMPLE


async def _example(who: Who) -> Example:
    found, _ = await who.engine.find_instances(InstanceFilter(flow=EXAMPLE, status="open"), limit=_OF_THE_EXAMPLE)
    stuck, _ = await who.engine.find_instances(
        InstanceFilter(flow=EXAMPLE, status="open.exception"), limit=_OF_THE_EXAMPLE
    )
    return Example(steps_of(found), next((each for each in stuck if lacks_account(each.state)), None))

"""Instances: those that the reader has had to do with, or all of them. Quick among a million: see database/find.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request, Response

from mutirao.database.record import Instance, InstanceCounts
from mutirao.errors import MutiraoError
from mutirao.model import Definition
from mutirao.server.answer import Cursor, decode_cursor, encode_cursor
from mutirao.server.need import SignedIn
from mutirao.server.page.batch import KINDS
from mutirao.server.page.instance_filter import OLDER, Looked, batch_filter
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.route.instance import find
from mutirao.server.who import Who

router = pages()

STATUSES = (
    "open",
    "open.running",
    "open.exception",
    "open.notrunning",
    "open.notrunning.suspended",
    "closed",
    "closed.completed",
    "closed.terminated",
    "closed.aborted",
)
_PAGE = 50


@dataclass(frozen=True, slots=True)
class Counted:
    """So many are of a status, or about so many."""

    status: str
    count: int
    is_exact: bool


@router.get("/instances")
async def instances(request: Request, who: SignedIn, cursor: Cursor = None) -> Response:
    """The filter stands in the address."""
    reader = Reader.of(request)
    looked = Looked.of(dict(request.query_params))
    wanted = looked.filter(reader)
    before = decode_cursor(cursor, int)
    found, further = await find(who, wanted, everybody=who.is_administrator, before=before, limit=_PAGE)
    definition = await definition_of(who, looked.flow)
    counts = await who.engine.instance_counts() if who.is_administrator else []
    return render(
        request,
        "instance_list.html",
        looked=looked,
        found=found,
        is_first=cursor is None,
        following=further and looked.address(cursor=encode_cursor(further)),
        is_cut=further is not None and len(found) < _PAGE,
        here=looked.address(),
        flows=await _flows(who, looked, counts),
        searchable=[each.name for each in definition.attributes if each.searchable] if definition else [],
        statuses=STATUSES,
        older=OLDER,
        tally=_tally(counts, looked.flow),
        counts=counts,
        rounded=rounded,
        kinds=KINDS,
        takes_all=who.is_administrator and batch_filter(wanted, definition) is not None,
        watched=_watched(who, found),
    )


def _watched(who: Who, found: Sequence[Instance]) -> str:
    """Administrators hear of whatever moves; others of those that they have in front of them, and may still move."""
    if who.is_administrator:
        return "/api/events?everything=true"
    return f"/api/events?{urlencode([('instance', each.id) for each in found if each.closed_at is None])}"


async def definition_of(who: Who, flow: str) -> Definition | None:
    """Of a flow that the reader may start; of others they are not told what it has."""
    if not flow:
        return None
    try:
        return await who.sight.definition(flow)
    except MutiraoError as error:
        if error.code != "unknown_flow":
            raise
        return None


async def _flows(who: Who, looked: Looked, counts: list[InstanceCounts]) -> list[str]:
    names = {each.flow for each in counts} if who.is_administrator else {each.name for each in await who.sight.flows()}
    return sorted(names | ({looked.flow} if looked.flow else set()))


def _tally(counts: list[InstanceCounts], flow: str) -> list[Counted]:
    """By status, of all flows or of the one that is looked at; the wider ones first."""
    chosen = [each for each in counts if not flow or each.flow == flow]
    is_exact = all(each.is_exact for each in chosen)
    found: list[Counted] = []
    for status in ("open", *STATUSES[2:5], "closed", "closed.terminated", "closed.aborted"):
        several = status in ("open", "closed")
        count = sum(
            number
            for each in chosen
            for name, number in each.statuses.items()
            if (name.startswith(status) if several else name == status)
        )
        if count or several:
            found.append(Counted(status, count, is_exact))
    return found


def rounded(count: int) -> int:
    """An estimate has two digits that say something."""
    return int(round(count, 2 - len(str(count))))

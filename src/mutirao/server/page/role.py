"""Roles: all of them, and one with its members. In which flows a role stands is for administrators."""

from itertools import groupby
from operator import attrgetter

from fastapi import Request, Response

from mutirao.database.person import PersonFilter
from mutirao.database.role import RoleUse
from mutirao.server.answer import Cursor, decode_cursor, encode_cursor
from mutirao.server.need import SignedIn
from mutirao.server.page.person import PAGE, suggested
from mutirao.server.page.shell import pages, render
from mutirao.server.route.role import Role
from mutirao.server.who import Who

router = pages()

PLACE = "/people"


@router.get("/roles")
async def roles(request: Request, who: SignedIn) -> Response:
    uses = await who.engine.roles.uses() if who.is_administrator else []
    flows: dict[str, list[str]] = {}
    for use in sorted(uses, key=attrgetter("role", "flow")):
        if use.flow not in flows.setdefault(use.role, []):
            flows[use.role].append(use.flow)
    return render(request, "roles.html", path=PLACE, roles=await who.engine.roles.all(who.id), flows=flows)


@router.get("/roles/{role}")
async def one(request: Request, who: SignedIn, role: Role, cursor: Cursor = None) -> Response:
    """A role and who is in it."""
    found = await who.engine.roles.get(who.id, role)
    after = decode_cursor(cursor, str)
    members = await who.engine.persons.page(who.id, PersonFilter(role=found.name), after=after, limit=PAGE + 1)
    return render(
        request,
        "role.html",
        path=PLACE,
        role=found,
        members=members[:PAGE],
        is_first=cursor is None,
        following=encode_cursor(members[PAGE - 1].name) if len(members) > PAGE else None,
        uses=await _uses(who, found.name),
        names=[each.name for each in await suggested(who)] if who.is_administrator else [],
    )


async def _uses(who: Who, role: str) -> list[tuple[str, list[RoleUse]]]:
    """By flow."""
    found = await who.engine.roles.uses(role) if who.is_administrator else []
    return [(flow, list(uses)) for flow, uses in groupby(found, attrgetter("flow"))]

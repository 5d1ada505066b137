"""People: all of them, and one; one's own page is where one sees to passwords, sessions, tokens and being away."""

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from mutirao.database.person import PersonFilter, PersonRecord
from mutirao.server.answer import Cursor, decode_cursor, encode_cursor
from mutirao.server.need import SignedIn
from mutirao.server.page.agent import short_agent
from mutirao.server.page.form import text_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import Text
from mutirao.server.route.person import Person
from mutirao.server.who import Who

router = pages()

PAGE = 50
_SUGGESTED = 200


class Chosen(BaseModel):
    """Which persons. A form sends empty fields, too."""

    search: Annotated[Text, Field(max_length=100)] = ""
    role: Annotated[Text, Field(max_length=100)] = ""
    status: Literal["", "here", "enabled", "disabled"] = ""

    def filter(self) -> PersonFilter:
        is_disabled = {"enabled": False, "disabled": True}.get(self.status)
        return PersonFilter(self.role or None, self.search or None, self.status == "here" or None, is_disabled)

    def address(self, **more: str) -> str:
        said = {name: value for name, value in (self.model_dump() | more).items() if value}
        return f"/people?{urlencode(said)}" if said else "/people"


@router.get("/people")
async def people(
    request: Request, who: SignedIn, chosen: Annotated[Chosen, Query()], cursor: Cursor = None
) -> Response:
    """Persons by name, as everybody may see them. The filter stands in the address."""
    after = decode_cursor(cursor, str)
    found = await who.engine.persons.page(who.id, chosen.filter(), after=after, limit=PAGE + 1)
    return render(
        request,
        "people.html",
        persons=found[:PAGE],
        roles=await who.engine.roles.names(),
        chosen=chosen,
        here=chosen.address(),
        is_first=cursor is None,
        following=chosen.address(cursor=encode_cursor(found[PAGE - 1].name)) if len(found) > PAGE else None,
    )


@router.get("/people/{person}")
async def one(request: Request, who: SignedIn, person: Person, new: bool = False) -> Response:
    """One person. What only they and administrators may see is not even asked for, for anybody else."""
    found = await who.engine.persons.get(who.id, person)
    is_own = found.id == who.id
    private: dict[str, Any] = await _private(who, found.name) if is_own or who.is_administrator else {}
    return render(
        request,
        "person.html",
        person=found,
        is_own=is_own,
        is_new=new,
        short_agent=short_agent,
        stamp=lambda at: text_of(at, "timestamp", Reader.of(request).zone),
        may_change=is_own or who.is_administrator,
        **private,
    )


async def _private(who: Who, person: str) -> dict[str, Any]:
    return {
        "sessions": await who.engine.access.sessions(who.id, person),
        "session": who.identity.session,
        "tokens": await who.engine.access.tokens(who.id, person),
        "roles": await who.engine.roles.names(),
        "names": [each.name for each in await suggested(who) if each.name != person],
    }


async def suggested(who: Who, role: str | None = None) -> list[PersonRecord]:
    """To choose from where a name is to be typed: some of those who are enabled, of a role or of all; any other may be typed as well."""
    return await who.engine.persons.page(who.id, PersonFilter(role=role, is_disabled=False), limit=_SUGGESTED)

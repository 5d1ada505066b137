"""Persons: who they are, and when they are away."""

from typing import Annotated, cast

from fastapi import Path, Query, Request, Response
from pydantic import AwareDatetime, Field

from mutirao.database.person import Away, PersonChange, PersonFilter, PersonRecord
from mutirao.server.answer import Cursor, Page, PageSize, answer, decode_cursor, page
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.revision import concerning, seen
from mutirao.server.route.parts import Body, IfMatch, Text, routes
from mutirao.server.routing import creates

router = routes("person", "/persons")

Name = Annotated[Text, Field(min_length=1, max_length=100, description="What they sign in with.", examples=["clerk_1"])]
FullName = Annotated[Text | None, Field(max_length=200)]
Email = Annotated[Text | None, Field(max_length=254, examples=["clerk_1@example.org"])]
Person = Annotated[Text, Path(min_length=1, max_length=100, description="The name of a person.", examples=["clerk_1"])]
Revision = Annotated[
    int | None,
    Field(ge=1, le=2**31 - 1, description="The revision that was read: refused with 409 when there is a newer one."),
]


class AddPerson(Body):
    name: Name
    full_name: FullName = None
    email: Email = None
    roles: Annotated[list[Text], Field(max_length=1000, examples=[["clerk"]])] = []


class ChangePerson(Body):
    """What is to be changed; what is not named stays."""

    name: Name | None = None
    full_name: FullName = None
    email: Email = None
    revision: Revision = None


class GoAway(Body):
    from_at: Annotated[AwareDatetime | None, Field(description="Nothing: from now.")] = None
    until_at: Annotated[AwareDatetime | None, Field(description="Nothing: until they say so.")] = None
    substitute: Annotated[Text | None, Field(max_length=100, description="Who sees their work meanwhile.")] = None
    revision: Revision = None


class SeenPerson(Body):
    revision: Revision = None


def _answer(found: PersonRecord, status: int = 200) -> Response:
    return answer(found, status=status, revision=found.revision)


@router.get("", response_model=Page[PersonRecord])
async def page_of_persons(
    request: Request,
    who: SignedIn,
    role: Annotated[Text | None, Query(max_length=100)] = None,
    search: Annotated[Text | None, Query(max_length=100, description="A text in their names.")] = None,
    here: Annotated[bool | None, Query(description="Signed in, and not idle.")] = None,
    disabled: bool | None = None,
    limit: PageSize = 100,
    cursor: Cursor = None,
) -> Response:
    """Persons by name. E-mails and numbers of items are for oneself and administrators."""
    chosen = PersonFilter(role, search, here, disabled)
    after = decode_cursor(cursor, str)
    found = await who.engine.persons.page(who.id, chosen, after=after, limit=limit + 1)
    return page(request, found, limit, lambda each: each.name)


@router.post("", status_code=201, response_model=PersonRecord)
@creates
async def add(who: Administrator, body: AddPerson) -> Response:
    """Add a person. They sign in once they have a password."""
    names = {"full_name": body.full_name, "email": body.email}
    return _answer(await who.engine.persons.add(who.id, body.name, **names, roles=body.roles), status=201)


@router.get("/{person}", response_model=PersonRecord)
async def show(who: SignedIn, person: Person) -> Response:
    """One person."""
    return _answer(await who.engine.persons.get(who.id, person))


@router.patch("/{person}", response_model=PersonRecord)
async def change(who: SignedIn, person: Person, body: ChangePerson, if_match: IfMatch = None) -> Response:
    """Change somebody, if you are an administrator; or your own full name and e-mail."""
    wanted = cast("PersonChange", body.model_dump(exclude_unset=True, exclude={"revision"}))
    with concerning(if_match):
        return _answer(await who.engine.persons.change(who.id, person, wanted, revision=seen(if_match, body.revision)))


@router.put("/{person}/away", response_model=PersonRecord)
async def go_away(who: SignedIn, person: Person, body: GoAway, if_match: IfMatch = None) -> Response:
    """Say that somebody is away, or will be: you yourself, or anybody if you are an administrator."""
    away = Away(body.from_at, body.until_at, body.substitute)
    with concerning(if_match):
        return _answer(await who.engine.persons.away(who.id, person, away, revision=seen(if_match, body.revision)))


@router.delete("/{person}/away", response_model=PersonRecord)
async def come_back(who: SignedIn, person: Person, if_match: IfMatch = None) -> Response:
    """They are back."""
    with concerning(if_match):
        return _answer(await who.engine.persons.away(who.id, person, None, revision=seen(if_match)))


@router.post("/{person}/disable", response_model=PersonRecord)
async def disable(
    who: Administrator, person: Person, body: SeenPerson = SeenPerson(), if_match: IfMatch = None
) -> Response:
    """Let them do nothing any more: sessions and tokens end, what they hold goes back to its role."""
    with concerning(if_match):
        return _answer(await who.engine.persons.disable(who.id, person, revision=seen(if_match, body.revision)))


@router.post("/{person}/enable", response_model=PersonRecord)
async def enable(
    who: Administrator, person: Person, body: SeenPerson = SeenPerson(), if_match: IfMatch = None
) -> Response:
    """Let them sign in again."""
    with concerning(if_match):
        return _answer(await who.engine.persons.enable(who.id, person, revision=seen(if_match, body.revision)))

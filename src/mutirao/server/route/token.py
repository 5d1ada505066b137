"""Tokens, by which programs act as a person."""

from datetime import datetime
from typing import Annotated

from fastapi import Path, Response
from pydantic import AwareDatetime, BaseModel, Field

from mutirao.database.access import TokenRecord
from mutirao.people import add_token
from mutirao.server.answer import answer, done
from mutirao.server.need import InSession, SignedIn
from mutirao.server.route.parts import Body, Text, routes
from mutirao.server.route.person import Person
from mutirao.server.routing import creates_secret

router = routes("token", "/persons/{person}/tokens")

Name = Annotated[Text, Field(min_length=1, max_length=100, examples=["nightly import"])]


class AddToken(Body):
    name: Name
    expires_at: Annotated[AwareDatetime | None, Field(description="Nothing: never.")] = None


class ShownToken(BaseModel):
    """A token as it is shown once."""

    id: int
    name: str
    expires_at: datetime | None
    secret: Annotated[str, Field(description="What the program sends as `Authorization: Bearer <secret>`.")]


@router.get("", response_model=list[TokenRecord])
async def all_tokens(who: SignedIn, person: Person) -> Response:
    """The tokens of a person: for oneself and administrators."""
    return answer(await who.engine.access.tokens(who.id, person))


@router.post("", status_code=201, response_model=ShownToken)
@creates_secret
async def add(who: InSession, person: Person, body: AddToken) -> Response:
    """Let a program act as a person: as yourself, or as anybody if you are an administrator. The secret is shown once.

    Not by a token: one that leaks would become many, for ever.
    """
    return answer(await add_token(who.engine, who.id, person, body.name, expires_at=body.expires_at), status=201)


@router.delete("/{name}", status_code=204)
async def revoke(who: SignedIn, person: Person, name: Annotated[Text, Path(max_length=100)]) -> Response:
    """End what a program may do by a token, from now on."""
    await who.engine.access.revoke_token(who.id, person, name)
    return done()

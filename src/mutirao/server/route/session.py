"""Sessions: signing in and out, and who am I."""

from typing import Annotated

from fastapi import Request, Response
from pydantic import BaseModel, Field

from mutirao.database.access import SessionRecord
from mutirao.people import Identity, change_password, reset_password, set_password, sign_in, sign_out
from mutirao.server.answer import answer, done
from mutirao.server.cookie import check_origin, clear_cookies, set_cookies
from mutirao.server.need import AdministratorInSession, Anybody, SignedIn
from mutirao.server.route.parts import Body, Number, Text, routes
from mutirao.server.route.person import Person
from mutirao.server.routing import creates_secret

router = routes("session", "")

Password = Annotated[Text, Field(max_length=1000, examples=["a long and secret one"])]


class SignIn(Body):
    name: Annotated[Text, Field(max_length=100, examples=["clerk_1"])]
    password: Password


class Me(BaseModel):
    """Who is signed in. `csrf` is what to send as X-CSRF-Token; programs need none."""

    person: int
    name: Annotated[str, Field(examples=["clerk_1"])]
    roles: Annotated[list[str], Field(examples=[["clerk"]])]
    is_administrator: bool
    csrf: str | None


class NewPassword(Body):
    old: Password
    new: Password


class GivenPassword(Body):
    password: Password


class ShownPassword(BaseModel):
    password: str


class Ended(BaseModel):
    count: int


def _me(identity: Identity) -> dict[str, object]:
    return {name: getattr(identity, name) for name in Me.model_fields}


def _address(request: Request) -> str | None:
    return request.client.host if request.client is not None else None


@router.post("/session", status_code=201, response_model=Me)
async def sign_in_person(request: Request, who: Anybody, body: SignIn) -> Response:  # noqa: ARG001 it says who may ask
    """Sign in: sets the session's cookie, and answers the X-CSRF-Token for whatever changes something."""
    check_origin(request)
    agent = request.headers.get("user-agent")
    engine = request.app.state.engine
    session = await sign_in(engine, body.name, body.password, address=_address(request), agent=agent)
    response = answer(_me(session.identity), status=201)
    set_cookies(request, response, session.secret, session.identity.csrf or "")
    return response


@router.get("/session", response_model=Me)
async def me(who: SignedIn) -> Response:
    """Who am I."""
    return answer(_me(who.identity))


@router.delete("/session", status_code=204)
async def sign_out_person(request: Request, who: SignedIn) -> Response:
    """Sign out here."""
    await sign_out(who.engine, who.identity)
    response = done()
    clear_cookies(request, response)
    return response


@router.put("/session/password", status_code=204)
async def change_own_password(request: Request, who: SignedIn, body: NewPassword) -> Response:
    """Have another password; all your other sessions end, tokens stay."""
    await change_password(who.engine, who.identity, body.old, body.new, address=_address(request))
    return done()


@router.put("/persons/{person}/password", status_code=204)
async def give_password(who: AdministratorInSession, person: Person, body: GivenPassword) -> Response:
    """Give somebody a password; all their sessions end, tokens stay. Not by a token."""
    await set_password(who.engine, who.id, person, body.password)
    return done()


@router.post("/persons/{person}/password", status_code=201, response_model=ShownPassword)
@creates_secret
async def make_password(who: AdministratorInSession, person: Person) -> Response:
    """Give somebody a random password, which is shown once. Not by a token."""
    return answer({"password": await reset_password(who.engine, who.id, person)}, status=201)


@router.get("/persons/{person}/sessions", response_model=list[SessionRecord])
async def sessions(who: SignedIn, person: Person) -> Response:
    """Where somebody is signed in: for oneself and administrators."""
    return answer(await who.engine.access.sessions(who.id, person))


@router.delete("/persons/{person}/sessions", response_model=Ended)
async def sign_out_everywhere(who: SignedIn, person: Person, but_here: bool = False) -> Response:
    """Sign somebody out everywhere, or everywhere but here: for oneself and administrators."""
    but = who.identity.session if but_here else None
    return answer({"count": await who.engine.access.end_sessions(who.id, person, but=but)})


@router.delete("/persons/{person}/sessions/{session}", status_code=204)
async def end(who: SignedIn, person: Person, session: Number) -> Response:
    """End one session."""
    await who.engine.access.end_session(who.id, person, session)
    return done()

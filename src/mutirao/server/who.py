"""Who asks: a person by the cookie of a session, or a program by a token."""

from dataclasses import dataclass
from functools import cached_property

from starlette.requests import Request

from mutirao.database.engine import Engine
from mutirao.database.sight import Sight
from mutirao.errors import MutiraoError, RequestError
from mutirao.people import Identity, authenticate_session, authenticate_token
from mutirao.server.cookie import check_csrf, session_of

_BEARER = "bearer "


@dataclass(frozen=True)
class Who:
    """The person who asks. What `engine` writes is signed by them; `sight` is what they may see."""

    engine: Engine
    identity: Identity
    secret: str

    @property
    def id(self) -> int:
        return self.identity.person

    @property
    def name(self) -> str:
        return self.identity.name

    @property
    def is_administrator(self) -> bool:
        return self.identity.is_administrator

    @cached_property
    def sight(self) -> Sight:
        return self.engine.seen_by(self.id)

    def check_administrator(self) -> None:
        if not self.is_administrator:
            raise RequestError("forbidden", "only administrators may do this")

    def check_session(self) -> None:
        if self.identity.session is None:
            raise RequestError(
                "forbidden", "passwords and tokens are not made by a token: sign in by POST /api/session"
            )

    async def is_still_in(self) -> bool:
        """Whether the session or token that they came with still holds."""
        return await self._now() is not None

    async def is_still_administrator(self) -> bool:
        now = await self._now()
        return now is not None and now.is_administrator

    async def _now(self) -> Identity | None:
        try:
            return await _identity(self.engine, self.secret, is_token=self.identity.token is not None)
        except MutiraoError as error:
            if error.code != "not_signed_in":
                raise
            return None


async def who_asks(request: Request) -> Who:
    """Found out once a request; whoever cannot be is refused."""
    known: Who | None = getattr(request.state, "who", None)
    if known is None:
        known = await _find(request)
        request.state.who = known
        request.state.person = known.name
    return known


async def _find(request: Request) -> Who:
    """A program says so itself, so a token goes before a cookie, and needs no proof of where it comes from."""
    engine: Engine = request.app.state.engine
    authorization = request.headers.get("authorization")
    if authorization is not None:
        if not authorization.lower().startswith(_BEARER):
            raise RequestError("not_signed_in", "programs send `Authorization: Bearer <token>`")
        return await _known(engine, authorization[len(_BEARER) :].strip(), is_token=True)
    secret = session_of(request)
    if not secret:
        raise RequestError("not_signed_in", "sign in by POST /api/session, or send a token")
    who = await _known(engine, secret, is_token=False)
    check_csrf(request, who.identity)
    return who


async def _known(engine: Engine, secret: str, *, is_token: bool) -> Who:
    identity = await _identity(engine, secret, is_token=is_token)
    return Who(engine.signed_by(identity.name), identity, secret)


async def _identity(engine: Engine, secret: str, *, is_token: bool) -> Identity:
    return await (authenticate_token if is_token else authenticate_session)(engine, secret)

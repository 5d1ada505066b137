"""Who comes with a request: by a session, as people do, or by a token, as programs do."""

from dataclasses import dataclass
from datetime import datetime

from mutirao.database.access import Holder
from mutirao.database.engine import Engine
from mutirao.people.secret import csrf_of, digest, new_token_secret


@dataclass(frozen=True, slots=True)
class Identity:
    """A person, and how they came: by a `session`, whose changes must carry `csrf`, or by a `token`."""

    person: int
    name: str
    roles: tuple[str, ...]
    is_administrator: bool
    session: int | None
    token: int | None
    csrf: str | None


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token as it is shown once; nobody can find its `secret` out again."""

    id: int
    name: str
    expires_at: datetime | None
    secret: str


async def authenticate_session(engine: Engine, secret: str) -> Identity:
    """Who has this session; refused as `not_signed_in` when it is unknown or over."""
    return identity_of(await engine.access.authenticate("session", digest(secret)), csrf_of(secret))


async def authenticate_token(engine: Engine, secret: str) -> Identity:
    """Who has this token; refused as `not_signed_in` when it is unknown, expired or revoked."""
    return identity_of(await engine.access.authenticate("token", digest(secret)), None)


def identity_of(holder: Holder, csrf: str | None) -> Identity:
    who = (holder.person, holder.name, tuple(holder.roles), holder.is_administrator)
    return Identity(*who, holder.session, holder.token, csrf)


async def add_token(
    engine: Engine, actor: int | None, person: int | str, name: str, *, expires_at: datetime | None = None
) -> NewToken:
    """Let a program act as a person, for oneself or as an administrator."""
    secret = new_token_secret()
    owner = await engine.persons.number(person)
    number = await engine.access.add_token(actor, owner, name, digest(secret), expires_at)
    return NewToken(number, name, expires_at, secret)

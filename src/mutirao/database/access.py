"""Passwords, sessions and tokens as the database keeps them: by hashes alone. The engine has them as `engine.access`.

Hashing and making secrets is the business of the room `people`, through which everybody else comes here.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mutirao.database.caller import Caller, Face
from mutirao.database.person import Persons, checked_text


@dataclass(frozen=True, slots=True)
class Challenge:
    """Whose password must have which hash; nobody's, or not before `wait_until`."""

    person: int | None
    hash: str | None
    wait_until: datetime | None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a session or a token."""

    person: int
    name: str
    roles: list[str]
    is_administrator: bool
    session: int | None
    token: int | None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """Where somebody is signed in."""

    id: int
    address: str | None
    agent: str | None
    made_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """By what a program acts as somebody; the secret itself is not kept."""

    id: int
    name: str
    made_by: str
    made_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a session begins with: the challenge that was met, from where, and a hash of today if the old one is not."""

    challenge: Challenge
    name: str
    origin: str | None
    secret: bytes
    address: str | None
    agent: str | None
    new_hash: str | None


class Access(Face):
    """Who may come in. A secret is known here by its SHA-256."""

    def __init__(self, engine: Caller, persons: Persons) -> None:
        super().__init__(engine)
        self._persons = persons

    async def begin_sign_in(self, name: str, origin: str | None) -> Challenge:
        """Count an attempt of this name from this origin, and answer what the password must meet."""
        [answer] = await self._rows(Challenge, "begin_sign_in", [name, origin])
        return answer

    async def finish_sign_in(self, new: NewSession) -> int:
        """The number of the session."""
        who = (new.challenge.person, new.challenge.hash, new.name, new.origin)
        return int(await self._call("finish_sign_in", *who, new.secret, new.address, new.agent, new.new_hash))

    async def set_password(self, actor: int | None, person: int, password_hash: str, keep: int | None) -> None:
        await self._call("set_password", actor, person, password_hash, keep, self.name)

    async def has_administrator(self) -> bool:
        """Whether there is one who is enabled."""
        return bool(await self._call("has_administrator"))

    async def first_administrator(self, name: str, password_hash: str) -> int | None:
        """The number of the person, or None if there is one already."""
        made = await self._call("first_administrator", name, password_hash, self.name)
        return None if made is None else int(made)

    async def authenticate(self, kind: Literal["session", "token"], secret: bytes) -> Holder:
        [holder] = await self._rows(Holder, "authenticate", [kind, secret])
        return holder

    async def sessions(self, actor: int | None, person: int | str) -> list[SessionRecord]:
        """The sessions of a person, for oneself and administrators; the one used last comes first."""
        return await self._rows(SessionRecord, "sessions", [actor, await self._persons.number(person)])

    async def end_session(self, actor: int | None, person: int | str, session: int) -> None:
        await self._call("end_sessions", actor, await self._persons.number(person), session, None)

    async def end_sessions(self, actor: int | None, person: int | str, *, but: int | None = None) -> int:
        """Sign a person out everywhere, or everywhere but here; answers of how many sessions."""
        return int(await self._call("end_sessions", actor, await self._persons.number(person), None, but))

    async def add_token(
        self, actor: int | None, person: int, name: str, secret: bytes, expires_at: datetime | None
    ) -> int:
        checked_text("the name of a token", name)
        return int(await self._call("add_token", actor, person, name, secret, expires_at, self.name))

    async def tokens(self, actor: int | None, person: int | str) -> list[TokenRecord]:
        """The tokens of a person, for oneself and administrators."""
        return await self._rows(TokenRecord, "tokens", [actor, await self._persons.number(person)])

    async def revoke_token(self, actor: int | None, person: int | str, name: str) -> None:
        checked_text("the name of a token", name)
        await self._call("revoke_token", actor, await self._persons.number(person), name)

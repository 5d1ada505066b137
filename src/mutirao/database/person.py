"""Persons: who they are, and who may change that. The engine has them as `engine.persons`.

Every call names its actor first, the number of the person who asks: SQL decides whether they may
(sql/functions/39_person.sql). None is the operator, who has the database in hand and may do everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from mutirao.database.caller import Face
from mutirao.database.sql import query
from mutirao.errors import RequestError
from mutirao.model.name import suggest_near
from mutirao.model.plain import encode_plain

PAGE = 100


@dataclass(frozen=True, slots=True)
class PersonRecord:
    """A person as the actor may see them: `email`, `seen_at` and the numbers of items are for oneself and administrators.

    `here` is whether they are signed in and have asked for something lately; `holds` how many work items they have
    selected, `offered` how many are offered to them alone.
    """

    id: int
    name: str
    full_name: str | None
    email: str | None
    roles: list[str]
    disabled_at: datetime | None
    away_from: datetime | None
    away_until: datetime | None
    substitute: str | None
    here: bool
    seen_at: datetime | None
    holds: int | None
    offered: int | None
    revision: int
    made_by: str
    made_at: datetime


class PersonChange(TypedDict, total=False):
    """What is to be changed; what is not named stays."""

    name: str
    full_name: str | None
    email: str | None


@dataclass(frozen=True, slots=True)
class PersonFilter:
    """Which persons: in a role, with a text in their names, here or not, disabled or not."""

    role: str | None = None
    search: str | None = None
    is_here: bool | None = None
    is_disabled: bool | None = None


@dataclass(frozen=True, slots=True)
class Away:
    """From when (None: from now) until when (None: until they say so) somebody is away, and who sees their work."""

    from_at: datetime | None = None
    until_at: datetime | None = None
    substitute: int | str | None = None


def is_text(text: str) -> bool:
    """Whether the server can take it: not every str is a text."""
    return "\x00" not in text and (text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text))


def checked_text(place: str, text: str) -> str:
    """A text that the server can take. What else a name must be, SQL knows."""
    if not is_text(text):
        raise RequestError("wrong_call", f"{place} has a character that no text can have")
    return text


def is_number(number: int) -> bool:
    """Whether it can be the number of a person, a role or a webhook."""
    return 0 < number < 2**31


def seen(revision: int | None) -> int | None:
    """A revision as the server takes it. One that is out of all bounds was never seen."""
    return revision if revision is None or is_number(revision) else 0


class Persons(Face):
    """The persons of an engine. A person is named by number or by name."""

    async def add(
        self,
        actor: int | None,
        name: str,
        *,
        full_name: str | None = None,
        email: str | None = None,
        roles: Sequence[str] = (),
    ) -> PersonRecord:
        """Add a person. They sign in once they have a password."""
        for text in (name, full_name, email, *roles):
            checked_text("a person", text or "")
        number = await self._call("add_person", actor, name, full_name, email, list(roles), self.name)
        return await self.get(actor, number)

    async def get(self, actor: int | None, person: int | str) -> PersonRecord:
        named = {"named": person} if isinstance(person, str) else {"numbered": await self.number(person)}
        found = await self._persons(actor, room=1, **named)
        if not found:
            raise await self._unknown(person)
        return found[0]

    async def page(
        self, actor: int | None, chosen: PersonFilter | None = None, *, after: str | None = None, limit: int = PAGE
    ) -> list[PersonRecord]:
        """Persons by name; the next page is `after` the last one's name."""
        asked = chosen or PersonFilter()
        return await self._persons(
            actor,
            search=asked.search,
            role=asked.role,
            is_here=asked.is_here,
            is_disabled=asked.is_disabled,
            after=after,
            room=limit,
        )

    async def change(
        self, actor: int | None, person: int | str, change: PersonChange, *, revision: int | None = None
    ) -> PersonRecord:
        """Change name, full name or e-mail; with `revision`, only if nothing has changed since that one."""
        for text in change.values():
            checked_text("a person", str(text or ""))
        number = await self.number(person)
        await self._call("change_person", actor, number, encode_plain(dict(change)).decode(), seen(revision), self.name)
        return await self.get(actor, number)

    async def away(
        self, actor: int | None, person: int | str, away: Away | None, *, revision: int | None = None
    ) -> PersonRecord:
        """Say that a person is away, or will be; None: they are back."""
        number = await self.number(person)
        said = away or Away()
        substitute = None if said.substitute is None else await self.number(said.substitute)
        times = (said.from_at, away is not None, said.until_at)
        await self._call("set_away", actor, number, *times, substitute, seen(revision), self.name)
        return await self.get(actor, number)

    async def disable(self, actor: int | None, person: int | str, *, revision: int | None = None) -> PersonRecord:
        """Let them do nothing any more: sessions and tokens end, what they hold goes back to its role."""
        number = await self.number(person)
        await self._call("disable_person", actor, number, seen(revision), self.name)
        return await self.get(actor, number)

    async def enable(self, actor: int | None, person: int | str, *, revision: int | None = None) -> PersonRecord:
        number = await self.number(person)
        await self._call("enable_person", actor, number, seen(revision), self.name)
        return await self.get(actor, number)

    async def number(self, person: int | str) -> int:
        """The number of a person."""
        if isinstance(person, int):
            if not is_number(person):
                raise await self._unknown(person)
            return person
        found = await self._call("person_number", checked_text("a name", person))
        if found is None:
            raise await self._unknown(person)
        return int(found)

    async def _persons(self, actor: int | None, **asked: object) -> list[PersonRecord]:
        columns = ("named", "numbered", "search", "role", "is_here", "is_disabled", "after", "room")
        for text in asked.values():
            if isinstance(text, str):
                checked_text("a filter", text)
        return await self._rows(PersonRecord, "persons", {"actor": actor, **dict.fromkeys(columns), **asked})

    async def _unknown(self, person: int | str) -> RequestError:
        if isinstance(person, int):
            return RequestError("unknown_person", f"there is no person number {person}")
        async with self.connection() as connection:
            known = [name for (name,) in await (await connection.execute(query("person_names"))).fetchall()]
        return RequestError("unknown_person", f'there is no person "{person}"{suggest_near(person, known)}')

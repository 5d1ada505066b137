"""Roles and who is in them. The engine has them as `engine.roles`; their actors are those of `engine.persons`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from mutirao.database.caller import Caller, Face
from mutirao.database.person import Persons, checked_text, is_number, seen
from mutirao.database.sql import query
from mutirao.errors import RequestError
from mutirao.model.name import suggest_near
from mutirao.model.plain import encode_plain


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """A role; `members` counts the persons in it."""

    id: int
    name: str
    description: str | None
    members: int
    revision: int
    made_at: datetime


@dataclass(frozen=True, slots=True)
class RoleUse:
    """The newest version of a flow that names a role: whose members may start it, or do this `task` of it."""

    role: str
    flow: str
    task: str | None


class RoleChange(TypedDict, total=False):
    """What is to be changed; what is not named stays."""

    name: str
    description: str | None


class Roles(Face):
    """The roles of an engine. A role is named by number or by name."""

    def __init__(self, engine: Caller, persons: Persons) -> None:
        super().__init__(engine)
        self._persons = persons

    async def add(self, actor: int | None, name: str, *, description: str | None = None) -> RoleRecord:
        for text in (name, description):
            checked_text("a role", text or "")
        number = await self._call("add_role", actor, name, description, self.name)
        return await self.get(actor, number)

    async def get(self, actor: int | None, role: int | str) -> RoleRecord:
        named = (
            {"named": checked_text("a name", role)} if isinstance(role, str) else {"numbered": await self.number(role)}
        )
        found = await self._rows(RoleRecord, "roles", {"actor": actor, "named": None, "numbered": None, **named})
        if not found:
            raise await self._unknown(role)
        return found[0]

    async def names(self) -> list[str]:
        """Of all of them. To count who is in each takes much longer."""
        async with self.connection() as connection:
            return [name for (name,) in await (await connection.execute(query("role_names"))).fetchall()]

    async def all(self, actor: int | None) -> list[RoleRecord]:
        """All of them, by name."""
        return await self._rows(RoleRecord, "roles", {"actor": actor, "named": None, "numbered": None})

    async def uses(self, role: str | None = None) -> list[RoleUse]:
        """Where flows name it, or any role; by flow."""
        if role is not None:
            await self.number(role)
        return await self._rows(RoleUse, "role_uses", {"role": role})

    async def change(
        self, actor: int | None, role: int | str, change: RoleChange, *, revision: int | None = None
    ) -> RoleRecord:
        """Change name or description; with `revision`, only if nothing has changed since that one."""
        for text in change.values():
            checked_text("a role", str(text or ""))
        number = await self.number(role)
        await self._call("change_role", actor, number, encode_plain(dict(change)).decode(), seen(revision), self.name)
        return await self.get(actor, number)

    async def remove(self, actor: int | None, role: int | str, *, revision: int | None = None) -> None:
        """Remove a role that no flow and no open work item needs."""
        await self._call("remove_role", actor, await self.number(role), seen(revision), self.name)

    async def put(self, actor: int | None, role: int | str, persons: Sequence[int | str]) -> int:
        """Put persons into a role; answers how many were not in it."""
        return int(await self._move("put_into_role", actor, role, persons))

    async def take(self, actor: int | None, role: int | str, persons: Sequence[int | str]) -> int:
        """Take persons out of a role, and what they hold of it out of their hands; answers how many were in it."""
        return int(await self._move("take_out_of_role", actor, role, persons))

    async def number(self, role: int | str) -> int:
        """The number of a role."""
        if isinstance(role, str):
            return (await self.get(None, role)).id
        if not is_number(role):
            raise await self._unknown(role)
        return role

    async def _move(self, query: str, actor: int | None, role: int | str, persons: Sequence[int | str]) -> int:
        numbers = [await self._persons.number(person) for person in persons]
        return int(await self._call(query, actor, await self.number(role), numbers, self.name))

    async def _unknown(self, role: int | str) -> RequestError:
        if isinstance(role, int):
            return RequestError("unknown_role", f"there is no role number {role}")
        return RequestError("unknown_role", f'there is no role "{role}"{suggest_near(role, await self.names())}')

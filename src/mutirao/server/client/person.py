"""Persons and roles, over HTTP."""

from collections.abc import AsyncIterator, Sequence
from typing import Unpack
from urllib.parse import quote

from mutirao.database.person import Away, PersonChange, PersonFilter, PersonRecord
from mutirao.database.role import RoleChange, RoleRecord, RoleUse
from mutirao.server.client.noun import Noun


class Persons(Noun):
    """With `seen`, a change is made only if nothing was changed since that revision."""

    def all(self, chosen: PersonFilter | None = None, *, limit: int = 100) -> AsyncIterator[PersonRecord]:
        """Persons by name; `limit` is how many are asked for at once."""
        asked = chosen or PersonFilter()
        query = {"role": asked.role, "search": asked.search, "here": asked.is_here, "disabled": asked.is_disabled}
        return self._http.pages(PersonRecord, "/api/persons", **query, limit=limit)

    async def add(
        self,
        name: str,
        *,
        full_name: str | None = None,
        email: str | None = None,
        roles: Sequence[str] = (),
        key: str | None = None,
    ) -> PersonRecord:
        body = {"name": name, "full_name": full_name, "email": email, "roles": list(roles)}
        return await self._http.send(PersonRecord, "POST", "/api/persons", body, key=key)

    async def get(self, person: str) -> PersonRecord:
        return await self._http.get(PersonRecord, _person(person))

    async def change(self, person: str, *, seen: int | None = None, **change: Unpack[PersonChange]) -> PersonRecord:
        return await self._http.send(PersonRecord, "PATCH", _person(person), change, seen=seen)

    async def away(self, person: str, away: Away | None, *, seen: int | None = None) -> PersonRecord:
        """Say that they are away, or will be; None: they are back."""
        path = f"{_person(person)}/away"
        if away is None:
            return await self._http.send(PersonRecord, "DELETE", path, seen=seen)
        body = {"from_at": away.from_at, "until_at": away.until_at, "substitute": away.substitute}
        return await self._http.send(PersonRecord, "PUT", path, body, seen=seen)

    async def disable(self, person: str, *, seen: int | None = None) -> PersonRecord:
        return await self._http.send(PersonRecord, "POST", f"{_person(person)}/disable", seen=seen)

    async def enable(self, person: str, *, seen: int | None = None) -> PersonRecord:
        return await self._http.send(PersonRecord, "POST", f"{_person(person)}/enable", seen=seen)


class Roles(Noun):
    async def all(self) -> list[RoleRecord]:
        return await self._http.get(list[RoleRecord], "/api/roles")

    async def add(self, name: str, *, description: str | None = None, key: str | None = None) -> RoleRecord:
        body = {"name": name, "description": description}
        return await self._http.send(RoleRecord, "POST", "/api/roles", body, key=key)

    async def get(self, role: str) -> RoleRecord:
        return await self._http.get(RoleRecord, _role(role))

    async def uses(self, role: str) -> list[RoleUse]:
        """Where flows name it: for administrators."""
        return await self._http.get(list[RoleUse], f"{_role(role)}/uses")

    async def change(self, role: str, *, seen: int | None = None, **change: Unpack[RoleChange]) -> RoleRecord:
        return await self._http.send(RoleRecord, "PATCH", _role(role), change, seen=seen)

    async def remove(self, role: str, *, seen: int | None = None) -> None:
        await self._http.do("DELETE", _role(role), seen=seen)

    async def put(self, role: str, persons: Sequence[str]) -> int:
        """Put persons into a role; answers how many were not in it."""
        return await self._move(f"{_role(role)}/members", persons)

    async def take(self, role: str, persons: Sequence[str]) -> int:
        """Take persons out of a role; answers how many were in it."""
        return await self._move(f"{_role(role)}/members/remove", persons)

    async def _move(self, path: str, persons: Sequence[str]) -> int:
        return (await self._http.send(dict[str, int], "POST", path, {"persons": list(persons)}))["count"]


def _person(name: str) -> str:
    return f"/api/persons/{quote(name, safe='')}"


def _role(name: str) -> str:
    return f"/api/roles/{quote(name, safe='')}"

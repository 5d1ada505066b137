"""Sessions and tokens, over HTTP."""

from datetime import datetime
from urllib.parse import quote

import msgspec

from mutirao.database.access import SessionRecord, TokenRecord
from mutirao.people import NewToken
from mutirao.server.client.noun import Noun


class Me(msgspec.Struct):
    """Who is signed in."""

    person: int
    name: str
    roles: list[str]
    is_administrator: bool
    csrf: str | None


class Sessions(Noun):
    async def sign_in(self, name: str, password: str) -> Me:
        """Sign in; from now on, this client asks as that person."""
        found = await self._http.send(Me, "POST", "/api/session", {"name": name, "password": password})
        self._http.http.headers["X-CSRF-Token"] = found.csrf or ""
        return found

    async def sign_out(self) -> None:
        await self._http.do("DELETE", "/api/session")

    async def me(self) -> Me:
        return await self._http.get(Me, "/api/session")

    async def change_password(self, old: str, new: str) -> None:
        """Have another password; all your other sessions end."""
        await self._http.do("PUT", "/api/session/password", {"old": old, "new": new})

    async def set_password(self, person: str, password: str) -> None:
        await self._http.do("PUT", f"{_path(person)}/password", {"password": password})

    async def make_password(self, person: str, *, key: str | None = None) -> str:
        """Give somebody a random password, which is shown once."""
        found = await self._http.send(dict[str, str], "POST", f"{_path(person)}/password", key=key)
        return found["password"]

    async def all(self, person: str) -> list[SessionRecord]:
        return await self._http.get(list[SessionRecord], f"{_path(person)}/sessions")

    async def end(self, person: str, session: int) -> None:
        await self._http.do("DELETE", f"{_path(person)}/sessions/{session}")

    async def end_all(self, person: str, *, but_here: bool = False) -> int:
        """Sign somebody out everywhere; answers of how many sessions."""
        path = f"{_path(person)}/sessions"
        found = await self._http.send(dict[str, int], "DELETE", path, query={"but_here": but_here})
        return found["count"]


class Tokens(Noun):
    async def add(
        self, person: str, name: str, *, expires_at: datetime | None = None, key: str | None = None
    ) -> NewToken:
        """Let a program act as a person. The secret is shown once."""
        body = {"name": name, "expires_at": expires_at}
        return await self._http.send(NewToken, "POST", f"{_path(person)}/tokens", body, key=key)

    async def all(self, person: str) -> list[TokenRecord]:
        return await self._http.get(list[TokenRecord], f"{_path(person)}/tokens")

    async def revoke(self, person: str, name: str) -> None:
        await self._http.do("DELETE", f"{_path(person)}/tokens/{quote(name, safe='')}")


def _path(person: str) -> str:
    return f"/api/persons/{quote(person, safe='')}"

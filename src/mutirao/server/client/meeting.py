"""Classes and who waits for whom, over HTTP."""

from collections.abc import Collection
from urllib.parse import quote

from mutirao.database.meeting import ClassRecord, Wait
from mutirao.server.client.noun import Noun


class Classes(Noun):
    async def put(self, name: str, conflicts: Collection[str] = (), *, description: str | None = None) -> None:
        """Make a class, or change it: it conflicts with these from now on."""
        await self._http.do("PUT", _path(name), {"conflicts": list(conflicts), "description": description})

    async def drop(self, name: str) -> None:
        await self._http.do("DELETE", _path(name))

    async def all(self) -> list[ClassRecord]:
        return await self._http.get(list[ClassRecord], "/api/classes")

    async def waits(self, name: str | None = None, *, limit: int = 100) -> list[Wait]:
        """Who waits for whom, since when and at which place of the queue."""
        return await self._http.get(list[Wait], "/api/classes/waits", name=name, limit=limit)


def _path(name: str) -> str:
    return f"/api/classes/{quote(name, safe='')}"

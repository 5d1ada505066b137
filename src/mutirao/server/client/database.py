"""Databases that flows may ask, over HTTP: for administrators."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import msgspec

from mutirao.server.client.noun import Noun

_WITHIN = timedelta(seconds=10)


class DatabaseRecord(msgspec.Struct):
    """Where it is, without user and password; `timeout` is in seconds."""

    name: str
    address: str
    timeout: float
    made_by: str
    made_at: datetime
    flows: list[str]


class Databases(Noun):
    async def put(self, name: str, url: str | None = None, *, within: timedelta = _WITHIN) -> DatabaseRecord:
        """Name a database, or put another in its place. Without `url`, where it is stays as it was.

        A query has to answer `within` this time.
        """
        body = {"url": url, "timeout": within.total_seconds()}
        return await self._http.send(DatabaseRecord, "PUT", _path(name), body)

    async def all(self) -> list[DatabaseRecord]:
        return await self._http.get(list[DatabaseRecord], "/api/databases")

    async def get(self, name: str) -> DatabaseRecord:
        return await self._http.get(DatabaseRecord, _path(name))

    async def remove(self, name: str) -> None:
        await self._http.do("DELETE", _path(name))

    async def try_out(self, name: str) -> list[dict[str, Any]]:
        """Ask it for its version, as a job would."""
        found = await self._http.send(dict[str, list[dict[str, Any]]], "POST", f"{_path(name)}/try")
        return found["rows"]


def _path(name: str) -> str:
    return f"/api/databases/{quote(name, safe='')}"

"""Throw-away databases on a server that somebody runs already, such as the one of a test pipeline.

What is made there has names that begin with `mutirao_test_`; nothing else is touched.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import AsyncConnection, sql

from mutirao.database.connection import connect, refusals
from mutirao.errors import RequestError
from mutirao.testing.database import Cloner


class GivenServer(Cloner):
    """A server by its URL, whose role may create databases. The database of the URL is only connected to."""

    prefix = "mutirao_test_"

    def __init__(self, url: str) -> None:
        if urlsplit(url).scheme not in ("postgresql", "postgres"):
            raise RequestError("wrong_call", f"the URL of a server is postgresql://user@host/database, not {url!r}")
        self._url = url

    def url(self, database: str) -> str:
        return urlsplit(self._url)._replace(path=f"/{database}").geturl()

    @asynccontextmanager
    async def clone(self) -> AsyncIterator[str]:
        with refusals():
            async with super().clone() as url:
                yield url

    async def _admin(self) -> AsyncConnection[Any]:
        return await connect(self._url)

    async def _drop(self, name: str) -> None:
        dropping = sql.SQL("drop database if exists {}").format(sql.Identifier(name))
        async with await self._admin() as admin:
            try:
                await admin.execute(dropping + sql.SQL(" with (force)"))
            except psycopg.errors.InsufficientPrivilege:
                # An autovacuum worker is in it, whom only a superuser may turn out: it leaves when asked without force.
                await admin.execute(dropping)

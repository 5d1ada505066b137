"""The databases that queries of flows may ask, by the names that flows call them. The engine has them as `engine.sources`.

An address is a secret: it goes in, and never comes out in full.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mutirao.database.caller import Face
from mutirao.database.connection import described
from mutirao.database.query import Asked, ask
from mutirao.database.sql import query
from mutirao.errors import RequestError
from mutirao.model.name import suggest

DEFAULT_TIMEOUT = timedelta(seconds=10)

_RIGHT = "postgresql://user:password@host/name"
_NEEDED = ("user", "password", "host")
_ALLOWED = {*_NEEDED, "port", "dbname", "sslmode", "connect_timeout", "target_session_attrs"}


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A database that flows may ask: where it is, without user and password, and which flows do."""

    name: str
    address: str
    timeout: timedelta
    made_by: str
    made_at: datetime
    flows: list[str]
    url: str = field(repr=False)


class Sources(Face):
    """The databases that an engine's flows may ask."""

    async def put(self, name: str, url: str, *, within: timedelta = DEFAULT_TIMEOUT) -> None:
        """Name a database, or put another in its place. A query has to answer `within` this time."""
        _parts(name, url)
        await self._call("put_source", name, url, within, self.name)

    async def all(self) -> list[SourceRecord]:
        async with self.connection() as connection:
            rows = await (await connection.execute(query("sources"))).fetchall()
        return [
            SourceRecord(name, described(url), timeout, made_by, made_at, flows, url)
            for name, url, timeout, made_by, made_at, flows in rows
        ]

    async def get(self, name: str) -> SourceRecord:
        known = {each.name: each for each in await self.all()}
        if name not in known:
            raise RequestError("unknown_database", f'there is no database "{name}"{suggest(name, known)}')
        return known[name]

    async def remove(self, name: str) -> None:
        """Take its name away. Jobs that would ask it fail."""
        await self.get(name)
        await self._call("remove_source", name)

    async def rows(self, name: str, expression: str = "select version() as version") -> list[dict[str, Any]]:
        """Ask it as a job would: for whoever tries it out."""
        source = await self.get(name)
        found: list[dict[str, Any]] = await ask(Asked(f'database "{name}"', source.url, source.timeout, expression))
        return found


def check_self_contained(name: str, url: str) -> None:
    """Refuse an address that is not complete by itself: for whoever does not have the server's machine in hand.

    What is left out, the driver would take from there: the embedded server's socket lets in whoever comes by it, and a file
    of passwords is the operator's own. Neither is lent to who only signs in by the network.
    """
    parts = _parts(name, url)
    missing = [each for each in _NEEDED if not parts.get(each)]
    if missing:
        raise RequestError("wrong_call", f'database "{name}": its address has no {missing[0]}; it is written {_RIGHT}')
    further = sorted(parts.keys() - _ALLOWED)
    if further:
        raise RequestError(
            "wrong_call", f'database "{name}": "{further[0]}" is for the operator: see `mutirao database add --help`'
        )
    if any(not each.strip() or each.strip()[0] in "/@" for each in str(parts["host"]).split(",")):
        raise RequestError("wrong_call", f'database "{name}": sockets are for the operator; name a host: {_RIGHT}')


def _parts(name: str, url: str) -> dict[str, Any]:
    try:
        return dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        raise RequestError("wrong_call", f'database "{name}": its address is written {_RIGHT}') from None

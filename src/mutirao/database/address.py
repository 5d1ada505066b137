"""Which database is meant: a real server by its URL, or one by name in the embedded server.

    postgresql://user@host/name        a server somebody runs
    embedded:                          database `mutirao` in the default data folder
    embedded:shop                      database `shop` there
    embedded:shop?home=/srv/workflows  database `shop` in that data folder

An explicit URL wins over MUTIRAO_DATABASE_URL, which wins over `embedded:`.

A database in the embedded server is made when it is first entered. Whoever only wants to look says `must_exist`: then
nothing but the default one is made, since a slip in a name would look like an engine without flows.
"""

import os
import re
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg

from mutirao.database.connection import described, refusals
from mutirao.database.embedded import SUPERUSER, EmbeddedServer
from mutirao.database.folder import default_home
from mutirao.errors import OperatorError

DEFAULT_NAME = "mutirao"

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
# Greedy: a password that holds an @ of its own, which no server would take, is hidden whole all the same.
_PASSWORD = re.compile(r"(?<=://)([^:@/]*):[^/]*@|(?<=[?&])(?:ssl)?password=[^&]*&?")


@dataclass
class Address:
    """Where a database is. Entered, it gives the URL to connect to, and keeps an embedded server running meanwhile."""

    url: str | None = None
    home: Path | None = None
    name: str = DEFAULT_NAME
    must_exist: bool = False
    _held: ExitStack = field(default_factory=ExitStack, repr=False)
    _server: EmbeddedServer | None = field(default=None, repr=False)

    @property
    def is_embedded(self) -> bool:
        return self.url is None

    def __enter__(self) -> str:
        if self.url is not None:
            return self.url
        server = self._held.enter_context(EmbeddedServer(self.home))
        try:
            if self.must_exist and self.name != DEFAULT_NAME:
                self._find(server)
            else:
                server.ensure_database(self.name)
        except BaseException:
            self.close()
            raise
        self._server = server
        return server.url(self.name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def revive(self) -> None:
        """Start an embedded server again that was killed. A real one is for its operator to start."""
        if self._server is not None:
            self._server.revive()

    def close(self) -> None:
        """Leave the embedded server, if that is what it is."""
        self._held.close()

    def _find(self, server: EmbeddedServer) -> None:
        known = _databases(server)
        if self.name not in known:
            there = f"there is {', '.join(known)}" if known else "there is none yet"
            option = f"embedded:{self.name}" + (f"?home={self.home}" if self.home else "")
            raise OperatorError(
                "unknown_database",
                f'the embedded server in {server.home} has no database "{self.name}"; {there}; '
                f"to make it: mutirao db upgrade --database {option}",
            )

    def __str__(self) -> str:
        if self.url is not None:
            return described(self.url)
        return f"embedded server in {self.home or default_home()}, database {self.name}"


def resolve(url: str | None = None, *, must_exist: bool = False) -> Address:
    """The database meant by an option, the environment, or neither."""
    chosen = url or os.environ.get("MUTIRAO_DATABASE_URL") or "embedded:"
    if chosen.startswith("embedded:"):
        return replace(_embedded(chosen), must_exist=must_exist)
    if chosen.startswith(("postgresql://", "postgres://")):
        return Address(url=chosen)
    raise OperatorError(
        "database_url",
        f"'{chosen.partition('@')[0]}' is no database address; "
        "write postgresql://user@host/name, or embedded:NAME for one in the embedded server",
    )


def without_password(url: str) -> str:
    """The same address for people to see: whoever connects has the password from elsewhere."""
    return _PASSWORD.sub(lambda found: f"{found[1]}@" if found[1] is not None else "", url).rstrip("?&")


def _databases(server: EmbeddedServer) -> list[str]:
    ours = "select datname from pg_database where not datistemplate and datname <> 'postgres' order by datname"
    with refusals(), psycopg.connect(server.url("postgres", SUPERUSER), autocommit=True) as connection:
        return [name for (name,) in connection.execute(ours)]


def _embedded(url: str) -> Address:
    parts = urlsplit(url)
    options = parse_qs(parts.query, keep_blank_values=True)
    name = unquote(parts.path) or DEFAULT_NAME
    if not _NAME.fullmatch(name) or options.keys() - {"home"} or parts.netloc:
        raise OperatorError(
            "database_url",
            f"'{url}' is no address in the embedded server; write embedded:NAME or embedded:NAME?home=/path, "
            "with a name of small letters, digits and _",
        )
    home = options.get("home")
    return Address(home=Path(home[0]) if home else None, name=name)

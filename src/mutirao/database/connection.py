"""Connections, and the one place where the driver's exceptions become refusals of ours.

No psycopg exception leaves the room `database`: wrap what talks to the server in `refusals()`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mutirao.errors import MutiraoError, OperatorError, RequestError, from_sqlstate

OLDEST_SERVER = 15

# Connection exceptions, and a server that is shut down, has crashed, or is starting.
_LOST = ("08", "57P")
_MEANWHILE = "changed_meanwhile: "


async def connect(url: str, **options: Any) -> psycopg.AsyncConnection[Any]:
    """A connection in autocommit to a server we can work with."""
    with _unreachable(url):
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True, **options)
    check_server(connection)
    return connection


def connect_blocking(url: str, **options: Any) -> psycopg.Connection[Any]:
    """The same for blocking functions."""
    with _unreachable(url):
        return psycopg.connect(url, autocommit=True, **options)


@contextmanager
def _unreachable(url: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise OperatorError("server_unreachable", f"{described(url)} does not let us in: {_one_line(error)}") from error


def check_server(connection: psycopg.AsyncConnection[Any]) -> None:
    """Refuse a server that is too old for the engine's SQL."""
    major = connection.info.server_version // 10_000
    if major < OLDEST_SERVER:
        raise OperatorError(
            "server_too_old",
            f"the server at {connection.info.host} is PostgreSQL {major}; Mutirão needs {OLDEST_SERVER} or newer",
        )


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what the server or the driver raises inside into a MutiraoError."""
    try:
        yield
    except psycopg.Error as error:
        refusal = refusal_of(error)
        # Of a refusal of the engine's own, the driver's words tell nothing more.
        raise refusal from None if is_ours(error) else error


def is_ours(error: psycopg.Error) -> bool:
    return (error.sqlstate or "").startswith("MU")


def refusal_of(error: psycopg.Error) -> MutiraoError:
    ours = from_sqlstate(error.sqlstate or "", error.diag.message_primary or "")
    if ours is not None:
        return ours
    said = _one_line(error)
    match error:
        case psycopg.errors.DiskFull():
            found = OperatorError("disk_full", f"the server has no space left: {said}")
        case psycopg.errors.InsufficientPrivilege():
            found = OperatorError("not_allowed", f"the database refuses: {said}; see `mutirao db grant --help`")
        case psycopg.errors.SerializationFailure() if said.startswith(_MEANWHILE):
            return RequestError(*said.split(": ", 1))
        case psycopg.OperationalError() if error.sqlstate is None or error.sqlstate.startswith(_LOST):
            found = OperatorError("server_lost", f"the connection to the server broke: {said}")
        case psycopg.OperationalError():
            return RequestError("try_again", f"the server could not do it now: {said} ({error.sqlstate})")
        case _:
            return RequestError("database_error", f"{said} ({error.sqlstate or type(error).__name__})")
    return found


def described(url: str) -> str:
    """The address for people: never with a password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "the given URL"
    return f"{parts.get('host') or 'local socket'}, database {parts.get('dbname') or parts.get('user') or 'by default'}"


def _one_line(error: psycopg.Error) -> str:
    return " ".join((error.diag.message_primary or str(error)).split())

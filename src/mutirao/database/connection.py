"""Connections, and the one place where the driver's exceptions become refusals of ours.

No psycopg exception leaves the room `database`: wrap what talks to the server in `refusals()`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mutirao.database.keepalive import parameters
from mutirao.errors import MutiraoError, OperatorError, RequestError, from_sqlstate

OLDEST_SERVER = 15

# Connection exceptions, and a server that is shut down, has crashed, or is starting.
_LOST = ("08", "57P")
_MEANWHILE = "changed_meanwhile: "
# A value that cannot be what it should: text that is no number, a number or a time out of range, a character or JSON that
# PostgreSQL cannot keep. Not all of class 22: a division by zero, for one, would be a mistake of ours.
_WRONG_VALUE = ("22001", "22003", "22007", "22008", "22021", "22023", "2203", "2201B", "22P")
# A value too large, a JSON too deep: to send the same again does not help.
_LIMIT_EXCEEDED = "54"


async def connect(url: str, **options: Any) -> psycopg.AsyncConnection[Any]:
    """A connection in autocommit to a server we can work with."""
    with _unreachable(url):
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True, **parameters(url, **options))
    check_server(connection)
    return connection


def connect_blocking(url: str, **options: Any) -> psycopg.Connection[Any]:
    """The same for blocking functions."""
    with _unreachable(url):
        return psycopg.connect(url, autocommit=True, **parameters(url, **options))


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
    said, state = _one_line(error), error.sqlstate or ""
    found: MutiraoError
    match error:
        case psycopg.errors.DiskFull():
            found = OperatorError("disk_full", f"the server has no space left: {said}")
        case psycopg.errors.InsufficientPrivilege():
            found = OperatorError("not_allowed", f"the database refuses: {said}; see `mutirao db grant --help`")
        case psycopg.errors.SerializationFailure() if said.startswith(_MEANWHILE):
            found = RequestError(*said.split(": ", 1))
        case psycopg.OperationalError() if not state or state.startswith(_LOST):
            found = OperatorError("server_lost", f"the connection to the server broke: {said}")
        case _ if state.startswith(_LIMIT_EXCEEDED):
            found = RequestError("too_large", f"the server cannot take this: {said}")
        case psycopg.OperationalError():
            found = RequestError("try_again", f"the server could not do it now: {said} ({state})")
        case _ if state.startswith(_WRONG_VALUE):
            found = RequestError("wrong_call", f"a value is not what it should be: {said}")
        case _:
            found = RequestError("database_error", f"{said} ({state or type(error).__name__})")
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

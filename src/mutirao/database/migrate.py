"""Bring a database's schema up to date: numbered SQL files, applied once each, forward only.

Expect company: any number of processes may start at once. Each migration is a transaction of its own that first takes
one advisory lock and then looks again at what has been applied, so the work is shared out, not queued up, and a process
killed in the middle leaves the last whole migration. The common case, nothing to do, is one query and no lock.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from psycopg import AsyncConnection, DatabaseError, OperationalError
from psycopg.errors import InsufficientPrivilege

from mutirao.database.connection import check_server, refusals
from mutirao.errors import OperatorError

# Any number will do, as long as no other program takes it: 'mutirão' in ASCII, cut to what fits.
_LOCK = 0x6D75746972616F

_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")

_HAS_LEDGER = """
select exists (
  select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = 'mutirao' and c.relname = 'migration'
)
"""

_APPLIED = "select number, name, checksum from mutirao.migration order by number"

_RECORD = "insert into mutirao.migration (number, name, checksum) values (%s, %s, %s)"


@dataclass(frozen=True)
class Migration:
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.number:04d}_{self.name}"


@dataclass(frozen=True)
class SchemaStatus:
    """How a database stands against this program."""

    applied: int | None
    """The number of the newest migration applied; None in a database that has no schema of ours."""
    pending: tuple[Migration, ...]


@cache
def migrations() -> tuple[Migration, ...]:
    """All that this program knows, in order."""
    folder = files("mutirao.database").joinpath("sql/migrations")
    named = [(file, matched) for file in folder.iterdir() if (matched := _FILE.fullmatch(file.name))]
    # Read as text, so that a checkout with other line ends has the same checksum.
    found = [Migration(int(matched[1]), matched[2], file.read_text("utf-8")) for file, matched in named]
    found.sort(key=lambda migration: migration.number)
    numbers = [migration.number for migration in found]
    if len(set(numbers)) != len(numbers):
        raise OperatorError("migration_numbers", f"two migrations have the same number: {numbers}")
    return tuple(found)


async def upgrade(connection: AsyncConnection[Any], known: tuple[Migration, ...] | None = None) -> list[Migration]:
    """Apply what is missing and return what this call applied. The connection must be in autocommit."""
    check_server(connection)
    known = migrations() if known is None else known
    applied = []
    with refusals():
        while _pending(known, await _read_ledger(connection)):
            step = await _apply_next(connection, known)
            if step is not None:
                applied.append(step)
    return applied


async def status(connection: AsyncConnection[Any], known: tuple[Migration, ...] | None = None) -> SchemaStatus:
    """What has been applied and what is pending; refuses a schema that this program cannot judge."""
    check_server(connection)
    with refusals():
        ledger = await _read_ledger(connection)
    return SchemaStatus(max(ledger, default=None), _pending(migrations() if known is None else known, ledger))


async def ensure_current(connection: AsyncConnection[Any], known: tuple[Migration, ...] | None = None) -> None:
    """Refuse to work on a schema that is not exactly this program's; changes nothing."""
    found = await status(connection, known)
    if found.pending:
        has = "no schema" if found.applied is None else f"schema {found.applied:04d}"
        raise OperatorError(
            "schema_too_old",
            f"database '{connection.info.dbname}' has {has} and this program needs {found.pending[-1]}; "
            "run `mutirao db upgrade`",
        )


Ledger = dict[int, tuple[str, str]]


async def _read_ledger(connection: AsyncConnection[Any]) -> Ledger:
    # Asked for first: a query on a table that is not there would be an error in the server's log. And asked of the
    # catalog's table, not by to_regclass: that one answers from a cache, which after waiting for an advisory lock may not
    # know yet what the one before us in the queue has made.
    cursor = await connection.execute(_HAS_LEDGER)
    if await cursor.fetchone() != (True,):
        return {}
    cursor = await connection.execute(_APPLIED)
    return {number: (name, checksum) async for number, name, checksum in cursor}


def _pending(known: tuple[Migration, ...], ledger: Ledger) -> tuple[Migration, ...]:
    numbers = {migration.number for migration in known}
    for number, (name, _) in ledger.items():
        if number not in numbers:
            raise OperatorError(
                "schema_too_new",
                f"the database has migration {number:04d}_{name}, which this program does not know; "
                "run a Mutirão at least as new as the one that upgraded it",
            )
    for migration in known:
        if migration.number in ledger and ledger[migration.number][1] != migration.checksum:
            raise OperatorError(
                "migration_changed",
                f"migration {migration} was applied with other contents than this program has; "
                "an applied migration never changes: restore the file, and make the change in a new one",
            )
    return tuple(migration for migration in known if migration.number not in ledger)


async def _apply_next(connection: AsyncConnection[Any], known: tuple[Migration, ...]) -> Migration | None:
    async with connection.transaction():
        await connection.execute("select pg_advisory_xact_lock(%s)", [_LOCK])
        # A new statement, hence a new snapshot: it sees what the one before us in the queue committed.
        ledger = await _read_ledger(connection)
        pending = _pending(known, ledger)
        if not pending:
            return None
        with _naming(pending[0], connection.info.user):
            if not ledger:
                await connection.execute(_ledger_sql())
            await connection.execute(pending[0].sql.encode())
        await connection.execute(_RECORD, [pending[0].number, pending[0].name, pending[0].checksum])
        return pending[0]


@contextmanager
def _naming(step: Migration, role: str) -> Iterator[None]:
    try:
        yield
    except InsufficientPrivilege as error:
        raise OperatorError(
            "upgrade_not_allowed",
            f"role '{role}' may not apply {step}: {error.diag.message_primary}; upgrade as the owner of the database",
        ) from error
    except OperationalError:
        raise  # a lost connection or a full disk is not the migration's fault
    except DatabaseError as error:
        raise OperatorError(
            "migration_failed",
            f"{step} cannot be applied and was undone: {error.diag.message_primary} ({error.sqlstate})",
        ) from error


def _ledger_sql() -> bytes:
    return files("mutirao.database").joinpath("sql/ledger.sql").read_bytes()

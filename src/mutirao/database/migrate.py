"""Bring a database's schema up to date: first its tables, by numbered migrations, then the engine's functions, whole.

Tables hold data and have a history: a migration is applied once, forward only, and never changes. Functions are code, and
have none: where the database has others than this program's they are all written anew, and those that are in no file any
more are dropped. So `sql/functions` reads as the engine that runs.

Expect company: any number of processes may start at once. An upgrade is one transaction that first takes an advisory lock
and then looks again at what is missing, so one does the work and the others find it done; a process killed in the middle
leaves nothing. The common case, nothing to do, takes no lock.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, LiteralString

from psycopg import AsyncConnection, DatabaseError, OperationalError
from psycopg.errors import InsufficientPrivilege

from mutirao.database.connection import check_server, refusals
from mutirao.database.sql import query
from mutirao.errors import OperatorError

# Any number will do, as long as no other program takes it: 'mutirão' in ASCII, cut to what fits.
_LOCK = 0x6D75746972616F

_FILE = re.compile(r"(\d+)_([a-z0-9_]+)\.sql")


@dataclass(frozen=True)
class Step:
    """Something an upgrade applies. The checksum tells whether a database has exactly this."""

    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True)
class Migration(Step):
    number: int
    name: str

    def __str__(self) -> str:
        return f"{self.number:04d}_{self.name}"


@dataclass(frozen=True)
class Functions(Step):
    """All of the engine's functions. A newer program's are never replaced by an older one's."""

    version: str

    def __str__(self) -> str:
        return f"functions of {self.version}"


@dataclass(frozen=True)
class Schema:
    """What a program needs to find in a database."""

    migrations: tuple[Migration, ...]
    functions: Functions

    @property
    def number(self) -> int:
        return self.migrations[-1].number


@dataclass(frozen=True)
class SchemaStatus:
    """How a database stands against this program."""

    applied: int | None
    """The number of the newest migration applied; None in a database that has no schema of ours."""
    pending: tuple[Migration | Functions, ...]


@dataclass(frozen=True)
class _Ledger:
    """What a database says of itself."""

    migrations: dict[int, tuple[str, str]]
    functions: tuple[str, str] | None = None


@cache
def schema() -> Schema:
    """What the files of this program say."""
    migrations = tuple(Migration(text, number, name) for number, name, text in _numbered("migrations"))
    functions = "\n".join(text for _, _, text in _numbered("functions"))
    return Schema(migrations, Functions(functions, version("mutirao")))


async def upgrade(connection: AsyncConnection[Any], wanted: Schema | None = None) -> list[Migration | Functions]:
    """Apply what is missing, all or nothing, and return what this call applied. The connection must be in autocommit."""
    if not connection.autocommit:
        raise ValueError("an upgrade is a transaction of its own: give it a connection in autocommit")
    wanted = wanted or schema()
    if not (await status(connection, wanted)).pending:
        return []
    with refusals():
        async with connection.transaction():
            await connection.execute(query("lock_upgrade"), [_LOCK])
            # A new statement, hence a new snapshot: it sees what the one before us in the queue committed.
            ledger = await _read_ledger(connection)
            steps = _pending(wanted, ledger)
            if steps and not ledger.migrations:
                with _naming("the first upgrade", connection.info.user):
                    await connection.execute(_file("ledger.sql").read_bytes())
            for step in steps:
                with _naming(str(step), connection.info.user):
                    await connection.execute(step.sql.encode())
                await connection.execute(*_record(step))
    return list(steps)


async def status(connection: AsyncConnection[Any], wanted: Schema | None = None) -> SchemaStatus:
    """What has been applied and what is pending; refuses a schema that this program cannot judge."""
    check_server(connection)
    with refusals():
        ledger = await _read_ledger(connection)
    return SchemaStatus(max(ledger.migrations, default=None), _pending(wanted or schema(), ledger))


async def ensure_current(connection: AsyncConnection[Any], wanted: Schema | None = None) -> None:
    """Refuse to work on a schema that is not exactly this program's; changes nothing."""
    found = await status(connection, wanted)
    if found.pending:
        has = "no schema" if found.applied is None else f"schema {found.applied:04d}"
        raise OperatorError(
            "schema_too_old",
            f"database '{connection.info.dbname}' has {has} and this program needs {found.pending[-1]}; "
            "run `mutirao db upgrade`",
        )


async def _read_ledger(connection: AsyncConnection[Any]) -> _Ledger:
    # Asked for first: a query on a table that is not there would be an error in the server's log. And asked of the
    # catalog's table, not by to_regclass: that one answers from a cache, which after waiting for an advisory lock may not
    # know yet what the one before us in the queue has made.
    cursor = await connection.execute(query("has_ledger"))
    if await cursor.fetchone() != (True,):
        return _Ledger({})
    cursor = await connection.execute(query("applied_migrations"))
    migrations = {number: (name, checksum) async for number, name, checksum in cursor}
    cursor = await connection.execute(query("applied_functions"))
    return _Ledger(migrations, await cursor.fetchone())


def _pending(wanted: Schema, ledger: _Ledger) -> tuple[Migration | Functions, ...]:
    _refuse_newer(wanted, ledger)
    for migration in wanted.migrations:
        applied = ledger.migrations.get(migration.number)
        if applied and applied[1] != migration.checksum:
            raise OperatorError(
                "migration_changed",
                f"migration {migration} was applied with other contents than this program has; "
                "an applied migration never changes: restore the file, and make the change in a new one",
            )
    missing = tuple(migration for migration in wanted.migrations if migration.number not in ledger.migrations)
    has_ours = ledger.functions is not None and ledger.functions[1] == wanted.functions.checksum
    return missing if has_ours and not missing else (*missing, wanted.functions)


def _refuse_newer(wanted: Schema, ledger: _Ledger) -> None:
    unknown = sorted(ledger.migrations.keys() - {migration.number for migration in wanted.migrations})
    newer = ""
    if unknown:
        newer = f"migration {unknown[0]:04d}_{ledger.migrations[unknown[0]][0]}, which this program does not know"
    elif ledger.functions and _order(ledger.functions[0]) > _order(wanted.functions.version):
        newer = f"the functions of Mutirão {ledger.functions[0]}, and this program is {wanted.functions.version}"
    if newer:
        raise OperatorError(
            "schema_too_new",
            f"the database has {newer}; run a Mutirão at least as new as the one that upgraded it",
        )


def _order(version: str) -> tuple[list[int], bool]:
    """1.10 after 1.9, and 1.0 after 1.0rc1; 1.0 and 1.0.0 are one."""
    release = re.split(r"[^\d.]", version, maxsplit=1)[0].strip(".")
    numbers = [int(number) for number in release.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers, re.search(r"\d[.-]?(a|b|rc|dev)\d", version) is None


def _record(step: Migration | Functions) -> tuple[LiteralString, tuple[object, ...]]:
    match step:
        case Migration():
            return query("record_migration"), (step.number, step.name, step.checksum)
        case Functions():
            return query("record_functions"), (step.version, step.checksum)


@contextmanager
def _naming(step: str, role: str) -> Iterator[None]:
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
            f"{step} cannot be applied and all was undone: {error.diag.message_primary} ({error.sqlstate})",
        ) from error


def _numbered(folder: str) -> list[tuple[int, str, str]]:
    """Number, name and text of each file, in order."""
    named = [(file, matched) for file in _file(folder).iterdir() if (matched := _FILE.fullmatch(file.name))]
    # Read as text, so that a checkout with other line ends has the same checksum.
    found = sorted((int(matched[1]), matched[2], file.read_text("utf-8")) for file, matched in named)
    numbers = [number for number, _, _ in found]
    if len(set(numbers)) != len(numbers):
        raise OperatorError("migration_numbers", f"two files of {folder} have the same number: {numbers}")
    return found


def _file(name: str) -> Traversable:
    return files("mutirao.database").joinpath("sql", name)

"""Throw-away databases: clones of a migrated template, on a server that trades safety for speed.

The server is a `EmbeddedServer` in a cache folder, shared by all test processes of a user and stopped after the last one.
The template is built once per schema, by whoever comes first; a clone of it takes a few hundredths of a second.
"""

import hashlib
import os
import secrets
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection, sql

from mutirao.database.embedded import SUPERUSER, EmbeddedServer
from mutirao.database.migrate import schema, upgrade
from mutirao.database.programs import Programs
from mutirao.testing.clock import install_clock

# May make databases and owns them, nothing more: tests must not pass by rights that a managed server would not give.
TESTER = "tester"

# Any number: whoever holds it builds the template.
_BUILDING = 0x74657374

_ROOMY = 2_000_000_000

_FAST_AND_CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "64MB"}


class Cloner(ABC):
    """Makes databases on a server, of a template that is built once per schema. Its names begin with `prefix`."""

    prefix = ""

    @abstractmethod
    def url(self, database: str) -> str: ...

    @asynccontextmanager
    async def clone(self) -> AsyncIterator[str]:
        """A database with the schema in place and a clock to move; dropped afterwards."""
        async with self._fresh(self._clone_template) as url:
            yield url

    @asynccontextmanager
    async def empty(self) -> AsyncIterator[str]:
        """A database without a schema, for tests of the migrator itself."""
        async with self._fresh(lambda admin, name: _create(admin, name, "template1")) as url:
            yield url

    @asynccontextmanager
    async def _fresh(self, make: Callable[[AsyncConnection[Any], str], Awaitable[None]]) -> AsyncIterator[str]:
        name = f"{self.prefix}t_{secrets.token_hex(6)}"
        async with await self._admin() as admin:
            await make(admin, name)
        try:
            yield self.url(name)
        finally:
            await self._drop(name)

    @abstractmethod
    async def _admin(self) -> AsyncConnection[Any]:
        """A connection as whoever makes the databases."""

    @abstractmethod
    async def _drop(self, name: str) -> None: ...

    async def _clone_template(self, admin: AsyncConnection[Any], name: str) -> None:
        while True:
            # A process with another schema may drop our template between the two steps: then it is built again.
            with suppress(psycopg.errors.InvalidCatalogName):
                await _create(admin, name, await self._template(admin))
                return

    async def _template(self, admin: AsyncConnection[Any]) -> str:
        name = f"{self.prefix}template_{_fingerprint()}"
        if await _exists(admin, name):
            return name
        await admin.execute("select pg_advisory_lock(%s)", [_BUILDING])
        try:
            if not await _exists(admin, name):
                await self._build(admin, name)
        finally:
            await admin.execute("select pg_advisory_unlock(%s)", [_BUILDING])
        return name

    async def _build(self, admin: AsyncConnection[Any], name: str) -> None:
        # We hold the lock, so a draft still there was left by a process that was killed.
        await _drop_beginning(admin, f"{self.prefix}draft_")
        await _drop_beginning(admin, f"{self.prefix}template_")
        # Under another name until it is whole: a half-built one must never be cloned.
        draft = f"{self.prefix}draft_{secrets.token_hex(6)}"
        await _create(admin, draft, "template1")
        async with await AsyncConnection.connect(self.url(draft), autocommit=True) as connection:
            await upgrade(connection)
            await install_clock(connection)
        await admin.execute(
            sql.SQL("alter database {} rename to {}").format(sql.Identifier(draft), sql.Identifier(name))
        )


class TestServer(Cloner):
    """A server for tests. Enter it, and clone databases from its template."""

    __test__ = False  # not a test, whatever its name begins with

    def __init__(self, home: Path, programs: Programs | None = None) -> None:
        self._server = EmbeddedServer(home, programs=programs, settings=_FAST_AND_CARELESS)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.leave()

    def url(self, database: str, user: str = TESTER) -> str:
        return self._server.url(database, user)

    def superuser_url(self, database: str) -> str:
        """For what a test needs around the engine, such as roles; never for the engine itself."""
        return self._server.url(database, SUPERUSER)

    async def _drop(self, name: str) -> None:
        # As superuser: an autovacuum worker may be in it, whom nobody else may turn out.
        async with await AsyncConnection.connect(self.superuser_url("postgres"), autocommit=True) as superuser:
            await superuser.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    async def _admin(self) -> AsyncConnection[Any]:
        try:
            return await AsyncConnection.connect(self.url("postgres"), autocommit=True)
        except psycopg.OperationalError:
            await self._make_tester()
            return await AsyncConnection.connect(self.url("postgres"), autocommit=True)

    async def _make_tester(self) -> None:
        async with await AsyncConnection.connect(self.superuser_url("postgres"), autocommit=True) as connection:
            with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                await connection.execute(sql.SQL("create role {} login createdb").format(sql.Identifier(TESTER)))


@asynccontextmanager
async def throwaway_database() -> AsyncIterator[str]:
    """The URL of a database of your own, with the schema in place and a clock to move; gone when you leave."""
    with throwaway_server() as server:
        async with server.clone() as url:
            yield url


def throwaway_server() -> TestServer:
    """The server those databases are on; keep it entered for a whole test session to start it only once."""
    return TestServer(_cache_folder())


def quick_folder() -> Path:
    """Where a server that need not survive is quickest: in memory if there is room, else on the disk.

    Cloning a database takes a hundredth of a second in memory and a fifth on a common disk.
    """
    memory = Path("/dev/shm")  # noqa: S108 the caller makes a folder of its own in it
    if memory.is_dir():
        found = os.statvfs(memory)
        # PostgreSQL's programs may have to be copied there, and must run.
        if found.f_bavail * found.f_frsize >= _ROOMY and not found.f_flag & os.ST_NOEXEC:
            return memory
    return Path(tempfile.gettempdir())


@cache
def _fingerprint() -> str:
    """Names what a template is made of, so that a changed schema never meets an old template."""
    parts = [step.checksum for step in (*schema().migrations, schema().functions)]
    parts.append(files("mutirao.testing").joinpath("clock.sql").read_text("utf-8"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _cache_folder() -> Path:
    """The test server's folder: one per boot, since without fsync it may not survive a crash of the machine."""
    usual = Path("/var/cache") if os.geteuid() == 0 else Path.home() / ".cache"
    parent = Path(os.environ.get("XDG_CACHE_HOME") or usual) / "mutirao"
    boot = Path("/proc/sys/kernel/random/boot_id")
    current = parent / f"testing-{boot.read_text()[:8] if boot.exists() else 'any'}"
    for earlier in parent.glob("testing-*"):
        if earlier != current:
            shutil.rmtree(earlier, ignore_errors=True)
    return current


async def _exists(admin: AsyncConnection[Any], name: str) -> bool:
    found = await admin.execute("select from pg_database where datname = %s", [name])
    return found.rowcount > 0


async def _create(admin: AsyncConnection[Any], name: str, template: str) -> None:
    # Copied as a folder, not through the write-ahead log: several times quicker for a small database.
    await admin.execute(
        sql.SQL("create database {} template {} strategy file_copy").format(
            sql.Identifier(name), sql.Identifier(template)
        )
    )


async def _drop_beginning(admin: AsyncConnection[Any], beginning: str) -> None:
    found = await admin.execute("select datname from pg_database where starts_with(datname, %s)", [beginning])
    for (name,) in await found.fetchall():
        with suppress(psycopg.errors.ObjectInUse):  # being cloned: the next one removes it
            await admin.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)))

"""The server of a benchmark: embedded, with the settings we ship, in a folder of its own that goes away afterwards."""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import sql

from benchmarks.work import WORKS
from mutirao.database.embedded import SUPERUSER, EmbeddedServer
from mutirao.database.engine import Engine

_IN_MEMORY = ("tmpfs", "ramfs")


class BenchServer:
    """Enter it to have it running. Databases for a work are clones of one that has its flows in place."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent or _disk()
        if _filesystem(parent) in _IN_MEMORY:
            raise SystemExit(
                f"{parent} is in memory: there a commit costs nothing. Name a folder on a disk with --folder."
            )
        # Root's server runs as another account, which must be able to enter.
        self._home = Path(tempfile.mkdtemp(prefix="mutirao-bench-", dir=parent))
        self._server = EmbeddedServer(self._home)
        self._templates: set[str] = set()

    def __enter__(self) -> Self:
        self._server.__enter__()
        self._server.ensure_database("yardstick")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.leave()
        shutil.rmtree(self._home, ignore_errors=True)

    @property
    def processes(self) -> tuple[int, int]:
        """Our process and the server's: with their children, all that the benchmark runs."""
        return os.getpid(), int((self._server.data / "postmaster.pid").read_text().partition("\n")[0])

    @property
    def yardstick(self) -> str:
        return self._server.url("yardstick")

    def settings(self) -> dict[str, str]:
        """The server's version, and every setting that is not PostgreSQL's own."""
        with psycopg.connect(self.yardstick) as connection:
            found = connection.execute(
                "select name, current_setting(name) from pg_settings "
                "where source = 'configuration file' or name in ('server_version', 'fsync', 'synchronous_commit')"
            )
            return dict(found.fetchall())

    def checkpoint(self) -> None:
        """So that each run begins with the same duty to log whole pages."""
        self._administer(sql.SQL("checkpoint"))

    def fresh(self, work: str, name: str = "run") -> str:
        """The URL of a database in which the work's flows are in place and nothing has happened."""
        template = self._template(work)
        self.drop(name)
        self._administer(
            sql.SQL("create database {} template {} owner mutirao").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        return self._server.url(name)

    def clone(self, origin: str, name: str) -> str:
        """The URL of a copy of a database that nobody is connected to. Its files are copied, and not its rows logged."""
        self.drop(name)
        self._administer(
            sql.SQL("create database {} template {} owner mutirao strategy file_copy").format(
                sql.Identifier(name), sql.Identifier(origin)
            )
        )
        return self._server.url(name)

    def drop(self, name: str) -> None:
        self._administer(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def _template(self, work: str) -> str:
        name = f"template_{work}"
        if name not in self._templates:
            self._server.ensure_database(name)
            asyncio.run(_apply(self._server.url(name), work))
            self._templates.add(name)
        return name

    def _administer(self, statement: sql.SQL | sql.Composed) -> None:
        with psycopg.connect(self._server.url("postgres", SUPERUSER), autocommit=True) as connection:
            connection.execute(statement)


async def _apply(url: str, work: str) -> None:
    async with Engine(url, upgrade=True) as engine:
        for flow in WORKS[work].flows:
            await engine.apply(flow)


def _disk() -> Path:
    """Where temporary files outlive a reboot, and so are on a disk; elsewhere, wherever temporary files are."""
    lasting = Path("/var/tmp")  # noqa: S108 a folder of our own is made in it
    return lasting if lasting.is_dir() else Path(tempfile.gettempdir())


def _filesystem(folder: Path) -> str:
    """The kind of file system that a folder is on, as far as the system tells."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    folder = folder.resolve()
    under: list[tuple[int, str]] = [(len(at), kind) for at, kind in mounts if folder.is_relative_to(at)]
    return max(under, default=(0, "unknown"))[1]


def machine() -> dict[str, Any]:
    """What the figures depend on, and nothing that names the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"processor": _processor(), "cores": os.cpu_count(), "memory_gb": round(memory / 2**30, 1)}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")

"""A database's schemas of ours to a file and back, between any two servers from 15 on, without superuser rights.

The file is pg_dump's custom format. What is saved: `mutirao`, `mutirao_rule`, `mutirao_secret` and the schema of every flow, without owners
and grants, so that it can be brought to a server with other roles; `sql/after_restore.sql` sets them right again there.
The programs run in a thread: they block.
"""

import asyncio
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import IO, cast

from psycopg import errors, sql

from mutirao.database.client import Command, command
from mutirao.database.connection import connect, refusals
from mutirao.database.programs import bundled
from mutirao.database.sql import query
from mutirao.errors import OperatorError, RequestError

Report = Callable[[str], None]

_ALL_BUT_ROLES = ("--no-owner", "--no-privileges")
_ENGINE = frozenset({"mutirao", "mutirao_rule", "mutirao_secret"})

# Written by pg_dump 17 and newer into the first lines of every script; 15 and 16 do not know the setting.
_UNKNOWN_TO_OLD_SERVERS = b"SET transaction_timeout = 0;\n"
_PREAMBLE = 40


async def backup(url: str, file: Path, *, force: bool = False, report: Report = lambda _: None) -> int:
    """Write the file, whole or not at all, and return its size."""
    schemas = await _our_schemas(url)
    if not schemas:
        raise RequestError("nothing_to_back_up", "the database has no schema `mutirao`; is it the right one?")
    return await asyncio.to_thread(_dump, url, schemas, file, force, report)


async def left_out(url: str) -> list[str]:
    """The tables of the database that a backup has not: those of other programs, and of people's own tasks."""
    ours = await _our_schemas(url)
    async with await connect(url) as connection:
        with refusals():
            found = await connection.execute(query("other_tables"), [ours])
            return [name for (name,) in await found.fetchall()]


async def restore(url: str, file: Path, *, force: bool = False, report: Report = lambda _: None) -> None:
    """Bring the file's schemas into the database, all of it or nothing. An engine without flows gives way."""
    _check_is_file(file)
    existing = await _our_schemas(url)
    if not _ENGINE.issuperset(existing) and not force:
        raise RequestError(
            "database_not_empty",
            f"the database has the schemas {', '.join(existing)}; restore into an empty one, or --force to replace them",
        )
    await asyncio.to_thread(_load, url, existing, file, report)


def _check_is_file(file: Path) -> None:
    if not file.is_file():
        raise RequestError("no_such_file", f"{file} is no file; give one that `mutirao db backup` wrote")


def _dump(url: str, schemas: list[str], file: Path, force: bool, report: Report) -> int:
    if file.exists() and not force:
        raise RequestError("file_exists", f"{file} is there already; choose another name, or --force to replace it")
    unfinished = file.with_name(f"{file.name}.unfinished")
    # Quoted, so that pg_dump takes them for names and not for patterns.
    chosen = [f'--schema="{name}"' for name in schemas]
    try:
        _run(command("pg_dump", url, "-Fc", "--verbose", *_ALL_BUT_ROLES, "-f", unfinished, *chosen), report)
        unfinished.replace(file)
    except OSError as error:
        raise OperatorError("backup_failed", f"{file}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return file.stat().st_size


def _load(url: str, old: list[str], file: Path, report: Report) -> None:
    # Through psql and not by pg_restore alone: dropping the old and bringing the new must be one transaction, and a
    # statement that an older server does not know must be left out.
    words, environment = command("psql", url, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", "-")
    with tempfile.TemporaryFile() as complaints:
        loader = subprocess.Popen(  # noqa: S603 our own binary
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=complaints
        )
        try:
            _feed(loader, old, _script(file, report))
        finally:
            code = loader.wait()
        if code != 0:
            raise _failure(complaints)


def _feed(loader: "subprocess.Popen[bytes]", old: list[str], script: Iterator[bytes]) -> None:
    # Our own begin and commit, not psql's -1: that one commits at the end of its input, even where we were killed.
    # Where psql gives up early the pipe breaks; its exit code and its words tell the rest.
    stdin = cast("IO[bytes]", loader.stdin)
    with suppress(BrokenPipeError), stdin:
        stdin.write(b"begin;\n")
        if old:
            stdin.write(_sql("before_restore.sql"))
        for name in old:
            stdin.write(f"drop schema {_quoted(name)} cascade;\n".encode())
        stdin.writelines(script)
        stdin.write(_sql("after_restore.sql"))
        stdin.write(b"commit;\n")


def _script(file: Path, report: Report) -> Iterator[bytes]:
    """The backup as SQL; raises at its end if it was not whole."""
    words = [str(bundled().path("pg_restore")), *_ALL_BUT_ROLES, "-f", "-", str(file)]
    with tempfile.TemporaryFile() as complaints:
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=complaints) as reader:  # noqa: S603 our own binary
            for number, line in enumerate(reader.stdout or ()):
                # Only in the first lines: further down the same words may be somebody's data.
                if number < _PREAMBLE and line == _UNKNOWN_TO_OLD_SERVERS:
                    continue
                if line.startswith(b"-- Data for Name: "):
                    report(line[3:].split(b";")[0].decode())
                yield line
        if reader.returncode != 0:
            raise _failure(complaints)


def _run(program: Command, report: Report) -> None:
    words, environment = program
    last = ""
    with subprocess.Popen(  # noqa: S603 our own binary
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as running:
        for line in running.stderr or ():
            last = line.strip() or last
            report(last)
    if running.returncode != 0:
        raise OperatorError(_code("backup_failed", last), last)


def _failure(complaints: IO[bytes]) -> OperatorError:
    complaints.seek(0)
    lines = complaints.read().decode(errors="replace").splitlines()
    telling = [line.strip() for line in lines if "ERROR" in line or "error:" in line] or lines or ["it was stopped"]
    return OperatorError(_code("restore_failed", telling[0]), f"{telling[0]}; nothing was changed")


def _code(usual: str, said: str) -> str:
    return "disk_full" if "No space left on device" in said else usual


def _sql(file: str) -> bytes:
    return files("mutirao.database").joinpath("sql", file).read_bytes()


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)


async def _our_schemas(url: str) -> list[str]:
    """Those of ours that are there: the engine's and one for each flow."""
    names = [*_ENGINE]
    async with await connect(url) as connection:
        with refusals():
            # An empty database has no flows; nor has one whose first upgrade is still to come.
            with suppress(errors.UndefinedTable, errors.InvalidSchemaName):
                names += [name async for (name,) in await connection.execute(query("flow_names"))]
            found = await connection.execute(query("schemas_of_those"), [names])
            return [name for (name,) in await found.fetchall()]

"""Finished instances to files, each with its whole trace; and dropped afterwards, if so wished.

A file holds up to PART instances. It is written under another name, brought to the disk, given its own (part.py), and only then
recorded; what is not recorded is never dropped. An export that was killed leaves at most one file that is not recorded: the
next one removes it and goes on. What is in a file is in `mutirao.exported` until it is dropped.
"""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from psycopg import AsyncConnection

from mutirao.database.jsonl import JsonLines
from mutirao.database.part import Part, leave_recorded, remove_unrecorded
from mutirao.database.sql import query
from mutirao.errors import MutiraoError, OperatorError, RequestError

Format = Literal["jsonl", "jsonl.gz", "parquet"]

PART = 10_000
# States may have a megabyte each, and traces hold many of them: so few at a time are in memory.
_AT_ONCE = 50
_DROPPED_AT_ONCE = 500
# So many times as long as a chunk took, nothing is dropped: running work comes first.
_REST = 4

_STATUSES = ("closed.completed", "closed.terminated", "closed.aborted")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export did: the files it wrote, how many instances are in them, and how many it dropped."""

    files: list[Path]
    instances: int
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Which finished instances of a flow go where. `report` hears each number that is written."""

    flow: str
    folder: Path
    format: Format = "jsonl"
    closed_before: datetime | None = None
    drop: bool = False
    report: Callable[[int], None] = lambda _: None

    @property
    def before(self) -> datetime | str:
        return self.closed_before or "infinity"


class Writer(Protocol):
    """A file of one format. `write` takes instances as JSON, `finish` whatever the format wants at its end."""

    def write(self, lines: Sequence[bytes]) -> None: ...

    def finish(self) -> None: ...


@dataclass
class _Place:
    """How far the reading has come; it goes by status, and within it by the time of closing."""

    statuses: list[str] = field(default_factory=lambda: list(_STATUSES))
    closed_at: datetime | str = "-infinity"
    instance: int = 0

    def next_status(self) -> None:
        self.statuses.pop(0)
        self.closed_at, self.instance = "-infinity", 0


async def count_exportable(connection: AsyncConnection[Any], flow: str, closed_before: datetime | None) -> int:
    """How many finished instances are in no file yet."""
    asked = {"flow": flow, "before": closed_before or "infinity"}
    row = await (await connection.execute(query("count_exportable"), asked)).fetchone()
    return int(row[0]) if row else 0


async def export(connection: AsyncConnection[Any], options: ExportOptions, writer: str) -> Exported:
    """Write what is in no file yet. Nothing is dropped unless it is on the disk and recorded."""
    await connection.execute(query("flow_number"), [options.flow])
    _make_folder(options.folder)
    async with _alone(connection, options.flow):
        await _clean_up(connection, options.flow)
        files: list[Path] = []
        instances = 0
        dropped = await _drop(connection, options)  # what an earlier one left
        place = _Place()
        while place.statuses:
            number, file = await _begin(connection, options, writer)
            part: Part | None = None
            try:
                part = _begin_part(file)
                found = await _write_part(connection, options, place, part)
            except BaseException:
                await asyncio.shield(_forget(connection, number, part))
                raise
            if not found:
                await _forget(connection, number, part)
                break
            await _record(connection, number, part, found)
            files.append(file)
            instances += len(found)
            dropped += await _drop(connection, options)
    return Exported(files, instances, dropped)


@asynccontextmanager
async def _alone(connection: AsyncConnection[Any], flow: str) -> AsyncIterator[None]:
    """One export of a flow at a time, or each would take the other's unfinished file for a dead one's."""
    row = await (await connection.execute(query("lock_export"), [flow])).fetchone()
    if not row or not row[0]:
        raise RequestError("export_running", f'another process is exporting "{flow}": wait for it')
    try:
        yield
    finally:
        if not connection.closed:
            await connection.execute(query("unlock_export"), [flow])


async def _begin(connection: AsyncConnection[Any], options: ExportOptions, writer: str) -> tuple[int, Path]:
    values = (options.flow, str(options.folder.absolute()), options.format, writer)
    row = await (await connection.execute(query("begin_export"), values)).fetchone()
    number, file = row or (0, "")
    return number, Path(file)


def _begin_part(file: Path) -> Part:
    try:
        return Part.begin(file)
    except FileExistsError as error:
        raise RequestError(
            "file_exists", f"{file} is there already, and is not of this database: choose another folder"
        ) from error
    except OSError as error:
        raise _failure(file, error) from error


async def _forget(connection: AsyncConnection[Any], number: int, part: Part | None) -> None:
    """Remove what this export wrote and did not record. Where the server is away, the next export does the rest."""
    if part is not None:
        part.remove()
    if not connection.closed:
        await connection.execute(query("forget_export"), [number])


async def _record(connection: AsyncConnection[Any], number: int, part: Part, found: list[tuple[int, datetime]]) -> None:
    """Where that fails, nobody knows whether it is recorded: the next export looks, and the file stays until then."""
    try:
        await connection.execute(query("mark_exported"), [number, *map(list, zip(*found, strict=True))])
        leave_recorded(part.file)
    finally:
        part.close()


async def _clean_up(connection: AsyncConnection[Any], flow: str) -> None:
    found = await connection.execute(query("unsettled_exports"), {"flow": flow})
    for number, name, is_recorded in await found.fetchall():
        file = Path(name)
        try:
            (leave_recorded if is_recorded else remove_unrecorded)(file)
        except OSError as error:
            raise _failure(file, error) from error
        if not is_recorded:
            await connection.execute(query("forget_export"), [number])


async def _write_part(
    connection: AsyncConnection[Any], options: ExportOptions, place: _Place, part: Part
) -> list[tuple[int, datetime]]:
    """One file, unless there is nothing more to write; answers the instances in it and when they closed."""
    found: list[tuple[int, datetime]] = []
    try:
        out = await _writer(connection, options, part.raw)
        async with aclosing(_pages(connection, options, place)) as pages:
            async for page in pages:
                await asyncio.to_thread(out.write, [line for _, _, line in page])
                found += [(instance, closed_at) for instance, closed_at, _ in page]
                options.report(len(page))
        await asyncio.to_thread(out.finish)
        if found:
            await asyncio.to_thread(part.finish)
            _sync_folder(part.file.parent)
    except OSError as error:
        raise _failure(part.file, error) from error
    return found


async def _writer(connection: AsyncConnection[Any], options: ExportOptions, raw: Any) -> Writer:
    if options.format != "parquet":
        return JsonLines(raw, compress=options.format.endswith(".gz"))
    try:
        from mutirao.database.parquet import Parquet  # noqa: PLC0415 an extra that few install
    except ImportError as error:
        raise OperatorError(
            "extra_missing", "Parquet needs pyarrow: pip install 'mutirao[parquet]', or export as jsonl"
        ) from error
    found = await connection.execute(query("attribute_types"), [options.flow])
    return Parquet(raw, dict(await found.fetchall()))


async def _pages(
    connection: AsyncConnection[Any], options: ExportOptions, place: _Place
) -> AsyncGenerator[list[tuple[int, datetime, bytes]], None]:
    """Up to PART instances, a few at a time, as they all were at one moment."""
    left = PART
    async with connection.transaction():
        await connection.execute(query("one_moment"))
        while left and place.statuses:
            asked = {
                "flow": options.flow,
                "status": place.statuses[0],
                "before": options.before,
                "closed_at": place.closed_at,
                "instance": place.instance,
                "room": left,
            }
            seen = 0
            async with connection.cursor(name="export") as cursor:
                await cursor.execute(query("export_lines"), asked)
                while page := await cursor.fetchmany(_AT_ONCE):
                    seen += len(page)
                    place.instance, place.closed_at = page[-1][:2]
                    yield [(instance, closed_at, line.encode()) for instance, closed_at, line in page]
            if seen < left:
                place.next_status()
            left -= seen


async def _drop(connection: AsyncConnection[Any], options: ExportOptions) -> int:
    if not options.drop:
        return 0
    dropped = 0
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        values = (options.flow, options.before, _DROPPED_AT_ONCE)
        row = await (await connection.execute(query("drop_exported"), values)).fetchone()
        if not row or not row[0]:
            return dropped
        dropped += row[0]
        await asyncio.sleep(_REST * (loop.time() - began))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise RequestError(
            "wrong_call", f"{folder} is a file: an export needs a folder, and writes files into it"
        ) from error
    except OSError as error:
        raise _failure(folder, error) from error


def _sync_folder(folder: Path) -> None:
    """A new name is safe only when its folder is."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _failure(file: Path, error: OSError) -> MutiraoError:
    if error.errno in _FULL:
        said = (
            f"{file.parent} has no space left ({error.strerror}): this file was removed, and nothing in it was dropped"
        )
        return OperatorError("disk_full", said)
    return OperatorError(
        "export_failed", f"{error.filename or file}: {error.strerror}; nothing that is in no file was dropped"
    )

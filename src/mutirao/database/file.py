"""The file store: content in chunks, each content once. The engine has it as `engine.files`.

    report = await engine.files.upload(chunks, "report.pdf", media="application/pdf")
    async for part in engine.files.open(report): ...

Nothing here holds a file wholly: what comes and goes are chunks, and each is a statement of its own, so nobody holds a
connection while a slow reader reads. Whoever wants to resume does so by the number of a chunk, in both directions.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from mutirao.database.caller import Face
from mutirao.database.sql import query
from mutirao.errors import MutiraoError, RequestError
from mutirao.model.file import ANY_MEDIA, File

CHUNK = 262_144
"""So many bytes has every chunk of a file but the last."""


@dataclass(frozen=True, slots=True)
class Upload:
    """How far an upload has come. `missing` are the chunks to be put yet; without a size, only those up to the last one."""

    id: int
    name: str
    media: str
    size: int | None
    sha256: str | None
    finished: bool
    received: int
    missing: list[int]


@dataclass(frozen=True, slots=True)
class Span:
    """Some bytes of one chunk."""

    number: int
    first: int
    length: int


class Files(Face):
    """The file store of an engine. An `actor` is the number of the person for whom something is done."""

    # In

    async def upload(
        self,
        content: AsyncIterable[bytes] | bytes,
        name: str,
        *,
        media: str = ANY_MEDIA,
        actor: int | None = None,
    ) -> File:
        """Put a whole file, from bytes or from a stream; answers what an attribute of type `file` takes."""
        upload = await self.begin(name, media=media, actor=actor)
        digest = hashlib.sha256()
        number = 0
        try:
            async for chunk in _in_chunks(content):
                digest.update(chunk)
                await self.put_chunk(upload, number, chunk, actor=actor)
                number += 1
            seal = await self._call("seal_upload", upload, actor)
            return await self._finished(upload, digest.hexdigest(), seal, actor)
        except BaseException:
            with suppress(MutiraoError):  # what is left of it, a clock removes after a day
                await asyncio.shield(self.abandon(upload, actor=actor))
            raise

    async def upload_from(
        self, path: Path, name: str | None = None, *, media: str | None = None, actor: int | None = None
    ) -> File:
        """Put a file from a disk."""
        name = path.name if name is None else name
        media = media or guess_type(name)[0] or ANY_MEDIA
        return await self.upload(_read(path), name, media=media, actor=actor)

    async def begin(
        self,
        name: str,
        *,
        size: int | None = None,
        sha256: str | None = None,
        media: str = ANY_MEDIA,
        actor: int | None = None,
    ) -> int:
        """Begin an upload in chunks, and answer its number. One that is not finished within a day is removed."""
        return int(await self._call("begin_upload", name, media, size, sha256, actor))

    async def put_chunk(self, upload: int, number: int, content: bytes, *, actor: int | None = None) -> None:
        """Put one chunk, in any order; again, if need be. All but the last have `CHUNK` bytes."""
        await self._call("put_chunk", upload, number, content, actor)

    async def progress(self, upload: int, *, actor: int | None = None) -> Upload:
        """What has come of an upload, and what is missing: for whoever resumes it."""
        [found] = await self._rows(Upload, "upload_state", (upload, upload, actor))
        return found

    async def finish(self, upload: int, *, actor: int | None = None) -> File:
        """Read an upload once more, and make a file of it if it is what was announced. Again, it answers the same."""
        seal: datetime | None = await self._call("seal_upload", upload, actor)
        return await self._finished(upload, None if seal is None else await self._digest(upload), seal, actor)

    async def abandon(self, upload: int, *, actor: int | None = None) -> None:
        """Remove an upload that will not be finished."""
        await self._call("abandon_upload", upload, actor)

    # Out

    async def open(self, file: File | str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """The content from a byte on, so many bytes of it: to the end by default. `file` may be its sha256 alone."""
        sha256 = _sha256(file)
        size = await self.size(sha256)
        if not 0 <= offset <= size or (length is not None and length < 0):
            raise RequestError("wrong_call", f"a file of {size} bytes is not read from byte {offset}, {length} bytes")
        end = size if length is None else min(size, offset + length)
        for span in spans(offset, end):
            yield await self._read_span(sha256, span)

    async def read_chunk(self, file: File | str, number: int) -> bytes:
        """One chunk by its number: for whoever resumes."""
        return await self._read_span(_sha256(file), Span(number, 0, CHUNK))

    async def download(self, file: File | str, path: Path) -> None:
        """Write the content to a file on a disk, which is made, or replaced."""
        with path.open("wb") as target:
            async for part in self.open(file):
                await asyncio.to_thread(target.write, part)

    async def size(self, file: File | str) -> int:
        """How many bytes it has; refused when the store does not have it."""
        size = await self._call("file_size", _sha256(file))
        if size is None:
            raise _unknown(_sha256(file))
        return int(size)

    async def may_read(self, actor: int, file: File | str, instance: int) -> bool:
        """Whether this person may read it as a file of this instance."""
        return bool(await self._call("may_read_file", actor, _sha256(file), instance))

    async def name_in(self, instance: int, file: File | str) -> str | None:
        """What an instance calls it; None for what it has no more."""
        async with self.connection() as connection:
            asked = {"instance": instance, "sha256": _sha256(file)}
            row = await (await connection.execute(query("file_name"), asked)).fetchone()
        return None if row is None else row[0]

    # Settings

    async def limit(self) -> int:
        """How many bytes a file may have: the setting `file_limit`."""
        return int(await self._call("file_limit"))

    async def _finished(self, upload: int, sha256: str | None, seal: datetime | None, actor: int | None) -> File:
        async with self.connection() as connection:
            found = await connection.execute(query("finish_upload"), (upload, sha256, seal, actor))
            [(of_content, name, size, media)] = await found.fetchall()
        return File(of_content, name, size, media)

    async def _digest(self, upload: int) -> str:
        digest = hashlib.sha256()
        number = 0
        while (chunk := await self._bytes("upload_chunk", upload, number)) is not None:
            await asyncio.to_thread(digest.update, chunk)
            number += 1
        return digest.hexdigest()

    async def _read_span(self, sha256: str, span: Span) -> bytes:
        found = await self._bytes("read_chunk", span.first + 1, span.length, sha256, span.number)
        if found is None:
            raise _unknown(sha256)
        return found

    async def _bytes(self, name: str, *values: Any) -> bytes | None:
        async with self.connection() as connection:
            row = await (await connection.execute(query(name), values, binary=True)).fetchone()
            return None if row is None else bytes(row[0])


def spans(start: int, end: int) -> list[Span]:
    """The bytes from `start` up to `end`, chunk by chunk."""
    if start >= end:
        return []
    firsts = range(start - start % CHUNK, end, CHUNK)
    return [Span(at // CHUNK, max(start - at, 0), min(end - at, CHUNK) - max(start - at, 0)) for at in firsts]


def _sha256(file: File | str) -> str:
    return file.sha256 if isinstance(file, File) else file


def _unknown(sha256: str) -> RequestError:
    return RequestError("unknown_file", f"the file store has no content {sha256}, or not this chunk of it")


async def _in_chunks(content: AsyncIterable[bytes] | bytes) -> AsyncIterator[bytes]:
    """The same bytes in pieces of one size, but for the last."""
    if isinstance(content, bytes):
        for first in range(0, len(content), CHUNK):
            yield content[first : first + CHUNK]
        return
    waiting = bytearray()
    async for piece in content:
        for first in range(0, len(piece), CHUNK):  # a piece may be larger than a chunk, and is copied only so far
            waiting += piece[first : first + CHUNK]
            if len(waiting) >= CHUNK:
                yield bytes(waiting[:CHUNK])
                del waiting[:CHUNK]
    if waiting:
        yield bytes(waiting)


async def _read(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as source:
        while piece := await asyncio.to_thread(source.read, CHUNK):
            yield piece

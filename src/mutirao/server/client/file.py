"""Files, over HTTP: streamed both ways."""

from collections.abc import AsyncIterable, AsyncIterator
from http import HTTPStatus

import msgspec

from mutirao.database.file import Upload
from mutirao.model.file import ANY_MEDIA, File
from mutirao.server.client.noun import Noun
from mutirao.server.client.transport import raise_refusal


class Begun(msgspec.Struct):
    """An upload, and how many bytes each of its chunks has."""

    upload: int
    chunk: int


class Files(Noun):
    async def put(self, content: AsyncIterable[bytes] | bytes, name: str, *, media: str = ANY_MEDIA) -> File:
        """Put a whole file; answers what an attribute of type `file` takes."""
        headers = {"Content-Type": media}
        asked = await self._http.ask("POST", "/api/files", query={"name": name}, content=content, headers=headers)
        return msgspec.json.decode(asked.content, type=File)

    async def open(
        self, instance: int, file: File, *, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """The content of a file of an instance, from a byte on."""
        last = "" if length is None else str(offset + length - 1)
        headers = {"Range": f"bytes={offset}-{last}"} if offset or length is not None else {}
        path = f"/api/instances/{instance}/files/{file.sha256}"
        async with self._http.http.stream("GET", path, headers=headers) as response:
            if response.status_code not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                await response.aread()
                raise_refusal(response)
            async for part in response.aiter_raw():
                yield part

    async def begin(
        self,
        name: str,
        *,
        size: int | None = None,
        sha256: str | None = None,
        media: str = ANY_MEDIA,
        key: str | None = None,
    ) -> Begun:
        """Begin an upload in chunks, which may be resumed."""
        body = {"name": name, "size": size, "sha256": sha256, "media": media}
        return await self._http.send(Begun, "POST", "/api/uploads", body, key=key)

    async def progress(self, upload: int) -> Upload:
        return await self._http.get(Upload, f"/api/uploads/{upload}")

    async def put_chunk(self, upload: int, number: int, content: bytes) -> None:
        headers = {"Content-Type": ANY_MEDIA}
        await self._http.ask("PUT", f"/api/uploads/{upload}/chunks/{number}", content=content, headers=headers)

    async def finish(self, upload: int) -> File:
        return await self._http.send(File, "POST", f"/api/uploads/{upload}/finish")

    async def abandon(self, upload: int) -> None:
        await self._http.do("DELETE", f"/api/uploads/{upload}")

"""Files: contents of attributes of type file. They come and go in pieces, and are never wholly in memory."""

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from mutirao.database.file import CHUNK, Upload
from mutirao.errors import RequestError
from mutirao.model.file import ANY_MEDIA, File
from mutirao.server.answer import BIGGEST, answer, done
from mutirao.server.need import SignedIn
from mutirao.server.problem import Refused, problem
from mutirao.server.route.parts import Body, Number, Text, routes
from mutirao.server.routing import creates, streams
from mutirao.server.who import Who

router = routes("file", "")

Name = Annotated[
    Text, Field(min_length=1, max_length=255, description="What the file is called.", examples=["report.pdf"])
]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Of the content, in hexadecimal.")]
ChunkNumber = Annotated[int, Path(ge=0, le=2**31 - 1, description="From 0.")]

_BYTES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {ANY_MEDIA: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_CONTENT: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {ANY_MEDIA: {"schema": {"type": "string", "format": "binary"}}}}
    for status, text in ((200, "The content."), (206, "The part that `Range` asks for."))
}
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Begin(Body):
    name: Name
    media: Annotated[Text, Field(max_length=200, examples=["application/pdf"])] = ANY_MEDIA
    size: Annotated[int | None, Field(ge=0, le=BIGGEST, description="If it is known.")] = None
    sha256: Annotated[Sha256 | None, Field(description="If it is known: what comes is compared with it.")] = None


class Begun(BaseModel):
    upload: int
    chunk: Annotated[int, Field(description="So many bytes has every chunk but the last.")] = CHUNK


@router.post("/files", status_code=201, response_model=File, openapi_extra=_BYTES)
@streams
async def put(request: Request, who: SignedIn, name: Annotated[Name, Query()]) -> Response:
    """Put a whole file. The answer is the value that an attribute of type file takes; the same content is kept once."""
    media = request.headers.get("content-type") or ANY_MEDIA
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit():
        await _check_size(who, int(said[:20]))
    return answer(await who.engine.files.upload(request.stream(), name, media=media[:200], actor=who.id), status=201)


async def _check_size(who: Who, size: int) -> None:
    """Before the first byte of it is read."""
    most = await who.engine.files.limit()
    if size > most:
        raise RequestError("file_too_large", f"a file may have {most:,} bytes at most: this has {size:,}")


@router.post("/uploads", status_code=201, response_model=Begun)
@creates
async def begin(who: SignedIn, body: Begin) -> Response:
    """Begin an upload in chunks, which may be resumed. One that is not finished within a day is removed."""
    upload = await who.engine.files.begin(body.name, size=body.size, sha256=body.sha256, media=body.media, actor=who.id)
    return answer({"upload": upload, "chunk": CHUNK}, status=201, headers={"Location": f"/api/uploads/{upload}"})


@router.get("/uploads/{upload}", response_model=Upload)
async def progress(who: SignedIn, upload: Number) -> Response:
    """What has come of your upload, and what is missing."""
    return answer(await who.engine.files.progress(upload, actor=who.id))


@router.put("/uploads/{upload}/chunks/{number}", status_code=204, openapi_extra=_BYTES)
async def put_chunk(request: Request, who: SignedIn, upload: Number, number: ChunkNumber) -> Response:
    """Put one chunk, in any order; again, if need be."""
    await who.engine.files.put_chunk(upload, number, await request.body(), actor=who.id)
    return done()


@router.post("/uploads/{upload}/finish", response_model=File)
@streams
async def finish(who: SignedIn, upload: Number) -> Response:
    """Make a file of it, which is read once more: some seconds for each gigabyte. Again, it answers the same."""
    return answer(await who.engine.files.finish(upload, actor=who.id))


@router.delete("/uploads/{upload}", status_code=204)
async def abandon(who: SignedIn, upload: Number) -> Response:
    """Remove an upload that will not be finished."""
    await who.engine.files.abandon(upload, actor=who.id)
    return done()


@router.get("/instances/{instance}/files/{sha256}", response_class=Response, responses=_CONTENT)
@streams
async def get(
    request: Request,
    who: SignedIn,
    instance: Number,
    sha256: Annotated[Sha256, Path()],
    name: Annotated[Name | None, Query(description="Nothing: as the instance calls it.")] = None,
) -> Response:
    """A file of an instance that you may see; `Range` asks for a part of it."""
    if not await who.engine.files.may_read(who.id, sha256, instance):
        raise RequestError("unknown_file", f"instance {instance} has no such file")
    size = await who.engine.files.size(sha256)
    called = name or await who.engine.files.name_in(instance, sha256) or "file"
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(called, safe='')}",
        "ETag": f'"{sha256}"',
    }
    first, end = _part(request, size)
    if first >= end and size:
        refused = Refused(RequestError("wrong_call", f"the file has {size:,} bytes: it has no such part"), 416)
        return problem(refused, headers={"Content-Range": f"bytes */{size}"})
    headers["Content-Length"] = str(end - first)
    is_part = (first, end) != (0, size)
    if is_part:
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{size}"
    content: AsyncIterator[bytes] = who.engine.files.open(sha256, offset=first, length=end - first)
    return StreamingResponse(content, 206 if is_part else 200, headers, ANY_MEDIA)


def _part(request: Request, size: int) -> tuple[int, int]:
    """From which byte up to which; what cannot be read as a range asks for everything."""
    given = _RANGE.fullmatch(request.headers.get("range", ""))
    if given is None or given.groups() == ("", ""):
        return 0, size
    first, last = given.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1 if last else size)

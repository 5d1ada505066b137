"""Reading what was sent: no more than allowed, exact numbers, and nothing that would get stuck further down."""

from typing import Any

import msgspec
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request

from mutirao.database.engine import DECODER
from mutirao.errors import RequestError

MAX_DEPTH = 100
_JSON = ("application/json", "+json")


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body; one that is larger is refused as soon as that is known."""
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:20]) > limit:
        raise _too_large(limit)
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise _too_large(limit)
    body = b"".join(parts)
    request._body = body  # noqa: SLF001 what `request.body()` answers from now on
    return body


def _too_large(limit: int) -> RequestError:
    return RequestError("too_large", f"a request may have {limit:,} bytes at most; files go to /api/files")


def read_json(request: Request, body: bytes) -> None:
    """What `request.json()` answers from now on: numbers are exact, and depth is bounded."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body or not media.endswith(_JSON):
        return
    try:
        value = DECODER.decode(body)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        raise _too_deep() if deep else _not_json(error) from error
    _check(value)
    request._json = value  # noqa: SLF001


def _check(value: Any) -> None:
    """Not deeper than the database can follow, and no character that it cannot keep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        if not level:
            return
        deeper: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                deeper += each.keys()
                deeper += each.values()
            elif isinstance(each, list):
                deeper += each
            elif isinstance(each, str) and "\0" in each:
                raise RequestError("wrong_body", "a text cannot hold the character U+0000")
        level = deeper
    if level:
        raise _too_deep()


def _too_deep() -> RequestError:
    return RequestError("too_deep", f"JSON may be {MAX_DEPTH} levels deep at most")


def _not_json(error: Exception) -> RequestValidationError:
    return RequestValidationError([{"loc": ("body",), "msg": f"this is not JSON: {error}", "type": "json_invalid"}])


def check_line(request: Request) -> None:
    """The same for the path and the query."""
    if "%00" in request.scope.get("raw_path", b"").decode("latin-1") or "%00" in request.url.query:
        raise RequestError("wrong_call", "an address cannot hold the character U+0000")

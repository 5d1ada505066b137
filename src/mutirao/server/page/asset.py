"""What pages load beside themselves: scripts, styles, pictures. Built from web/, kept in memory, cached by browsers for ever."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from mimetypes import guess_type
from pathlib import Path

from fastapi import APIRouter, Request, Response

from mutirao.errors import OperatorError, RequestError
from mutirao.server.need import Anybody
from mutirao.server.openapi import PAGE

FOLDER = Path(__file__).parent / "asset"
PICTURES = Path(__file__).parent / "picture"
_FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter(prefix="/asset", tags=[PAGE], include_in_schema=False)


@dataclass(frozen=True)
class Asset:
    content: bytes
    packed: bytes
    media: str
    mark: str
    """Changes with the content, and so with it the address."""


@cache
def assets() -> dict[str, Asset]:
    files = [*FOLDER.glob("*.js"), *FOLDER.glob("*.css"), *PICTURES.glob("*")]
    found = {path.name: _asset(path) for path in files}
    if "app.js" not in found:
        raise OperatorError("pages_not_built", f"the pages are not built: {FOLDER} has no app.js; run `make pages`")
    return found


def _asset(path: Path) -> Asset:
    content = path.read_bytes()
    media = guess_type(path.name)[0] or "application/octet-stream"
    return Asset(content, gzip.compress(content, 9), media, hashlib.sha256(content).hexdigest()[:12])


def address(name: str) -> str:
    return f"/asset/{name}?{assets()[name].mark}"


@router.get("/{name}")
async def get(request: Request, who: Anybody, name: str) -> Response:  # noqa: ARG001 it says who may ask
    found = assets().get(name)
    if found is None:
        raise RequestError("unknown_path", f"there is nothing at /asset/{name[:100]}")
    headers = {"Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.media)
    return Response(found.content, headers=headers, media_type=found.media)

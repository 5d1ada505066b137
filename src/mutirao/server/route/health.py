"""Whether the server is well, what it has done, and the description of the API."""

import asyncio
from ipaddress import ip_address
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from mutirao.database.health import Health
from mutirao.database.migrate import ensure_current
from mutirao.errors import OperatorError, RequestError
from mutirao.server.answer import answer
from mutirao.server.metrics import ServerMetrics
from mutirao.server.need import Administrator, Anybody
from mutirao.server.options import ServerOptions
from mutirao.server.routing import Route
from mutirao.server.who import who_asks

router = APIRouter(tags=["health"], route_class=Route)

_ANSWER_WITHIN = 3.0


class Well(BaseModel):
    status: str = "ok"


@router.head("/health", include_in_schema=False)
@router.get("/health", response_model=Well)
async def health(who: Anybody) -> Response:  # noqa: ARG001 it says who may ask
    """Whether the process is up."""
    return answer({"status": "ok"})


@router.head("/ready", include_in_schema=False)
@router.get("/ready", response_model=Well)
async def ready(request: Request, who: Anybody) -> Response:  # noqa: ARG001
    """Whether the database answers, and has the schema that this program needs."""
    engine = request.app.state.engine
    try:
        async with asyncio.timeout(_ANSWER_WITHIN), engine.connection() as connection:
            await ensure_current(connection)
    except TimeoutError as error:
        raise OperatorError("server_unreachable", f"{engine} does not answer within {_ANSWER_WITHIN:g} s") from error
    return answer({"status": "ok"})


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "For Prometheus."}},
)
async def metrics(request: Request, who: Anybody) -> Response:  # noqa: ARG001
    """What the server does, for Prometheus: asked from this machine, or with the token of an administrator."""
    options: ServerOptions = request.app.state.options
    if options.proxies or not _is_local(request):
        asks = await who_asks(request)
        if not asks.is_administrator:
            raise RequestError("forbidden", "metrics are for this machine and for administrators")
    found: ServerMetrics = request.app.state.metrics
    content, media = await found.scrape(request.headers.get("accept", ""))
    return Response(content, media_type=media)


def _is_local(request: Request) -> bool:
    """A proxy beside us makes everybody local, and says for whom it asks."""
    forwarded = any(name in request.headers for name in ("x-forwarded-for", "forwarded"))
    return not forwarded and request.client is not None and ip_address(request.client.host).is_loopback


@router.get("/api/health", response_model=Health)
async def database(who: Administrator) -> Response:
    """The database: its version and size, whether it has room, and what no clock has done in time, in seconds."""
    return answer(await who.engine.health())


@router.get("/api/openapi.json", include_in_schema=False)
async def openapi(request: Request, who: Anybody) -> Response:  # noqa: ARG001
    document: dict[str, Any] = request.app.openapi()
    return answer(document, headers={"Cache-Control": "max-age=300"})

"""What every route does before and after its own work: bounded time, bounded bodies, and creations that are made once.

A creation is marked by `@creates`. Asked for again with the same `Idempotency-Key`, it is answered as it was the first
time; the answer is kept in the transaction that made the thing.
"""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from mutirao.database.answer import Answered, Asked
from mutirao.errors import OperatorError, RequestError
from mutirao.model.name import suggest
from mutirao.server.body import check_line, read_body, read_json
from mutirao.server.options import ServerOptions
from mutirao.server.who import who_asks

KEY = "Idempotency-Key"
_LONGEST_KEY = 200
_KEPT_HEADERS = ("location", "etag", "link")
_CREATES, _SECRET, _STREAMS = "creates", "is_secret", "streams"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def creates(endpoint: Endpoint) -> Endpoint:
    """A route that makes something: once for each Idempotency-Key."""
    setattr(endpoint, _CREATES, True)
    return endpoint


def creates_secret(endpoint: Endpoint) -> Endpoint:
    """The same for one whose answer is shown once, and so is kept nowhere."""
    setattr(endpoint, _SECRET, True)
    return creates(endpoint)


def streams(endpoint: Endpoint) -> Endpoint:
    """A route that reads its body or writes its answer piece by piece, for as long as it takes."""
    setattr(endpoint, _STREAMS, True)
    return endpoint


def is_creation(route: APIRoute) -> bool:
    return hasattr(route.endpoint, _CREATES)


class Route(APIRoute):
    """A route of the API."""

    def get_route_handler(self) -> Handler:
        inner = super().get_route_handler()
        if self.path.startswith("/api/"):  # who asks for /health may put a word behind it, so that no proxy answers
            inner = _asked_rightly(self, inner)
        if hasattr(self.endpoint, _STREAMS):
            return _streamed(inner)
        return bounded(_once(self, inner) if is_creation(self) else inner)


def _asked_rightly(route: APIRoute, inner: Handler) -> Handler:
    """A parameter that the route does not have is refused: misspelt, it would be passed over, and something else be answered."""
    known = frozenset(_parameters(route.dependant))

    async def handle(request: Request) -> Response:
        for name in request.query_params:
            if name not in known:
                right = suggest(name[:_LONGEST_KEY], known) if known else "; there are none here"
                raise RequestError("wrong_call", f'there is no parameter "{name[:_LONGEST_KEY]}"{right}')
        return await inner(request)

    return handle


def _parameters(dependant: Dependant) -> Iterator[str]:
    for below in dependant.dependencies:
        yield from _parameters(below)
    for each in dependant.query_params:
        kind = each.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from kind.model_fields
        else:
            yield each.alias


def _streamed(inner: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        check_line(request)
        return await inner(request)

    return handle


def bounded(inner: Handler) -> Handler:
    """Answered within the time that the server has for it, and with a body that is not too large."""

    async def handle(request: Request) -> Response:
        options: ServerOptions = request.app.state.options
        check_line(request)
        try:
            async with asyncio.timeout(options.answer_within):
                read_json(request, await read_body(request, options.body_limit))
                return await inner(request)
        except TimeoutError as error:
            raise OperatorError("took_too_long", f"no answer within {options.answer_within:g} s") from error

    return handle


def _once(route: APIRoute, inner: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        key = request.headers.get(KEY)
        if key is None:
            return await inner(request)
        if not 1 <= len(key) <= _LONGEST_KEY or not key.isascii():
            raise RequestError("wrong_call", f"{KEY} has 1 to {_LONGEST_KEY} ASCII characters")
        who = await who_asks(request)
        body = hashlib.sha256(request.url.path.encode() + b"\n" + await request.body()).digest()
        return await _answer_once(route, inner, request, Asked(who.id, key, f"{request.method} {route.path}", body))

    return handle


async def _answer_once(route: APIRoute, inner: Handler, request: Request, asked: Asked) -> Response:
    engine = request.app.state.engine
    async with engine.together():
        known = await engine.answers.recall(asked)
        if known is not None:
            return Response(known.content, known.status, {**known.headers, "Idempotent-Replayed": "true"}, _JSON)
        response = await inner(request)
        content = None if hasattr(route.endpoint, _SECRET) else bytes(response.body)
        kept = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        await engine.answers.keep(asked, Answered(response.status_code, kept, content))
        return response


_JSON = "application/json"

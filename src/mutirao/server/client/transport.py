"""How the client asks: requests out, typed records or refusals back."""

import asyncio
import random
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import httpx
import msgspec

from mutirao.database.engine import DECODER
from mutirao.errors import FlowError, LeaseLost, MutiraoError, OperatorError, RequestError
from mutirao.model.value import ENCODER

T = TypeVar("T")

_SAFE = ("GET", "HEAD")
_TRIES = 5
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_FAMILIES: Mapping[str, type[MutiraoError]] = {"flow": FlowError, "operator": OperatorError, "request": RequestError}


class Transport:
    """One connection pool. Safe requests are tried again while the server or its database is away."""

    def __init__(
        self, url: str, *, token: str | None = None, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.AsyncClient(base_url=url, headers=headers, timeout=_TIMEOUT, transport=transport)

    async def get(self, kind: type[T], path: str, /, **query: Any) -> T:
        response = await self.ask("GET", path, query=query)
        return _read(kind, response)

    async def send(self, kind: type[T], method: str, path: str, body: Any = None, **more: Any) -> T:
        """Ask for a change; `key` makes it once, `seen` makes it only if nothing was changed since that revision."""
        return _read(kind, await self.ask(method, path, body=_body(method, body), **more))

    async def do(self, method: str, path: str, body: Any = None, **more: Any) -> None:
        await self.ask(method, path, body=_body(method, body), **more)

    async def pages(self, kind: type[T], path: str, /, **query: Any) -> AsyncIterator[T]:
        """All of a list, page by page."""
        cursor: str | None = None
        while True:
            found = (await self.ask("GET", path, query={**query, "cursor": cursor})).content
            page = DECODER.decode(found)
            for each in page["items"]:
                yield _convert(kind, each)
            cursor = page["next"]
            if cursor is None:
                return

    async def ask(  # noqa: PLR0913 all but two by name
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
        seen: int | None = None,
        content: AsyncIterable[bytes] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """The answer, or the refusal raised."""
        sent = dict(headers or {})
        if key is not None:
            sent["Idempotency-Key"] = key
        if seen is not None:
            sent["If-Match"] = f'"{seen}"'
        if body is not None:
            content, sent["Content-Type"] = ENCODER.encode(body), "application/json"
        request = self.http.build_request(
            method, path, params=_said(query or {}), content=content, headers=sent, timeout=_TIMEOUT
        )
        return await self._ask(request, is_safe=method in _SAFE or (key is not None and isinstance(content, bytes)))

    async def _ask(self, request: httpx.Request, *, is_safe: bool) -> httpx.Response:
        for left in reversed(range(_TRIES)):
            try:
                response = await self.http.send(request)
            except httpx.TransportError as error:
                if not (is_safe and left):
                    raise OperatorError(
                        "server_unreachable", f"{self.http.base_url} does not answer: {error}"
                    ) from error
                response = None
            if response is not None and not (
                is_safe and left and response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
            ):
                raise_refusal(response)
                return response
            await asyncio.sleep(_pause(response, _TRIES - left))
        raise AssertionError("the last try answers or raises")

    async def close(self) -> None:
        await self.http.aclose()


def _body(method: str, body: Any) -> Any:
    return {} if body is None and method != "DELETE" else body


def _pause(response: httpx.Response | None, tried: int) -> float:
    said = response.headers.get("Retry-After", "") if response is not None else ""
    seconds = float(said) if said.isdigit() else 0.1 * 2**tried
    return min(seconds, 5.0) * random.uniform(0.8, 1.2)  # noqa: S311 so that many do not come back at once


def raise_refusal(response: httpx.Response) -> None:
    """A refusal is the same error that the engine would have raised."""
    if response.is_success:
        return
    try:
        told = msgspec.json.decode(response.content)
        code, detail = str(told["code"]), str(told["detail"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        raise OperatorError("server_lost", f"the answer is no answer of ours: {response.status_code}") from None
    error = (LeaseLost if code == "lease_lost" else _FAMILIES.get(told.get("family"), RequestError))(code, detail)
    error.details = {name: value for name, value in told.items() if name not in ("code", "detail")}
    raise error


def _read(kind: type[T], response: httpx.Response) -> T:
    return _convert(kind, DECODER.decode(response.content))


def _convert(kind: type[T], value: Any) -> T:
    """Fields that a newer server tells and this program does not know are passed over."""
    return msgspec.convert(value, kind, strict=False)


def _said(query: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in query.items() if value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in said.items()}

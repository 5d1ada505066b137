"""Around every request: headers that keep browsers from harm, one line in the log, one count, and no traceback for anybody."""

import logging
import re
import secrets
import time
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mutirao.server.metrics import ServerMetrics
from mutirao.server.problem import internal_error

log = logging.getLogger("mutirao.server.access")

# A page that needs more says so itself.
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
SLASH = "\ufdd0"
"""Stands for a slash within a name, until the name is read: it is no character of any text."""
_UNKNOWN = "(none)"
_QUIET = ("/health", "/ready", "/metrics")


def whole_path(scope: Scope) -> str:
    """A name may have a slash, sent as %2F: the framework would take it for the end of the name."""
    raw: bytes = scope.get("raw_path") or b""
    if b"%2f" not in raw.lower():
        return str(scope["path"])
    return unquote(re.sub("%2f", quote(SLASH), raw.decode("latin-1"), flags=re.IGNORECASE))


class Guard:
    """An ASGI middleware."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0
        number = secrets.token_hex(8)
        scope = {**scope, "path": whole_path(scope), "state": {**(scope.get("state") or {}), "request": number}}

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                more = [(name, value) for name, value in _HEADERS.items() if name not in given]
                message = {**message, "headers": [*message["headers"], *more, (b"x-request-id", number.encode())]}
            await send(message)

        self._metrics.open += 1
        try:
            await self._app(scope, receive, guarded)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"], extra={"request": number})
            if status:
                raise  # half of it is sent: the connection must be cut
            await internal_error(number)(scope, receive, guarded)
        finally:
            self._metrics.open -= 1
            self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", _UNKNOWN)
        self._metrics.answered(scope["method"] if route != _UNKNOWN else "", route, status, seconds)
        state = scope["state"]
        extra = {
            "status": status,
            "ms": round(seconds * 1000, 1),
            "person": state.get("person"),
            "request": state["request"],
        }
        level = logging.DEBUG if route in _QUIET else logging.INFO
        log.log(level, "%s %s", scope["method"], scope["path"], extra=extra)

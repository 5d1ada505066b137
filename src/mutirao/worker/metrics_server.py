"""Serves /metrics and /healthz over HTTP, from threads: a loop that is held up is told of, not waited for.

It is for a network that is trusted, and so listens on this machine alone unless told otherwise.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as TooLate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeVar

from mutirao.errors import OperatorError
from mutirao.worker.metrics import Metrics

T = TypeVar("T")

_ANSWER_WITHIN = 10.0
_TEXT = "text/plain; charset=utf-8"


class MetricsServer:
    """Enter it to serve. With port 0 it takes a free one; `url` says which."""

    def __init__(self, metrics: Metrics, port: int, address: str = "127.0.0.1") -> None:
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        try:
            self._server = _Server((address, port), self._handler())
        except OSError as error:
            raise OperatorError(
                "port_unavailable",
                f"metrics cannot be served on {address}, port {port}: {error.strerror or error}; name another --metrics-port",
            ) from error
        except OverflowError as error:
            raise OperatorError("port_unavailable", f"there is no port {port}: a port is 0 to 65535") from error

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="mutirao-metrics", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        threading.Thread(target=self._server.shutdown, daemon=True).start()  # it would wait for who reads slowly
        self._server.server_close()

    def answer(self, path: str, accept: str) -> tuple[int, bytes, str]:
        """Status, body and kind of the body. Called in a thread of the request's own."""
        try:
            match path.partition("?")[0]:
                case "/metrics":
                    return 200, *self._on_loop(self._metrics.scrape(accept))
                case "/healthz":
                    problem = self._on_loop(self._metrics.problem())
                    return (200, b"ok\n", _TEXT) if problem is None else (503, f"{problem}\n".encode(), _TEXT)
                case _:
                    return 404, b"there is /metrics and /healthz\n", _TEXT
        except TooLate:
            return 503, f"the event loop has not answered for {_ANSWER_WITHIN:g} s\n".encode(), _TEXT
        except RuntimeError:  # the loop is closed
            return 503, b"it is stopping\n", _TEXT

    def _on_loop(self, asked: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(_ANSWER_WITHIN)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _ANSWER_WITHIN

            def do_GET(self) -> None:
                status, body, kind = server.answer(self.path, self.headers.get("Accept", ""))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the interface of the base class
                """A scrape is nothing to tell."""

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to tell either."""

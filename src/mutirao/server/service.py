"""The server as a program runs it: bound to its port first, stopped without cutting anybody off."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from mutirao.database.engine import Engine
from mutirao.errors import OperatorError
from mutirao.server.app import make_app
from mutirao.server.hub import Hub
from mutirao.server.options import ServerOptions

log = logging.getLogger(__name__)

# What runs may finish; streams are ended by ourselves.
_FINISH_WITHIN = 10
_WAITING_CONNECTIONS = 2048


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are heard by whoever runs us."""
        yield


class Server:
    """Serves one engine. With port 0 it takes a free one; `url` says which."""

    def __init__(self, engine: Engine, options: ServerOptions | None = None) -> None:
        self.options = options or ServerOptions()
        self._hub = Hub(engine)
        self.app: FastAPI = make_app(engine, self.options, self._hub)
        self._socket = _bound(self.options)
        config = uvicorn.Config(
            self.app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(self.options.proxies),
            forwarded_allow_ips=list(self.options.proxies),
            timeout_graceful_shutdown=_FINISH_WITHIN,
            backlog=_WAITING_CONNECTIONS,
            http="h11",
            ws="none",
        )
        self._uvicorn = _Uvicorn(config)

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def run(self) -> None:
        """Serve until `stop`."""
        listening = asyncio.create_task(self._hub.run())
        serving = asyncio.create_task(self._uvicorn.serve(sockets=[self._socket]))
        try:
            await asyncio.wait((listening, serving), return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                listening.result()  # raises what ended it
            await serving
        finally:
            self.stop()
            listening.cancel()
            await asyncio.gather(listening, serving, return_exceptions=True)
            self._socket.close()

    def stop(self) -> None:
        """Take no more; what runs may finish. Once more: at once."""
        self._hub.close()
        self._uvicorn.force_exit = self._uvicorn.should_exit
        self._uvicorn.should_exit = True


def _bound(options: ServerOptions) -> socket.socket:
    try:
        family = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0][0]
        # With its protocol named: asyncio sends at once only on such a one, else each answer waits for an acknowledgement, 40 ms.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((options.host, options.port))
        bound.listen(_WAITING_CONNECTIONS)  # whoever comes before we serve waits
    except OSError as error:
        raise OperatorError(
            "port_unavailable",
            f"the server cannot listen on {options.host}, port {options.port}: {error.strerror or error}; name another --port",
        ) from error
    return bound

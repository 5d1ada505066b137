"""A network that fails: a small proxy between everybody and PostgreSQL, which cuts, delays and half-opens connections.

    cut     both sides are reset, in the middle of whatever goes on
    unheard what the server answers next is swallowed, then both are reset: it is done, and nobody hears of it
    half    nothing gets through any more, in one direction or in both, and nobody is told; after some seconds it is
            reset, as a host does that finds its peer gone
    delay   what is sent arrives later, for a while

It listens on TCP and asks the server at its socket. What a fault is done to is chosen at random among open connections.
"""

import asyncio
import random
import socket
import struct
from collections import Counter
from pathlib import Path
from typing import cast

FAULTS = ("cut", "unheard", "half", "delay")

_RESET = struct.pack("ii", 1, 0)
_PATIENCE = 5.0


class _Side(asyncio.Protocol):
    """One end of a link: what comes in here goes out at the other end."""

    def __init__(self, link: "_Link") -> None:
        self.link = link
        self.transport: asyncio.Transport | None = None
        self.other: _Side
        self.is_mute = False
        self.resets_when_heard = False
        self.delay = 0.0
        self._last_due = 0.0
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        for data in self._early:
            self.transport.write(data)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        if self.resets_when_heard:
            self.link.reset()
        elif not self.is_mute:
            self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        # Never before what came earlier, also when the delay has ended meanwhile.
        due = max(now + self.delay, self._last_due + 1e-6)
        if due <= now:
            self.other.send(data)
        else:
            self._last_due = due
            loop.call_at(due, self.other.send, data)

    def send(self, data: bytes) -> None:
        if self.transport is None:
            self._early.append(data)
        elif not self.transport.is_closing():
            self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 the interface of the base class
        self.link.close()


class _Link:
    def __init__(self, proxy: "Proxy") -> None:
        self.proxy = proxy
        self.front, self.back = _Side(self), _Side(self)
        self.front.other, self.back.other = self.back, self.front
        self.is_closed = False

    async def connect(self, path: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await asyncio.get_running_loop().create_unix_connection(lambda: self.back, path)
        except (OSError, TimeoutError):
            self.close()

    def slow_down(self, delay: float) -> None:
        self.front.delay = self.back.delay = delay

    def close(self) -> None:
        """What was sent already still arrives."""
        self.is_closed = True
        self.proxy.links.discard(self)
        for side in (self.front, self.back):
            if side.transport is not None and not side.transport.is_closing():
                side.transport.close()

    def reset(self) -> None:
        self.is_closed = True
        self.proxy.links.discard(self)
        for side in (self.front, self.back):
            if side.transport is not None:
                if side is self.front:
                    side.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                side.transport.abort()


class Proxy:
    """Enter it to have it listening on a free port of this machine."""

    def __init__(self, server_socket: Path, chance: random.Random) -> None:
        self._path = str(server_socket)
        self._chance = chance
        self._server: asyncio.Server | None = None
        self._connecting: set[asyncio.Task[None]] = set()
        self.links: set[_Link] = set()
        self.faults: Counter[str] = Counter()

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.get_running_loop().create_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for link in list(self.links):
            link.reset()

    @property
    def port(self) -> int:
        assert self._server is not None  # noqa: S101 entered
        return int(self._server.sockets[0].getsockname()[1])

    def url(self, database: str) -> str:
        return f"postgresql://mutirao@127.0.0.1:{self.port}/{database}?sslmode=disable&gssencmode=disable"

    def do(self, fault: str) -> None:
        """One fault to some connection, if there is any."""
        if not self.links:
            return
        link = self._chance.choice(list(self.links))
        later = asyncio.get_running_loop().call_later
        match fault:
            case "cut":
                link.reset()
            case "unheard":
                link.back.resets_when_heard = True
            case "half":
                for side in self._chance.choice(([link.front], [link.back], [link.front, link.back])):
                    side.is_mute = True
                later(self._chance.uniform(0.5, 4.0), link.reset)
            case _:
                link.slow_down(self._chance.uniform(0.02, 0.5))
                later(self._chance.uniform(1.0, 5.0), link.slow_down, 0.0)
        self.faults[fault] += 1

    def _accept(self) -> _Side:
        link = _Link(self)
        self.links.add(link)
        task = asyncio.ensure_future(link.connect(self._path))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return link.front

"""A receiver of webhooks on loopback: a real HTTP server that answers as it is told, or not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

HANG = 0


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> dict[str, Any]:
        return dict(msgspec.json.decode(self.body))


@dataclass
class Receiver:
    """`answers` are given one after another, and the last of them for ever; HANG is to say nothing."""

    answers: list[int] = field(default_factory=lambda: [200])
    requests: list[Request] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    _gone: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.requests.append(Request(first.split()[1], headers, body))
        self.called.set()
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if status == HANG:
            await self._gone.wait()
        else:
            more = f"location: {self.url('/elsewhere')}\r\n" if status // 100 == 3 else ""
            writer.write(f"HTTP/1.1 {status} so\r\n{more}content-length: 0\r\n\r\n".encode())
            await writer.drain()
        writer.close()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Receiver"]:
        server = await asyncio.start_server(self._receive, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self._gone.set()
            server.close()
            await server.wait_closed()

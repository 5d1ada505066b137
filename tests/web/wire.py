"""Many requests at one moment, by plain sockets: what a comfortable client would cost is not in the measure."""

import asyncio
import json
import time
from typing import Any, NamedTuple

from site_kit import Site


class Answer(NamedTuple):
    status: int
    body: Any
    seconds: float


async def all_at_once(site: Site, line: str, tokens: list[str]) -> list[Answer]:
    """The same request by each of these; all are connected before the first is sent."""
    go = asyncio.Event()
    ready = asyncio.Barrier(len(tokens) + 1)
    asking = [asyncio.create_task(_ask(site, line, token, ready, go)) for token in tokens]
    await ready.wait()
    go.set()
    return list(await asyncio.gather(*asking))


async def _ask(site: Site, line: str, token: str, ready: asyncio.Barrier, go: asyncio.Event) -> Answer:
    host, _, port = site.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    heads = {
        "Host": host,
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Content-Length": "2",
    }
    request = "".join([f"{line} HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in heads.items()), "\r\n{}"])
    await ready.wait()
    await go.wait()
    began = time.perf_counter()
    writer.write(request.encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    body = json.loads(await reader.readexactly(length))
    seconds = time.perf_counter() - began
    writer.close()
    return Answer(int(head.split()[1]), body, seconds)

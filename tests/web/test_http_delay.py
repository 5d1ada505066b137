"""An answer goes out at once: it does not wait until the one before it is acknowledged, which takes 40 ms."""

import socket

from site_kit import Site, newest_site  # noqa: F401 gives the fixture


async def test_a_kept_connection_sends_without_delay(site18: Site) -> None:
    http = await site18.http()
    for _ in range(2):
        assert (await http.get("/health")).status_code == 200
    [kept] = site18.server._uvicorn.server_state.connections  # noqa: SLF001 no answer tells
    accepted = kept.transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1

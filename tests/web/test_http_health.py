"""Whether the server is well: probes, metrics, and a database that goes away and comes back."""

import os
import re
from pathlib import Path
from signal import SIGKILL

import pytest
from site_kit import Site, fresh_site, newest_site, serving  # noqa: F401 gives the fixtures

from mutirao.database.embedded import EmbeddedServer
from mutirao.database.engine import Engine
from mutirao.testing.database import TestServer


async def test_it_is_up_and_ready(site: Site) -> None:
    http = await site.http()
    for path in ("/health", "/ready"):
        answer = await http.get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        asked = await http.head(path)
        assert (asked.status_code, asked.content) == (200, b"")
        assert asked.headers["content-length"] == answer.headers["content-length"]


async def test_metrics_count_requests_by_route_and_status(site18: Site) -> None:
    http = await site18.http("clerk_1")
    for number in range(3):
        await http.get(f"/api/instances/{number + 1}")
    await http.get("/nothing")
    found = (await http.get("/metrics")).text
    route = 'method="GET",route="/api/instances/{instance}"'
    assert f'mutirao_http_requests_total{{{route},status="404"}} 3.0' in found
    assert f"mutirao_http_seconds_count{{{route}}} 3.0" in found
    assert 'route="(none)",status="404"} 1.0' in found
    assert "mutirao_http_streams 0.0" in found
    assert re.search(r'mutirao_database_up\{database=".*"\} 1.0', found)


async def test_metrics_are_for_this_machine_and_for_administrators(servers: dict[str, TestServer]) -> None:
    async with servers["pg18"].clone() as url, serving(url, proxies=("127.0.0.1",)) as site:
        assert (await (await site.http()).get("/metrics")).status_code == 401
        assert (await (await site.http("clerk_1")).get("/metrics")).status_code == 403
        assert (await (await site.http("boss")).get("/metrics")).status_code == 200


async def test_what_came_through_a_proxy_is_not_of_this_machine(site18: Site) -> None:
    http = await site18.http(headers={"X-Forwarded-For": "10.0.0.1"})
    assert (await http.get("/metrics")).status_code == 401


@pytest.mark.timeout(300)
async def test_a_database_that_is_killed_is_told_as_503_until_it_is_back(place: Path) -> None:
    with EmbeddedServer(place / "home") as server:
        server.ensure_database("mutirao")
        async with Engine(server.url(), upgrade=True):
            pass  # the schema
        async with serving(server.url()) as site:
            http = await site.http("clerk_1", timeout=60)
            assert (await http.get("/api/session")).status_code == 200
            os.kill(int((server.data / "postmaster.pid").read_text().split()[0]), SIGKILL)
            while (answer := await http.get("/api/session")).status_code == 200:
                pass  # a backend may outlive its postmaster by a moment
            assert answer.status_code == 503
            assert answer.json()["code"] in ("server_lost", "server_unreachable")
            assert answer.headers["retry-after"] == "1"
            assert (await http.get("/ready")).status_code == 503
            assert (await http.get("/health")).status_code == 200
            with EmbeddedServer(server.home):
                client = await site.client("clerk_1")
                assert (await client.sessions.me()).name == "clerk_1"  # it tries again by itself
                assert (await http.get("/ready")).status_code == 200
                assert await anext(client.hints())

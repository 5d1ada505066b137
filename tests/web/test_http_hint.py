"""Server-sent hints: what to read again, as it happens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from site_kit import Site, fresh_site, newest_site, refused, serving  # noqa: F401 gives the fixtures

from mutirao.server import stream
from mutirao.server.client import Client
from mutirao.server.hub import Hub, OpenStream
from mutirao.testing.database import TestServer


class Ear:
    """Hears the hints of a client, beside the test."""

    def __init__(self, client: Client, *instances: int) -> None:
        self._hints = client.hints(instances=instances)

    async def next(self) -> list[str]:
        async with asyncio.timeout(20):
            return await anext(self._hints)

    async def until(self, what: str) -> None:
        async with asyncio.timeout(20):
            while what not in await anext(self._hints):
                pass

    async def ends(self) -> None:
        async with asyncio.timeout(40):
            async for _ in self._hints:
                pass

    async def close(self) -> None:
        await self._hints.aclose()  # type: ignore[attr-defined]


@asynccontextmanager
async def listening(site: Site, person: str, *instances: int) -> AsyncIterator[Ear]:
    """Past the first hint, which says everything, and what came together with it."""
    ear = Ear(await site.client(person), *instances)
    first = await ear.next()
    assert first == sorted([*(f"instance/{each}" for each in instances), "messages", "worklist"])
    try:
        yield ear
    finally:
        await ear.close()


async def hint(site: Site, person: str | None = None, role: str | None = None) -> None:
    async with site.engine.connection() as connection:
        await connection.execute(
            "select mutirao.hint((select array_agg(id) from mutirao.person where name = %s),"
            " (select array_agg(id) from mutirao.role where name = %s))",
            [person, role],
        )


async def test_hints_reach_those_whom_they_concern(site: Site) -> None:
    async with listening(site, "clerk_1") as clerk, listening(site, "outsider") as outsider:
        await hint(site, role="clerk")
        await clerk.until("worklist")
        await hint(site, person="outsider")
        await outsider.until("messages")


async def test_whoever_joins_a_role_hears_of_it_from_then_on(site18: Site) -> None:
    async with listening(site18, "outsider") as ear:
        await site18.engine.roles.put(None, "clerk", ["outsider"])
        await hint(site18, person="outsider")
        await ear.until("worklist")
        await hint(site18, role="clerk")
        await ear.until("worklist")


async def test_a_watched_instance_is_told_of_when_it_moves(site18: Site) -> None:
    boss = await site18.client("boss")
    [instance] = await site18.engine.start_named("request", [{}])
    async with listening(site18, "boss", instance) as ear:
        await site18.engine.set(instance, {"city": "Olinda"})  # at once, before anybody has looked at it a second time
        await ear.until(f"instance/{instance}")
    assert await boss.instances.get(instance)
    async with refused("unknown_instance", 404):
        await anext((await site18.client("outsider")).hints(instances=[instance]))


async def test_a_watched_instance_is_told_of_when_somebody_says_something(site18: Site) -> None:
    [instance] = await site18.engine.start_named("request", [{}])
    other = await site18.client("clerk_2")
    async with listening(site18, "boss", instance) as ear:
        first = await other.comments.add(instance, "They will call back.")
        await ear.until(f"instance/{instance}")
        await other.comments.add(instance, "They have called.")
        await ear.until(f"instance/{instance}")
        await other.comments.remove(first)
        await ear.until(f"instance/{instance}")


async def test_a_stream_ends_with_its_session(site18: Site) -> None:
    client = await site18.browser("clerk_1")
    hints = client.hints()
    assert await anext(hints)
    await site18.engine.access.end_sessions(None, "clerk_1")
    await hint(site18, person="clerk_1")
    async with asyncio.timeout(20):
        assert [told async for told in hints] == []


async def test_streams_of_one_person_are_limited(servers: dict[str, TestServer]) -> None:
    async with (
        servers["pg18"].clone() as url,
        serving(url, streams_each=2) as site,
        listening(site, "clerk_1"),
        listening(site, "clerk_1"),
    ):
        async with refused("too_many_streams", 429):
            await anext((await site.client("clerk_1")).hints())
        async with listening(site, "clerk_2"):
            pass


async def test_a_server_that_stops_ends_its_streams(servers: dict[str, TestServer]) -> None:
    async with servers["pg18"].clone() as url, serving(url) as site, listening(site, "clerk_1") as ear:
        site.server.stop()
        await ear.ends()


async def test_many_hints_at_once_are_told_as_one(site18: Site) -> None:
    loop = asyncio.get_running_loop()
    async with listening(site18, "clerk_1") as ear:
        began = loop.time()
        for _ in range(200):
            await hint(site18, role="clerk")
        took = timedelta(seconds=loop.time() - began)
        heard = 0
        try:
            while True:
                async with asyncio.timeout(1):
                    await ear._hints.__anext__()  # noqa: SLF001
                heard += 1
        except TimeoutError:
            pass
        assert 1 <= heard <= took.total_seconds() / 0.25 + 3


async def test_a_reader_that_takes_nothing_is_dropped(site18: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_TAKE_WITHIN", 0.01)
    hub = Hub(site18.engine)

    async def still_in() -> bool:
        return True

    async def never(*_: object) -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(20):
        await stream.HintStream(hub, OpenStream(1), still_in)({}, never, never)
    assert not hub.streams


async def test_administrators_hear_that_instances_move_and_nobody_else_does(site18: Site) -> None:
    boss, clerk = await site18.client("boss"), await site18.client("clerk_1")
    async with refused("forbidden", 403):
        await anext(clerk.hints(everything=True))
    await site18.engine.persons.add(None, "deputy", roles=("administrator",))  # the last one would have to stay
    hints = boss.hints(everything=True)
    assert await anext(hints) == ["instances", "messages", "worklist"]
    async with listening(site18, "clerk_2") as other, asyncio.timeout(20):
        while (await anext(hints)) != ["instances"]:  # the first look at the trace tells once
            pass
        await site18.item(city="Recife")
        assert await anext(hints) == ["instances"]
        await hint(site18, person="clerk_2")
        assert "instances" not in await other.next()
        await site18.engine.roles.take(None, "administrator", ["boss"])
        await hint(site18, person="boss")
        async for _ in hints:  # it ends
            pass

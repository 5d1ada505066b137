"""A creation that is asked for twice with one key is made once."""

import asyncio
from datetime import timedelta

from psycopg import AsyncConnection
from site_kit import Site, fresh_site, newest_site, refused  # noqa: F401 gives the fixtures

from mutirao.testing import move_clock


async def test_the_same_key_and_body_are_answered_the_same(site: Site) -> None:
    http = await site.http("boss")
    key = {"Idempotency-Key": "one"}
    first = await http.post("/api/roles", json={"name": "guest"}, headers=key)
    again = await http.post("/api/roles", json={"name": "guest"}, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert first.headers["etag"] == again.headers["etag"]
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"


async def test_another_body_or_another_route_needs_another_key(site: Site) -> None:
    boss = await site.client("boss")
    await boss.roles.add("guest", key="one")
    async with refused("key_reused", 422, "POST /api/roles"):
        await boss.roles.add("visitor", key="one")
    async with refused("key_reused", 422):
        await boss.persons.add("guest", key="one")
    assert "visitor" not in {role.name for role in await boss.roles.all()}


async def test_a_key_is_ones_own(site18: Site) -> None:
    boss = await site18.client("boss")
    await boss.roles.add("guest", key="one")
    await boss.roles.put("administrator", ["clerk_1"])
    async with refused("name_taken", 409):
        await (await site18.client("clerk_1")).roles.add("guest", key="one")


async def test_a_refused_request_may_be_sent_again_with_its_key(site: Site) -> None:
    boss = await site.client("boss")
    async with refused("unknown_role", 422):
        await boss.persons.add("visitor_1", roles=["guest"], key="one")
    await boss.roles.add("guest")
    assert (await boss.persons.add("visitor_1", roles=["guest"], key="one")).roles == ["guest"]


async def test_of_many_at_once_one_is_made_and_the_others_wait_or_are_told_so(site: Site) -> None:
    http = await site.http("boss")
    asked = [
        http.post("/api/roles", json={"name": "guest"}, headers={"Idempotency-Key": "one"}, timeout=60)
        for _ in range(20)
    ]
    answers = await asyncio.gather(*asked)
    made = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.content for answer in made}) == 1
    assert {answer.json()["code"] for answer in answers if answer.status_code != 201} <= {"key_under_way"}


async def test_one_that_is_under_way_is_told_so(site18: Site) -> None:
    boss = await site18.client("boss")
    async with (
        await AsyncConnection.connect(site18.engine.url) as other,
        other.transaction(),
    ):
        number = (await boss.sessions.me()).person
        await other.execute("select mutirao.recall_answer(%s, 'one', 'x', '')", [number])
        http = await site18.http("boss")
        answer = await http.post("/api/roles", json={"name": "guest"}, headers={"Idempotency-Key": "one"})
        assert (answer.status_code, answer.json()["code"]) == (409, "key_under_way")
        assert answer.headers["retry-after"] == "1"


async def test_a_secret_is_not_kept_to_be_shown_again(site: Site) -> None:
    boss = await site.browser("boss")
    await boss.tokens.add("clerk_1", "nightly", key="one")
    async with refused("shown_once", 409):
        await boss.tokens.add("clerk_1", "nightly", key="one")
    assert len(await boss.tokens.all("clerk_1")) == 1


async def test_what_is_erased_is_not_answered_again(site: Site) -> None:
    clerk = await site.client("clerk_1")
    made = await clerk.instances.create("request", {"city": "of a person"}, key="one")
    other = await clerk.instances.create("request", {"city": "of another"}, key="two")
    await site.engine.cancel(made.id)
    async with site.engine.connection() as connection:
        await connection.execute("select mutirao.erase(array[%s]::bigint[], attributes => '{city}')", [made.id])
        found = await connection.execute("select convert_from(content, 'UTF8') from mutirao_secret.answer")
        assert "of a person" not in str(await found.fetchall())
    async with refused("shown_once", 409, "erased"):
        await clerk.instances.create("request", {"city": "of a person"}, key="one")
    assert (await clerk.instances.create("request", {"city": "of another"}, key="two")).id == other.id


async def test_after_a_day_an_answer_is_forgotten(site: Site) -> None:
    boss = await site.client("boss")
    await boss.roles.add("guest", key="one")
    await move_clock(site.engine, timedelta(hours=25))
    async with refused("name_taken", 409):
        await boss.roles.add("guest", key="one")
    await boss.roles.add("visitor", key="two")
    await move_clock(site.engine, timedelta(hours=25))
    async with site.engine.connection() as connection:
        await connection.execute("select mutirao.turn_clock(duty => 'answers')")
        found = await connection.execute("select count(*) from mutirao_secret.answer")
        assert await found.fetchone() == (0,)


async def test_a_key_is_short_and_plain(site18: Site) -> None:
    http = await site18.http("boss")
    for key in ("x" * 201, "é"):
        answer = await http.post("/api/roles", json={"name": "x"}, headers={b"Idempotency-Key": key.encode()})
        assert (answer.status_code, answer.json()["code"]) == (422, "wrong_call")

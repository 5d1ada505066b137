"""Persons and roles over HTTP: added, changed by those who have seen them, away, in and out of roles."""

import logging

import pytest
from site_kit import Site, fresh_site, newest_site, refused  # noqa: F401 gives the fixtures

from mutirao.database.person import Away, PersonFilter


async def test_a_change_of_a_person_names_what_it_has_seen(site: Site) -> None:
    boss, clerk = await site.client("boss"), await site.client("clerk_1")
    seen = (await boss.persons.get("clerk_1")).revision
    await clerk.persons.change("clerk_1", full_name="First Clerk", seen=seen)
    async with refused("changed_meanwhile", 412, "full name changed by clerk_1"):
        await boss.persons.change("clerk_1", full_name="Another", seen=seen)
    http = await site.http("boss")
    answer = await http.patch("/api/persons/clerk_1", json={"full_name": "Another", "revision": seen})
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_meanwhile")
    answer = await http.get("/api/persons/clerk_1")
    assert answer.json()["full_name"] == "First Clerk"
    assert answer.headers["etag"] == f'"{seen + 1}"'
    for wrong in ("x", '"1.5"', '"99999999999"'):
        answer = await http.patch("/api/persons/clerk_1", json={}, headers={"If-Match": wrong})
        assert answer.json()["code"] == "wrong_call"


async def test_somebody_is_away_with_a_substitute_and_back(site18: Site) -> None:
    clerk = await site18.client("clerk_1")
    assert (await clerk.persons.away("clerk_1", Away(substitute="clerk_2"))).substitute == "clerk_2"
    _, job = await site18.item()
    await clerk.worklist.delegate(job, "clerk_1")
    assert [each.instead_of async for each in (await site18.client("clerk_2")).worklist.all()] == ["clerk_1"]
    assert (await clerk.persons.away("clerk_1", None)).away_from is None
    async with refused("wrong_substitute", 422):
        await clerk.persons.away("clerk_1", Away(substitute="clerk_1"))


async def test_roles_have_members_and_go_when_nothing_needs_them(site: Site) -> None:
    boss = await site.client("boss")
    made = await boss.roles.add("guest", description="for a day")
    assert await boss.roles.put("guest", ["outsider", "clerk_1"]) == 2
    assert [each.name async for each in boss.persons.all(PersonFilter(role="guest"), limit=1)] == [
        "clerk_1",
        "outsider",
    ]
    assert await boss.roles.take("guest", ["outsider"]) == 1
    async with refused("changed_meanwhile", 412):
        await boss.roles.remove("guest", seen=made.revision)
    assert (await boss.roles.change("guest", name="visitor")).name == "visitor"
    async with refused("role_used", 409):
        await boss.roles.remove("clerk")
    async with refused("last_administrator", 409):
        await boss.persons.disable("boss")


async def test_a_disabled_person_is_out_at_once(site18: Site) -> None:
    boss, clerk = await site18.client("boss"), await site18.client("clerk_1")
    await boss.persons.disable("clerk_1")
    async with refused("not_signed_in", 401):
        await clerk.sessions.me()


async def test_a_line_of_the_log_says_who_asked_what(site18: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mutirao.server.access")
    http = await site18.http("clerk_1")
    await http.get("/api/persons?search=secret")
    [line] = [record for record in caplog.records if record.name == "mutirao.server.access"]
    assert line.getMessage() == "GET /api/persons"
    assert (vars(line)["person"], vars(line)["status"]) == ("clerk_1", 200)

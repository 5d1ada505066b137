"""Signing in by cookie, and what keeps other pages from using it."""

import httpx
from served import PASSWORD
from site_kit import Site, fresh_site, newest_site, refused  # noqa: F401 gives the fixtures

from mutirao.people import set_password


async def test_a_person_signs_in_and_out(site: Site) -> None:
    client = await site.browser("clerk_1")
    me = await client.sessions.me()
    assert (me.name, me.roles, me.is_administrator) == ("clerk_1", ["clerk"], False)
    await client.sessions.sign_out()
    async with refused("not_signed_in", 401):
        await client.sessions.me()


async def test_the_cookie_is_hidden_and_for_this_site(site18: Site) -> None:
    await set_password(site18.engine, None, "clerk_1", PASSWORD)
    http = await site18.http()
    answer = await http.post("/api/session", json={"name": "clerk_1", "password": PASSWORD})
    session, csrf = answer.headers.get_list("set-cookie")
    assert session.startswith("mutirao_session=")
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(session.split("; "))
    assert csrf == f"mutirao_csrf={answer.json()['csrf']}; Path=/; SameSite=lax"
    assert answer.headers["cache-control"] == "no-store"


async def test_by_https_the_cookie_is_for_this_host_alone(site18: Site) -> None:
    await set_password(site18.engine, None, "clerk_1", PASSWORD)
    transport = httpx.ASGITransport(site18.server.app)
    async with httpx.AsyncClient(transport=transport, base_url="https://work.example.org") as http:
        answer = await http.post("/api/session", json={"name": "clerk_1", "password": PASSWORD})
        assert answer.headers.get_list("set-cookie")[0].startswith("__Host-mutirao_session=")
        assert all("Secure" in cookie for cookie in answer.headers.get_list("set-cookie"))
        assert (await http.get("/api/session")).json()["name"] == "clerk_1"


async def test_a_change_without_the_token_of_the_page_is_refused(site18: Site) -> None:
    client = await site18.browser("clerk_1")
    http = client.transport.http
    own = http.headers.pop("X-CSRF-Token")
    other = (await (await site18.browser("clerk_2")).sessions.me()).csrf or ""
    for wrong in ({}, {"X-CSRF-Token": "x"}, {"X-CSRF-Token": other}):
        answer = await http.patch("/api/persons/clerk_1", json={"full_name": "Somebody"}, headers=wrong)
        assert (answer.status_code, answer.json()["code"]) == (403, "csrf_missing")
    assert (await client.persons.get("clerk_1")).full_name is None
    answer = await http.patch("/api/persons/clerk_1", json={"full_name": "First"}, headers={"X-CSRF-Token": own})
    assert answer.json()["full_name"] == "First"


async def test_a_change_from_another_origin_is_refused(site18: Site) -> None:
    client = await site18.browser("clerk_1")
    for headers in ({"Origin": "https://evil.example.org"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await client.transport.http.patch("/api/persons/clerk_1", json={}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "wrong_origin")
    answer = await client.transport.http.patch("/api/persons/clerk_1", json={}, headers={"Origin": site18.url})
    assert answer.status_code == 200
    http = await site18.http()
    answer = await http.post(
        "/api/session", json={"name": "a", "password": "b"}, headers={"Origin": "https://evil.example"}
    )
    assert answer.json()["code"] == "wrong_origin"


async def test_after_too_many_attempts_there_is_a_time_to_wait(site: Site) -> None:
    http = await site.http()
    wrong = {"name": "clerk_1", "password": "not this one"}
    first = [await http.post("/api/session", json=wrong) for _ in range(5)]
    assert {(answer.status_code, answer.json()["code"]) for answer in first} == {(401, "wrong_credentials")}
    answer = await http.post("/api/session", json=wrong)
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_attempts")
    assert 1 <= int(answer.headers["retry-after"]) <= 900


async def test_a_forged_an_expired_and_a_revoked_token_let_nobody_in(site: Site) -> None:
    boss = await site.browser("boss")
    made = await boss.tokens.add("clerk_1", "nightly")
    for wrong in ("x", made.secret[:-1] + "x", "é" * 10, made.secret * 100):
        http = await site.http(headers={"Authorization": f"Bearer {wrong}".encode()})
        answer = await http.get("/api/session")
        assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    http = await site.http(headers={"Authorization": f"Bearer {made.secret}"})
    assert (await http.get("/api/session")).json()["name"] == "clerk_1"
    await boss.tokens.revoke("clerk_1", "nightly")
    assert (await http.get("/api/session")).status_code == 401
    async with refused("unknown_token", 404):
        await boss.tokens.revoke("clerk_1", "nightly")


async def test_a_token_makes_neither_tokens_nor_passwords(site: Site) -> None:
    boss, clerk, person = await site.client("boss"), await site.client("clerk_1"), await site.browser("clerk_1")
    for asked in (
        boss.tokens.add("boss", "another"),
        boss.tokens.add("clerk_1", "another"),
        clerk.tokens.add("clerk_1", "another"),
        boss.sessions.make_password("clerk_1"),
        boss.sessions.set_password("clerk_2", "a very good password"),
    ):
        async with refused("forbidden", 403, "not made by a token"):
            await asked
    made = await person.tokens.add("clerk_1", "nightly")
    await clerk.tokens.revoke("clerk_1", made.name)  # to have fewer is never wrong


async def test_a_person_sees_to_their_own_sessions_tokens_and_password_only(site: Site) -> None:
    client = await site.browser("clerk_1")
    second = await site.browser("clerk_1")  # sets the password anew, so the first has ended
    async with refused("not_signed_in", 401):
        await client.sessions.me()
    await second.sessions.change_password(PASSWORD, "another good one")
    assert len(await second.sessions.all("clerk_1")) == 1
    for asked in (
        second.sessions.all("clerk_2"),
        second.sessions.end_all("boss"),
        second.sessions.set_password("boss", "a very good password"),
        second.sessions.make_password("clerk_2"),
        second.tokens.all("boss"),
        second.tokens.add("boss", "mine"),
    ):
        async with refused("forbidden", 403):
            await asked
    assert await second.sessions.end_all("clerk_1", but_here=True) == 0
    assert await second.sessions.end_all("clerk_1") == 1
    async with refused("not_signed_in", 401):
        await second.sessions.me()

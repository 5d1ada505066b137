"""Sessions: who comes in is known by one, it ends in many ways, and it is nobody else's business."""

import asyncio
from datetime import datetime, timedelta
from time import perf_counter

from door import PASSWORD, WRONG, count, fail, quick_hashing, somebody  # noqa: F401 gives the fixture `clerk`, and quick hashing
from office import fresh_office, move, one, refused, rows  # noqa: F401 gives the fixture `office`

from mutirao.database.engine import Engine
from mutirao.people import (
    add_token,
    authenticate_session,
    authenticate_token,
    reset_password,
    set_password,
    sign_in,
    sign_out,
)


async def test_who_signs_in_is_known_by_the_session(office: Engine, clerk: int) -> None:
    came = await sign_in(office, "clerk_1", PASSWORD, address="192.0.2.1", agent="a browser")
    who = await authenticate_session(office, came.secret)
    assert who == came.identity
    assert (who.person, who.name, who.roles, who.is_administrator, who.token) == (
        clerk,
        "clerk_1",
        ("clerk",),
        False,
        None,
    )
    assert (await office.persons.get(None, clerk)).here
    [session] = await office.access.sessions(clerk, clerk)
    assert (session.id, session.address, session.agent) == (who.session, "192.0.2.1", "a browser")
    await office.roles.put(None, "administrator", [clerk])
    assert (await authenticate_session(office, came.secret)).is_administrator


async def test_a_name_may_be_typed_with_capital_letters(office: Engine, clerk: int) -> None:
    who = (await sign_in(office, "Clerk_1", PASSWORD)).identity
    assert (who.person, who.name) == (clerk, "clerk_1")


async def test_nothing_secret_is_kept_as_it_is(office: Engine, clerk: int) -> None:
    came = await sign_in(office, "clerk_1", PASSWORD)
    token = await add_token(office, clerk, clerk, "printer")
    assert came.identity.csrf not in (None, came.secret)
    assert token.secret.startswith("mut_")
    kept = str(
        await rows(
            office, "select s::text from mutirao_secret.session s union all select t::text from mutirao_secret.token t"
        )
    )
    kept += str(await rows(office, "select p::text from mutirao_secret.password p"))
    assert "$argon2id$" in kept
    for secret in (PASSWORD, came.secret, token.secret, came.identity.csrf or ""):
        assert secret not in kept
        assert secret.encode().hex() not in kept


async def test_a_session_ends_when_nobody_uses_it(office: Engine, clerk: int) -> None:
    assert clerk
    came = await sign_in(office, "clerk_1", PASSWORD)
    for _ in range(3):
        await move(office, timedelta(hours=11))
        await authenticate_session(office, came.secret)
    await move(office, timedelta(hours=12, minutes=1))
    async with refused("not_signed_in", "sign in"):
        await authenticate_session(office, came.secret)
    assert await office.access.sessions(None, "clerk_1") == []


async def test_a_session_ends_after_a_month_however_much_it_is_used(office: Engine, clerk: int) -> None:
    assert clerk
    came = await sign_in(office, "clerk_1", PASSWORD)
    for _ in range(72):
        await move(office, timedelta(hours=10))
        if await one(office, "select mutirao.now() < made_at + interval '30 days' from mutirao_secret.session"):
            await authenticate_session(office, came.secret)
    async with refused("not_signed_in"):
        await authenticate_session(office, came.secret)


async def test_how_long_sessions_last_is_a_setting(office: Engine, clerk: int) -> None:
    assert clerk
    await rows(office, "update mutirao.setting set value = '0.5' where name = 'session_idle_hours' returning 1")
    came = await sign_in(office, "clerk_1", PASSWORD)
    await move(office, timedelta(minutes=29))
    await authenticate_session(office, came.secret)
    await move(office, timedelta(minutes=31))
    async with refused("not_signed_in"):
        await authenticate_session(office, came.secret)


async def test_being_seen_is_written_once_a_minute(office: Engine, clerk: int) -> None:
    came = await sign_in(office, "clerk_1", PASSWORD)
    first = (await office.persons.get(None, clerk)).seen_at
    await move(office, timedelta(seconds=50))
    await authenticate_session(office, came.secret)
    assert (await office.persons.get(None, clerk)).seen_at == first
    await move(office, timedelta(seconds=20))
    await authenticate_session(office, came.secret)
    seen = (await office.persons.get(None, clerk)).seen_at
    assert seen is not None
    assert first is not None
    assert seen > first
    [session] = await office.access.sessions(clerk, clerk)
    assert session.seen_at == seen


async def test_a_request_does_not_wait_for_whoever_changes_the_person(office: Engine, clerk: int) -> None:
    came = await sign_in(office, "clerk_1", PASSWORD)
    await move(office, timedelta(minutes=2))
    async with office.connection() as busy, busy.transaction():
        await busy.execute("select from mutirao.person where id = %s for update", [clerk])
        await asyncio.wait_for(authenticate_session(office, came.secret), 10)


async def test_who_signs_out_is_not_here_any_more(office: Engine, clerk: int) -> None:
    here, there = [await sign_in(office, "clerk_1", PASSWORD) for _ in range(2)]
    await sign_out(office, here.identity)
    async with refused("not_signed_in"):
        await authenticate_session(office, here.secret)
    assert (await office.persons.get(None, clerk)).here
    await sign_out(office, there.identity)
    assert not (await office.persons.get(None, clerk)).here
    async with refused("unknown_session"):
        await sign_out(office, there.identity)
    await sign_in(office, "clerk_1", PASSWORD)
    assert (await office.persons.get(None, clerk)).here


async def test_signing_out_everywhere_may_leave_the_session_one_is_in(office: Engine, clerk: int) -> None:
    here, *others = [await sign_in(office, "clerk_1", PASSWORD) for _ in range(3)]
    assert await office.access.end_sessions(clerk, clerk, but=here.identity.session) == 2
    await authenticate_session(office, here.secret)
    for each in others:
        async with refused("not_signed_in"):
            await authenticate_session(office, each.secret)
    assert await office.access.end_sessions(clerk, clerk) == 1


async def test_sessions_and_tokens_of_others_are_an_administrators_business(office: Engine, clerk: int) -> None:
    came = await sign_in(office, "clerk_1", PASSWORD)
    assert came.identity.session
    other = (await office.persons.add(None, "clerk_2")).id
    head_clerk = (await office.persons.add(None, "head_clerk", roles=["administrator"])).id
    for attempt in (
        office.access.sessions(other, clerk),
        office.access.end_sessions(other, clerk),
        office.access.end_session(other, clerk, came.identity.session),
        office.access.tokens(other, clerk),
        office.access.revoke_token(other, clerk, "printer"),
        add_token(office, other, clerk, "printer"),
        set_password(office, other, clerk, WRONG),
        reset_password(office, other, "clerk_1"),
    ):
        async with refused("forbidden"):
            await attempt
    async with refused("unknown_session"):
        await office.access.end_session(other, other, came.identity.session)
    assert len(await office.access.sessions(head_clerk, "clerk_1")) == 1
    await reset_password(office, head_clerk, "clerk_1")
    async with refused("not_signed_in"):
        await authenticate_session(office, came.secret)


async def test_disabling_ends_sessions_and_tokens(office: Engine, clerk: int) -> None:
    came = await sign_in(office, "clerk_1", PASSWORD)
    token = await add_token(office, clerk, clerk, "printer")
    await office.persons.disable(None, clerk)
    await office.persons.enable(None, clerk)
    async with refused("not_signed_in"):
        await authenticate_session(office, came.secret)
    async with refused("not_signed_in"):
        await authenticate_token(office, token.secret)
    await sign_in(office, "clerk_1", PASSWORD)


async def test_a_clock_forgets_what_is_over(office: Engine, clerk: int) -> None:
    now: datetime = await one(office, "select mutirao.now()")
    tick = "select (done ->> 'access')::int from mutirao.turn_clock(duty => 'access')"
    await add_token(office, clerk, clerk, "short", expires_at=now + timedelta(hours=1))
    await add_token(office, clerk, clerk, "long")
    await fail(office, "nobody", times=2, address="192.0.2.1")
    await sign_in(office, "clerk_1", PASSWORD)
    assert await one(office, tick) == 0
    await move(office, timedelta(minutes=15))
    assert await one(office, tick) == 4
    await move(office, timedelta(hours=12))
    assert await one(office, tick) == 1
    assert [await count(office, table) for table in ("attempt", "session", "token")] == [1, 0, 2]
    await move(office, timedelta(days=31))
    assert await one(office, tick) == 1
    await move(office, timedelta(days=30))
    assert await one(office, tick) == 1
    assert await count(office, "attempt") == 0
    assert [each.name for each in await office.access.tokens(None, clerk)] == ["long"]


async def test_authenticating_takes_less_than_a_millisecond(office: Engine, clerk: int) -> None:
    await rows(
        office,
        "insert into mutirao_secret.session (person, hash, made_at, seen_at)"
        " select %s, sha256(n::text::bytea), mutirao.now(), mutirao.now() from generate_series(1, 20000) n returning 1",
        clerk,
    )
    query = b"select from mutirao.authenticate('session', sha256(%s::text::bytea))"
    fastest = 1.0
    async with office.connection() as connection:
        for number in range(1, 300):
            began = perf_counter()
            await connection.execute(query, [number], prepare=True)
            fastest = min(fastest, perf_counter() - began)
    assert fastest < 0.001

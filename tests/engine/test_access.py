"""Coming in: passwords, failed attempts, sessions that end, tokens; and the first administrator."""

import asyncio
from datetime import datetime, timedelta
from statistics import median
from time import perf_counter

import pytest
from argon2 import PasswordHasher
from office import fresh_office, move, one, refused, rows  # noqa: F401 gives the fixture `office`

from mutirao.database.engine import Engine
from mutirao.errors import TooManyAttempts
from mutirao.people import (
    add_token,
    authenticate_session,
    authenticate_token,
    change_password,
    first_administrator,
    password,
    reset_password,
    set_password,
    sign_in,
    sign_out,
)

PASSWORD = "correct horse battery"
WRONG = "incorrect horse battery"
QUARTER = timedelta(minutes=15)


@pytest.fixture(autouse=True)
def _quick_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same argon2id with the smallest parameters: what is slow by intention would be slow in forty tests."""
    monkeypatch.setattr(password, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


@pytest.fixture(name="clerk")
async def somebody(office: Engine) -> int:
    """A clerk who can sign in."""
    made = await office.persons.add(None, "clerk_1", roles=["clerk"])
    await set_password(office, None, "clerk_1", PASSWORD)
    return made.id


async def count(office: Engine, table: str) -> int:
    return int(await one(office, f"select count(*) from mutirao_secret.{table}"))


async def fail(office: Engine, name: str, *, times: int, address: str | None = None) -> None:
    for _ in range(times):
        async with refused("wrong_credentials"):
            await sign_in(office, name, WRONG, address=address)


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


@pytest.mark.parametrize("name", ["clerk_1", "nobody", "disabled", "no_password", "x" * 500, "nul\x00", "\ud800"])
async def test_a_wrong_name_and_a_wrong_password_are_told_alike(office: Engine, clerk: int, name: str) -> None:
    assert clerk
    for other in ("disabled", "no_password"):
        await office.persons.add(None, other)
    await set_password(office, None, "disabled", PASSWORD)
    await office.persons.disable(None, "disabled")
    word = WRONG if name == "clerk_1" else PASSWORD
    async with refused("wrong_credentials", "name and password do not go together"):
        await sign_in(office, name, word)
    assert await count(office, "session") == 0


async def test_a_name_that_is_not_there_takes_as_long_as_one_that_is(
    office: Engine, clerk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    password._nobodys.cache_clear()  # noqa: SLF001 it was hashed with the small parameters
    await set_password(office, None, clerk, PASSWORD)
    assert not PasswordHasher().check_needs_rehash(await one(office, "select hash from mutirao_secret.password"))

    async def typical(name: str) -> float:
        taken = []
        for number in range(4):
            began = perf_counter()
            await fail(office, f"{name}{number}" if name == "nobody" else name, times=1)
            taken.append(perf_counter() - began)
        return median(taken)

    assert 0.3 < await typical("nobody") / await typical("clerk_1") < 3


@pytest.mark.parametrize("word", ["", "too short", "x" * 1001, "CLERK_1-CLERK"])
async def test_a_weak_password_is_refused(office: Engine, word: str) -> None:
    await office.persons.add(None, "clerk_1-clerk")
    async with refused("weak_password"):
        await set_password(office, None, "clerk_1-clerk", word)
    assert await count(office, "password") == 0


@pytest.mark.parametrize(
    "word",
    ["x" * 10, "y" * 1000, "ção é longa o bastante", "日本語のパスワードです", "with \x00 in it", "' or true --"],
)
async def test_any_other_password_works(office: Engine, clerk: int, word: str) -> None:
    await set_password(office, None, clerk, word)
    assert (await sign_in(office, "clerk_1", word)).identity.person == clerk


async def test_an_accent_may_be_typed_in_two_ways(office: Engine, clerk: int) -> None:
    await set_password(office, None, clerk, "ma\u00e7\u00e3 verde")
    await sign_in(office, "clerk_1", "mac\u0327a\u0303 verde")


async def test_five_failures_of_a_name_in_a_quarter_of_an_hour_are_enough(office: Engine, clerk: int) -> None:
    assert clerk
    await fail(office, "clerk_1", times=4)
    await move(office, timedelta(minutes=5))
    await fail(office, "clerk_1", times=1)
    now: datetime = await one(office, "select mutirao.now()")
    with pytest.raises(TooManyAttempts) as caught:
        await sign_in(office, "clerk_1", PASSWORD)
    assert timedelta(minutes=9) < caught.value.retry_at - now < timedelta(minutes=10, seconds=1)
    assert f"{caught.value.retry_at:%H:%M}" in caught.value.message
    await move(office, timedelta(minutes=10))
    await sign_in(office, "clerk_1", PASSWORD)


async def test_who_guesses_at_a_name_does_not_shut_its_person_out(office: Engine, clerk: int) -> None:
    """From one address five are enough; the person, at their own, comes in all the while."""
    assert clerk
    for quarter in range(3):
        await fail(office, "clerk_1", times=5, address="192.0.2.66")
        async with refused("too_many_attempts"):
            await sign_in(office, "clerk_1", PASSWORD, address="192.0.2.66")
        await sign_in(office, "clerk_1", PASSWORD, address=f"192.0.2.{quarter}")
        await move(office, timedelta(minutes=15, seconds=1))


async def test_a_name_that_is_guessed_at_from_everywhere_is_shut_but_where_its_person_is_known(
    office: Engine, clerk: int
) -> None:
    assert clerk
    await sign_in(office, "clerk_1", PASSWORD, address="192.0.2.1")
    await move(office, timedelta(days=20))
    for number in range(40):
        await fail(office, "clerk_1", times=5, address=f"198.51.100.{number}")
    for address in ("198.51.100.99", "192.0.2.2"):
        async with refused("too_many_attempts"):
            await sign_in(office, "clerk_1", PASSWORD, address=address)
    await sign_in(office, "clerk_1", PASSWORD, address="192.0.2.1")
    await fail(office, "clerk_1", times=5, address="192.0.2.1")  # who sits there may not guess for ever either
    async with refused("too_many_attempts"):
        await sign_in(office, "clerk_1", PASSWORD, address="192.0.2.1")
    await set_password(office, None, clerk, PASSWORD)
    await sign_in(office, "clerk_1", PASSWORD, address="192.0.2.2")


async def test_names_that_are_not_there_are_counted_too(office: Engine) -> None:
    await fail(office, "nobody", times=5)
    async with refused("too_many_attempts"):
        await sign_in(office, "nobody", WRONG)


async def test_who_signs_in_is_forgiven(office: Engine, clerk: int) -> None:
    assert clerk
    for _ in range(3):
        await fail(office, "clerk_1", times=4)
        await sign_in(office, "clerk_1", PASSWORD)
    await fail(office, "clerk_1", times=5)
    await set_password(office, None, "clerk_1", PASSWORD)
    await sign_in(office, "clerk_1", PASSWORD)


async def test_twenty_failures_of_an_address_are_enough_and_keep_out_no_other(office: Engine, clerk: int) -> None:
    assert clerk
    for number in range(4):
        await fail(office, f"nobody_{number}", times=4, address="192.0.2.1")
    await sign_in(office, "clerk_1", PASSWORD, address="192.0.2.1")  # is no failure, and forgives no other
    await fail(office, "nobody_5", times=4, address="192.0.2.1")
    for _ in range(6):
        async with refused("too_many_attempts"):
            await sign_in(office, "clerk_1", WRONG, address="192.0.2.1")
    await sign_in(office, "clerk_1", PASSWORD, address="192.0.2.2")


async def test_the_addresses_of_one_network_are_one(office: Engine) -> None:
    for number in range(20):
        await fail(office, f"nobody_{number}", times=1, address=f"2001:db8:1:2::{number:x}")
    async with refused("too_many_attempts"):
        await sign_in(office, "nobody", WRONG, address="2001:db8:1:2:ffff::1")
    await fail(office, "nobody", times=1, address="2001:db8:1:3::1")


async def test_an_ipv4_address_is_one_however_it_is_written(office: Engine) -> None:
    for number in range(10):
        await fail(office, f"nobody_{number}", times=1, address="192.0.2.1")
        await fail(office, f"nobody_{number}", times=1, address="::ffff:192.0.2.1")
    async with refused("too_many_attempts"):
        await sign_in(office, "nobody", WRONG, address="192.0.2.1")
    await fail(office, "nobody", times=1, address="::ffff:192.0.2.2")


async def test_of_many_who_try_at_once_no_more_are_let_through(office: Engine, clerk: int) -> None:
    assert clerk
    tried = await asyncio.gather(*(sign_in(office, "clerk_1", WRONG) for _ in range(20)), return_exceptions=True)
    codes = [getattr(each, "code", None) for each in tried]
    assert sorted(codes) == ["too_many_attempts"] * 15 + ["wrong_credentials"] * 5  # type: ignore[type-var]


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


async def test_changing_a_password_ends_all_other_sessions_and_no_token(office: Engine, clerk: int) -> None:
    here, there = [await sign_in(office, "clerk_1", PASSWORD) for _ in range(2)]
    token = await add_token(office, clerk, clerk, "printer")
    async with refused("wrong_credentials"):
        await change_password(office, here.identity, WRONG, "another long password")
    async with refused("weak_password"):
        await change_password(office, here.identity, PASSWORD, "short")
    await change_password(office, here.identity, PASSWORD, "another long password")
    await authenticate_session(office, here.secret)
    await authenticate_token(office, token.secret)
    async with refused("not_signed_in"):
        await authenticate_session(office, there.secret)
    async with refused("wrong_credentials"):
        await sign_in(office, "clerk_1", PASSWORD)
    await sign_in(office, "clerk_1", "another long password")


async def test_nobody_changes_their_own_password_without_the_old_one(office: Engine, clerk: int) -> None:
    await office.roles.put(None, "administrator", [clerk])
    for attempt in (set_password(office, clerk, clerk, WRONG), reset_password(office, clerk, "clerk_1")):
        async with refused("forbidden", "with the old one in hand"):
            await attempt
    came = await sign_in(office, "clerk_1", PASSWORD)
    await office.persons.change(None, clerk, {"name": "clerk_2"})
    await office.persons.add(None, "clerk_1")
    await set_password(office, None, "clerk_1", WRONG)
    async with refused("wrong_credentials"):
        await change_password(office, came.identity, WRONG, "another long password")


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


async def test_a_password_hashed_by_yesterdays_parameters_is_hashed_anew(office: Engine, clerk: int) -> None:
    yesterdays = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1).hash(PASSWORD)
    await one(office, "select mutirao.set_password(null, %s, %s)", clerk, yesterdays)
    await sign_in(office, "clerk_1", PASSWORD)
    anew = await one(office, "select hash from mutirao_secret.password")
    assert "m=8,t=1" in anew
    await sign_in(office, "clerk_1", PASSWORD)
    assert await one(office, "select hash from mutirao_secret.password") == anew


async def test_a_token_is_named_used_and_revoked(office: Engine, clerk: int) -> None:
    token = await add_token(office, clerk, "clerk_1", "the printer's")
    who = await authenticate_token(office, token.secret)
    assert (who.person, who.session, who.token, who.csrf) == (clerk, None, token.id, None)
    [kept] = await office.access.tokens(clerk, clerk)
    assert (kept.name, kept.made_by, kept.expires_at) == ("the printer's", "clerk_1", None)
    assert kept.used_at is not None
    assert (await office.persons.get(None, clerk)).here
    async with refused("name_taken"):
        await add_token(office, clerk, clerk, "the printer's")
    async with refused("unknown_token", "there is the printer's"):
        await office.access.revoke_token(clerk, clerk, "the scanner's")
    await office.access.revoke_token(clerk, clerk, "the printer's")
    async with refused("not_signed_in", "no such token"):
        await authenticate_token(office, token.secret)


async def test_a_token_expires(office: Engine, clerk: int) -> None:
    now: datetime = await one(office, "select mutirao.now()")
    async with refused("wrong_call", "expired already"):
        await add_token(office, clerk, clerk, "printer", expires_at=now)
    token = await add_token(office, clerk, clerk, "printer", expires_at=now + timedelta(days=1))
    await authenticate_token(office, token.secret)
    await move(office, timedelta(days=1))
    async with refused("not_signed_in"):
        await authenticate_token(office, token.secret)


@pytest.mark.parametrize("secret", ["", "mut_", "x" * 100_000, "nul\x00", "\ud800", "' or true --"])
async def test_a_forged_secret_is_nobodys(office: Engine, clerk: int, secret: str) -> None:
    token = await add_token(office, clerk, clerk, "printer")
    came = await sign_in(office, "clerk_1", PASSWORD)
    for authenticate in (authenticate_session, authenticate_token):
        async with refused("not_signed_in"):
            await authenticate(office, secret)
    async with refused("not_signed_in"):
        await authenticate_session(office, token.secret)
    async with refused("not_signed_in"):
        await authenticate_token(office, came.secret)


async def test_a_clock_forgets_what_is_over(office: Engine, clerk: int) -> None:
    now: datetime = await one(office, "select mutirao.now()")
    tick = "select (done ->> 'access')::int from mutirao.turn_clock(duty => 'access')"
    await add_token(office, clerk, clerk, "short", expires_at=now + timedelta(hours=1))
    await add_token(office, clerk, clerk, "long")
    await fail(office, "nobody", times=2, address="192.0.2.1")
    await sign_in(office, "clerk_1", PASSWORD)
    assert await one(office, tick) == 0
    await move(office, QUARTER)
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


async def test_the_first_administrator_is_made_once_however_many_start(office: Engine) -> None:
    made = [each for each in await asyncio.gather(*(first_administrator(office) for _ in range(20))) if each]
    [first] = made
    who = (await sign_in(office, first.name, first.password)).identity
    assert who.is_administrator
    assert [each.name for each in await office.persons.page(None)] == ["administrator"]
    assert await first_administrator(office) is None


async def test_persons_who_are_there_already_do_not_do_without_an_administrator(office: Engine) -> None:
    """They were added by the command, one of them even by that name."""
    for name in ("administrator", "clerk_1"):
        await office.persons.add(None, name)
    first = await first_administrator(office)
    assert first is not None
    assert first.name == "administrator_2"
    assert (await sign_in(office, first.name, first.password)).identity.is_administrator
    assert await first_administrator(office) is None


async def test_where_there_is_an_administrator_no_other_is_made(office: Engine) -> None:
    await office.persons.add(None, "boss", roles=["administrator"])
    assert await first_administrator(office) is None


async def test_who_comes_by_a_token_is_seen_once_a_minute(office: Engine, clerk: int) -> None:
    token = await add_token(office, clerk, clerk, "printer")
    assert (await office.persons.get(None, clerk)).seen_at is None
    await authenticate_token(office, token.secret)
    first = await office.persons.get(None, clerk)
    assert first.here
    await move(office, timedelta(seconds=50))
    await authenticate_token(office, token.secret)
    assert (await office.persons.get(None, clerk)).seen_at == first.seen_at
    await move(office, timedelta(seconds=20))
    await authenticate_token(office, token.secret)
    again = await office.persons.get(None, clerk)
    assert first.seen_at is not None
    assert again.seen_at is not None
    assert again.seen_at > first.seen_at


async def test_of_two_administrators_removed_at_once_one_stays(office: Engine) -> None:
    for name in ("first", "second"):
        await office.persons.add(None, name, roles=["administrator"])
    for acts in (
        lambda: (office.persons.disable(None, "first"), office.persons.disable(None, "second")),
        lambda: (office.roles.take(None, "administrator", ["first"]), office.persons.disable(None, "second")),
    ):
        done = await asyncio.gather(*acts(), return_exceptions=True)
        assert [getattr(each, "code", "done") for each in done].count("last_administrator") == 1
        for name in ("first", "second"):
            await office.persons.enable(None, name)
        await office.roles.put(None, "administrator", ["first", "second"])

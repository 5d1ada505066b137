"""Tokens, by which programs come in: named, used, expired, revoked, forged."""

from datetime import datetime, timedelta

import pytest
from door import PASSWORD, quick_hashing, somebody  # noqa: F401 gives the fixture `clerk`, and quick hashing
from office import fresh_office, move, one, refused  # noqa: F401 gives the fixture `office`

from mutirao.database.engine import Engine
from mutirao.people import add_token, authenticate_session, authenticate_token, sign_in


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

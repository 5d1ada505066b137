"""Passwords: which ones will do, how they are checked and changed, and what that ends."""

from statistics import median
from time import perf_counter

import pytest
from argon2 import PasswordHasher
from door import PASSWORD, WRONG, count, fail, quick_hashing, somebody  # noqa: F401 gives the fixture `clerk`, and quick hashing
from office import fresh_office, one, refused  # noqa: F401 gives the fixture `office`

from mutirao.database.engine import Engine
from mutirao.people import (
    add_token,
    authenticate_session,
    authenticate_token,
    change_password,
    password,
    reset_password,
    set_password,
    sign_in,
)


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


async def test_a_password_hashed_by_yesterdays_parameters_is_hashed_anew(office: Engine, clerk: int) -> None:
    yesterdays = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1).hash(PASSWORD)
    await one(office, "select mutirao.set_password(null, %s, %s)", clerk, yesterdays)
    await sign_in(office, "clerk_1", PASSWORD)
    anew = await one(office, "select hash from mutirao_secret.password")
    assert "m=8,t=1" in anew
    await sign_in(office, "clerk_1", PASSWORD)
    assert await one(office, "select hash from mutirao_secret.password") == anew

"""Failed attempts to sign in: how many are enough, of whom they are counted, and whom they do not shut out."""

import asyncio
from datetime import datetime, timedelta

import pytest
from door import PASSWORD, WRONG, fail, quick_hashing, somebody  # noqa: F401 gives the fixture `clerk`, and quick hashing
from office import fresh_office, move, one, refused  # noqa: F401 gives the fixture `office`

from mutirao.database.engine import Engine
from mutirao.errors import TooManyAttempts
from mutirao.people import set_password, sign_in


async def test_five_failures_of_a_name_in_a_quarter_of_an_hour_are_enough(office: Engine, clerk: int) -> None:
    assert clerk
    await fail(office, "clerk_1", times=4)
    await move(office, timedelta(minutes=5))
    await fail(office, "CLERK_1", times=1)  # another spelling is not another five
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

"""The first administrator is made once, and the last one stays."""

import asyncio

from door import quick_hashing  # noqa: F401 so that signing in takes no time
from office import fresh_office  # noqa: F401 gives the fixture `office`

from mutirao.database.engine import Engine
from mutirao.people import first_administrator, sign_in


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

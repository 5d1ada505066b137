"""When reminders are due and when an item moves are settings, which hold for open items too."""

import pytest
from claims import BOTH, REMINDED, at_each, begin
from driver import fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from staff import Office, furnished_office  # noqa: F401 gives the fixture `office`


async def test_new_reminders_hold_for_open_items(office: Office) -> None:
    _, item = await begin(office, days=3)
    await office.select("clerk_1", item)
    await office.remind("admin", [60, 0.5], 0.5)
    await office.tick()
    assert await at_each(office, 60, 48, 24, 1, 0.5) == {
        60: BOTH, 48: [], 24: [], 1: [], 0.5: [("clerk_1", "transferred"), ("manager", "transferred")],
    }  # fmt: skip


async def test_a_new_transfer_value_that_has_passed_moves_the_item_at_once(office: Office) -> None:
    _, item = await begin(office, days=3)
    await office.select("clerk_1", item)
    assert await at_each(office, 30) == {30: BOTH}
    await office.remind("admin", [36, 24], 36)
    await office.tick()
    assert await office.heard(*REMINDED) == [("clerk_1", "transferred"), ("manager", "transferred")]


async def test_items_in_somebodys_hands_follow_new_reminders_later(office: Office) -> None:
    _, item = await begin(office, days=3)
    async with await AsyncConnection.connect(office.engine.url) as session:
        await session.execute("select from mutirao.job where id = %s for update", [item])
        await office.remind("admin", [71], 71)
        assert await office.tick() == 0
    assert await office.tick() == 1
    assert await office.engine.rows("select from mutirao.realert") == []
    assert await at_each(office, 71) == {71: [("manager", "transferred")]}


@pytest.mark.parametrize(
    ("person", "reminders", "code", "says"),
    [
        ("clerk_1", ([24], 24), "forbidden", "only an administrator"),
        ("admin", ([24], 12), "wrong_call", "at one of the reminders, [24], or at 0"),
        ("admin", ([-1], 0), "wrong_call", "each from 0.01 to 8760"),
        ("admin", ([0], 0), "wrong_call", "each from 0.01 to 8760"),
        ("admin", (list(range(1, 30)), 1), "wrong_call", "up to twenty"),
        ("admin", ([9000], 9000), "wrong_call", "each from 0.01 to 8760"),
    ],
)
async def test_reminders_that_cannot_be_are_refused(
    office: Office, person: str, reminders: tuple[list[float], float], code: str, says: str
) -> None:
    async with office.engine.refused(code, says):
        await office.remind(person, *reminders)


async def test_settings_are_set_together_and_recorded(office: Office) -> None:
    await office.remind("admin", [], 0)
    rows = await office.engine.rows("select name, before, after, writer from mutirao.setting_change order by name")
    assert [(name, before, after) for name, before, after, _ in rows] == [
        ("reminders", [48, 24, 12, 6, 1], []),
        ("transfer", 24, 0),
    ]
    assert all("admin" in writer for *_, writer in rows)
    async with office.engine.refused("unknown_setting", "those there are: "):
        await office.engine.rows("select mutirao.set_settings(%s, '{\"colour\": 1}')", office.numbers["admin"])

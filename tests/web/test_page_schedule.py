"""Schedules: made, changed, paused and removed by an administrator."""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import expect

from mutirao.database.schedule import Schedule
from mutirao.model import Attribute, Definition, Task
from mutirao.server.page.cron import in_words
from mutirao.server.page.reader import Reader

pytestmark = pytest.mark.asyncio(loop_scope="session")

REPORT = Definition(
    name="report",
    attributes=(Attribute("copies", "integer"), Attribute("since", "timestamp"), Attribute("sent", "boolean")),
    tasks=(Task(name="send", when="sent is null", outputs=("sent",)),),
    final="sent is not null",
)


async def test_a_schedule_is_made_changed_paused_and_removed(place: Place) -> None:
    await place.engine.apply(REPORT)
    page = await place.visit("boss", "/schedules")
    await expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()
    await accessible(page)
    await page.get_by_role("link", name="Make a schedule").click()
    await page.get_by_label("Call it").fill("every_morning")
    await page.get_by_label("Flow").select_option("request")
    await expect(page.get_by_label("City")).to_be_visible()
    await page.get_by_label("Flow").select_option("report")
    await page.get_by_label("Copies").fill("3")
    times = page.locator("#times")
    await expect(times.locator("li")).to_have_count(5)
    await expect(times).to_contain_text("Monday to Friday at 08:00")
    await page.get_by_label("Cron pattern").fill("0 8 * *")
    await expect(times).to_contain_text("has 4 fields; it needs five")
    await accessible(page)
    await page.get_by_label("Cron pattern").fill("99 99 * * *")
    await expect(times.locator(".problem")).to_contain_text("99")
    await expect(times).not_to_contain_text("every day")
    await page.get_by_label("Cron pattern").fill("30 7 * * *")
    await expect(times).to_contain_text("every day at 07:30")
    await expect(times.locator("li").first).to_contain_text("7:30:00")  # in Recife, where the person is
    await page.get_by_label("Attribute that receives the time").select_option("since")
    await page.get_by_role("button", name="Make it").click()
    row = page.get_by_role("row", name="every_morning")
    await expect(row).to_contain_text("every day at 07:30")
    made = await place.engine.schedules.get("every_morning")
    assert (made.flow, made.zone, made.state, made.time_to, made.made_by) == (
        "report",
        "America/Recife",
        {"copies": 3},
        "since",
        "boss",
    )
    await accessible(page)
    await row.get_by_role("button", name="Pause").click()
    await expect(row.locator(".status")).to_have_text("paused")
    await row.get_by_role("link", name="every_morning").click()
    await expect(page.get_by_label("Copies")).to_have_value("3")
    await page.get_by_label("While the last one is open").select_option("skip")
    await page.get_by_label("Copies").fill("")
    await page.get_by_role("button", name="Change").click()
    await expect(row.locator(".status")).to_have_text("paused")
    changed = await place.engine.schedules.get("every_morning")
    assert (changed.overlap, changed.state, changed.paused) == ("skip", {}, True)
    await row.get_by_role("button", name="Go on with every_morning").click()
    await expect(row.get_by_role("button", name="Pause")).to_be_visible()
    await row.get_by_role("button", name="Remove").click()
    await accessible(page)
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()


async def test_a_schedule_tells_its_last_instance_and_what_is_in_its_way(place: Place) -> None:
    await place.engine.apply(REPORT)
    await place.engine.schedules.put(Schedule("form", "report", "0 8 * * *"))
    async with place.engine.connection() as connection:
        await connection.execute(
            "update mutirao.schedule set last_instance = 17, last_at = mutirao.now(), runs = 3, "
            """problem = '{"code": "missing_attribute", "message": "attribute \\"copies\\" is needed"}'"""
        )
    page = await place.visit("boss", "/schedules", viewport=NARROW)
    row = page.get_by_role("row", name="report")
    await expect(row.get_by_role("link", name="instance 17")).to_have_attribute("href", "/instances/17")
    await expect(row).to_contain_text('attribute "copies" is needed')
    await fits(page)
    await row.get_by_role("link", name="form", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Change form")
    await fits(page)
    await accessible(page)
    dark = await place.visit("boss", "/schedules/form", color_scheme="dark")
    await accessible(dark)
    lost = await place.visit("boss", "/schedules/form?name=nothing")
    await expect(lost.get_by_role("heading", level=1)).to_have_text("There is nothing here")
    lost = await place.visit("boss", "/schedules/form?flow=nothing")
    await expect(lost.get_by_role("heading", level=1)).to_have_text("There is nothing here")


async def test_many_schedules_are_shown_fifty_at_a_time_and_one_of_them_is_removed(place: Place) -> None:
    await place.engine.apply(REPORT)
    for number in range(120):
        await place.engine.schedules.put(Schedule(f"report_{number:03}", "report", f"{number % 60} 8 * * *"))
    await place.engine.schedules.pause("report_000")
    page = await place.visit("boss", "/schedules")
    rows, seen = page.locator("[data-row]"), []
    assert len(await page.content()) < 150_000
    for count in (50, 50, 20):
        await expect(rows).to_have_count(count)
        seen += await page.locator("[data-row] td:first-child").all_inner_texts()
        if count == 50:
            await page.get_by_role("link", name="More").click()
    assert seen == [each.name for each in await place.engine.schedules.all()]
    assert seen[-1] == "report_000"
    await page.get_by_role("button", name="Remove report_119").click()
    dialog = page.get_by_role("dialog", name="Remove the schedule report_119?")
    await accessible(page)
    await dialog.get_by_role("button", name="Leave it").click()
    await page.get_by_role("button", name="Remove report_058").click()
    await (
        page.get_by_role("dialog", name="Remove the schedule report_058?").get_by_role("button", name="Remove").click()
    )
    await expect(rows).to_have_count(19)
    assert {each.name for each in await place.engine.schedules.all()} == {*seen} - {"report_058"}
    await page.goto("/schedules?cursor=nonsense")
    await expect(page.locator("main")).to_contain_text("The cursor is not one that a page of this list gave")


async def test_what_a_schedule_needs_is_marked_and_a_refusal_goes_when_it_is_corrected(place: Place) -> None:
    attributes = (Attribute("copies", "integer", required=True), *REPORT.attributes[1:])
    await place.engine.apply(replace(REPORT, attributes=attributes))
    page = await place.visit("boss", "/schedules/form?flow=report")
    await expect(page.locator("label.needed")).to_have_text(
        ["Call it", "Cron pattern", "By the clocks of", "Flow", "Copies"]
    )
    await page.get_by_label("Call it").fill("every_morning")
    await page.get_by_role("button", name="Make it").click()
    refusal = page.locator("form [data-problem]")
    await expect(refusal).to_contain_text('attribute "copies"')
    await page.get_by_label("Priority").fill("3")
    await expect(refusal).to_be_visible()  # it is about another field
    await page.get_by_label("Copies").fill("2")
    await expect(refusal).to_be_hidden()
    await page.get_by_label("Cron pattern").fill("0 8 * *")
    await page.get_by_role("button", name="Make it").click()
    await expect(refusal).to_contain_text("has 4 fields")
    await page.get_by_label("Cron pattern").fill("0 8 * * *")
    await expect(refusal).to_be_hidden()


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("@daily", "every day at 00:00"),
        ("5 8 * * *", "every day at 08:05"),
        ("0 8 * * mon-fri", "Monday to Friday at 08:00"),
        ("0 8 * * 0,7,sat", "Sunday, Sunday, Saturday at 08:00"),
        ("0 0 01 * *", "on day 1 of the month at 00:00"),
        ("0 0 L * *", "on the last day of the month at 00:00"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/7 * * * *", ""),
        ("* * * * *", "every minute"),
        ("10 * * * *", "every hour at minute 10"),
        ("0 8 1 * mon", ""),
        ("0 8 * * mon-wed,fri", ""),
        ("0 8 * * day", ""),
        ("0 8 * jan *", ""),
        ("0 */2 * * *", ""),
        ("", ""),
    ],
)
async def test_common_patterns_are_told_in_words(cron: str, words: str) -> None:
    reader = Reader("en", ZoneInfo("UTC"), "light", True, datetime.now(UTC))
    assert in_words(cron, reader) == words

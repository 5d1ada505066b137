"""One instance: its picture, its data, its times and its story, and why a task waits."""

from datetime import timedelta

import pytest
from instance_kit import finish, new_trip, trips
from page_kit import NARROW, Place, a_place, accessible, chromium, fits  # noqa: F401 gives the fixtures
from playwright.async_api import expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_instance_is_shown_as_it_stands_and_follows_what_happens(place: Place) -> None:
    well, _ = await trips(place)
    page = await place.visit("clerk_1", f"/instances/{well}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text(f"trip #{well}")
    await expect(page.locator('[data-node="approve"]')).to_have_attribute("data-state", "succeeded")
    await expect(page.locator('[data-node="book_hotel"]')).to_have_attribute("data-state", "ready")
    await expect(page.locator("#facts")).to_contain_text("clerk_1")
    await expect(page.locator("#data")).to_contain_text("Recife")
    await expect(page.locator("#times svg .bar")).to_have_count(2)
    first = page.locator("#story li").first
    await expect(first).to_contain_text("Approve")
    await expect(first.locator("dl")).to_contain_text("Approved")
    await expect(first.locator("del")).to_have_text("\N{EN DASH}")
    await expect(first.locator("ins")).to_have_text("yes")
    await accessible(page)
    await finish(place, well, "book_hotel", hotel="Boa Vista")
    await expect(page.locator('[data-node="book_hotel"]')).to_have_attribute("data-state", "succeeded")
    await expect(page.locator("#data")).to_contain_text("Boa Vista")
    await expect(page.locator("#story li").first.locator("ins")).to_have_text("Boa Vista")
    await finish(place, well, "book_flight", flight="TP 12")
    await expect(page.locator("h1 .status")).to_have_text("completed")
    await expect(page.locator("#facts")).to_contain_text("Ended")
    await expect(page.get_by_role("button", name="Cancel it")).to_have_count(0)


async def test_why_a_task_waits_is_told_part_by_part(place: Place) -> None:
    _, ill = await trips(place)
    page = await place.visit("clerk_1", f"/instances/{ill}")
    await expect(page.get_by_role("heading", name="Book hotel failed")).to_be_visible()
    await expect(page.locator(".error")).to_have_text("the hotel does not answer")
    await page.get_by_role("button", name="Why not? book_flight").click()
    why = page.locator("#why-book_flight")
    await expect(why.locator(".fails", has_text="days > 1").last).to_contain_text("days: 1")
    await expect(why.locator(".holds", has_text="approved").last).to_contain_text("approved: yes")
    await accessible(page)


async def test_the_timeline_tells_waiting_from_working(place: Place) -> None:
    """An item that waits for four minutes, and is in work for twenty."""
    number, job = await place.site.item(city="Recife")
    clerk = await place.site.client("clerk_2")
    await place.advance(timedelta(minutes=4))
    attempt = await clerk.worklist.select(job)
    await place.advance(timedelta(minutes=20))
    page = await place.visit("clerk_1", f"/instances/{number}")
    bars = page.locator("#times .bar")
    await expect(bars).to_have_count(2)
    await expect(bars.nth(0)).to_have_class("bar state-ready")
    await expect(bars.nth(1)).to_have_class("bar state-running")
    assert (
        4
        < float(await bars.nth(1).get_attribute("width") or 0) / float(await bars.nth(0).get_attribute("width") or 1)
        < 6
    )
    await clerk.worklist.finish(job, attempt, {"answer": "yes"})
    await page.reload()
    await expect(bars.nth(1)).to_have_class("bar state-succeeded")
    await page.get_by_text("The timeline as a table").click()
    await expect(page.locator("#times tbody tr").nth(0)).to_contain_text("4 min")


async def test_people_talk_about_an_instance_and_all_of_them_see_it(place: Place) -> None:
    well, _ = await trips(place)
    mine, boss = await place.visit("clerk_1", f"/instances/{well}"), await place.visit("boss", f"/instances/{well}")
    await mine.get_by_label("Say something").fill("The customer called.")
    await mine.get_by_role("button", name="Say it").click()
    await expect(boss.locator("#comments")).to_contain_text("The customer called.")
    await boss.get_by_role("button", name="Take back").click()
    await expect(mine.locator("#comments li")).to_have_count(0)


async def test_a_long_story_goes_by_pages_and_fits_a_small_screen(place: Place) -> None:
    await trips(place)
    long = await new_trip(place, city="0")
    for number in range(1, 60):
        await place.engine.set(long, {"city": str(number)})
    page = await place.visit("clerk_1", f"/instances/{long}", viewport=NARROW)
    await fits(page)
    await accessible(page)
    await expect(page.locator("#story li")).to_have_count(40)
    await page.get_by_role("link", name="Earlier").click()
    await expect(page.locator("#story li")).to_have_count(20)
    await expect(page.locator("#story li").first.locator("dl")).to_contain_text("18 → 19")
    await expect(page.locator("#story li").last).to_contain_text("Started")

"""One instance: its picture, its data, its times and its story, and why a task waits."""

import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from instance_kit import TRIP, fail, finish, new_trip, trips
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Locator, expect

from mutirao.model import Definition, Offer, Task, Term

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def height(part: Locator) -> float:
    box = await part.bounding_box()
    assert box is not None
    return box["height"]


async def is_inside(part: Locator, frame: Locator) -> bool:
    one, other = await part.bounding_box(), await frame.bounding_box()
    assert one is not None
    assert other is not None
    return other["x"] <= one["x"] and one["x"] + one["width"] <= other["x"] + other["width"]


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


async def test_in_a_long_flow_names_can_be_read_and_only_what_has_begun_is_filled(place: Place) -> None:
    names = [f"look_at_part_{number}" for number in range(12)]
    first = Task(name=names[0], when="true", fires="once", offer=Offer(role="clerk"))
    others = [replace(first, name=each, when=None, depends=Term(before)) for before, each in pairwise(names)]
    await place.engine.apply(Definition(name="looks", creator="clerk", tasks=(first, *others), ends="quiet"))
    [number] = await place.engine.start_named("looks", [{}])
    for each in names[:6]:
        await finish(place, number, each)
    page = await place.visit("boss", f"/instances/{number}")
    now = page.locator('[data-node="look_at_part_6"]')
    await expect(now).to_have_attribute("data-state", "ready")
    assert await is_inside(now, page.locator("#graph-canvas"))
    scale = "(svg) => svg.clientWidth / svg.viewBox.baseVal.width"
    assert await page.locator("#graph-canvas svg").evaluate(scale) * 14 >= 12
    fill = "(box) => getComputedStyle(box).fill"
    looks = [await page.locator(f'[data-node="{each}"] .box').evaluate(fill) for each in (names[0], names[6], names[9])]
    paper = await page.locator("#graph-canvas").evaluate("(canvas) => getComputedStyle(canvas).backgroundColor")
    assert looks[2] == paper
    assert len(set(looks)) == 3
    await page.locator('[data-node="look_at_part_11"]').focus()
    assert await is_inside(page.locator('[data-node="look_at_part_11"]'), page.locator("#graph-canvas"))
    await expect(page.locator("#graph-card")).to_contain_text("after look_at_part_10")
    await accessible(page)


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
    await expect(page.locator("#times .legend li")).to_have_text(["ready", "succeeded"])
    await page.get_by_text("The timeline as a table").click()
    await expect(page.locator("#times tbody tr").nth(0)).to_contain_text("4 min")


async def test_no_two_times_of_a_timeline_are_told_alike(place: Place) -> None:
    number, _ = await place.site.item(city="Recife")
    await place.advance(timedelta(seconds=140))
    page = await place.visit("clerk_1", f"/instances/{number}")
    await expect(page.locator("#times text.tick")).to_have_text(["+30 secs", "+60 secs", "+90 secs", "+120 secs"])


async def test_people_talk_about_an_instance_and_all_of_them_see_it(place: Place) -> None:
    well, _ = await trips(place)
    mine, boss = await place.visit("clerk_1", f"/instances/{well}"), await place.visit("boss", f"/instances/{well}")
    async with boss.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
        await boss.reload()  # it has been read again by its first hint: what is said now is heard as all others hear it
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


async def test_tasks_that_never_started_are_told_by_why_they_did_not(place: Place) -> None:
    """While it is open, and once it has ended: then nobody need ask."""
    await place.engine.apply(TRIP)
    number = await new_trip(place, city="Recife", days=3, approved=True, hotel="Boa Vista")
    page = await place.visit("clerk_1", f"/instances/{number}")
    for task, state in {"approve": "passed over", "book_hotel": "passed over", "free_hotel": "stands by"}.items():
        await expect(page.locator(f"#task-{task} .status")).to_have_text(state)
        await expect(page.get_by_role("button", name=f"Why not? {task}")).to_be_visible()
    await expect(page.locator('[data-node="approve"]')).to_have_attribute("aria-label", re.compile("passed over"))
    early = await new_trip(place, city="Recife", days=3)
    other = await place.visit("clerk_1", f"/instances/{early}")
    await expect(other.locator("#task-book_flight .status")).to_have_text("not ready")
    await finish(place, number, "book_flight", flight="TP 12")
    await expect(page.locator("#task-book_flight .status")).to_have_text("succeeded")
    await expect(page.locator("#task-approve .status")).to_have_text("not done")
    await expect(page.get_by_role("button", name="Why not?")).to_have_count(0)


async def test_a_rollback_says_whom_it_waits_for_and_tells_them(place: Place) -> None:
    number, job = await place.site.item(city="Recife")
    clerk = await place.site.client("clerk_2")
    attempt = await clerk.worklist.select(job)
    page, item = await place.visit("clerk_1", f"/instances/{number}"), await place.visit("clerk_2", f"/items/{job}")
    await expect(item.get_by_text("It is yours.")).to_be_visible()
    await (await place.site.client("clerk_1")).instances.suspend(number)
    await expect(item.locator("#standing")).to_contain_text("Its instance is suspended: this item may be finished")
    await (await place.site.client("clerk_1")).instances.resume(number)
    await expect(item.locator("#standing")).not_to_contain_text("suspended")
    await (await place.site.client("clerk_1")).instances.roll_back(number)
    await expect(page.locator("#in-hand")).to_contain_text("The rollback waits until this has ended")
    await expect(page.locator("#in-hand")).to_contain_text("approve (held by clerk_2)")
    await expect(item.locator("#standing")).to_contain_text("being rolled back, and waits for you")
    await accessible(page)
    await accessible(item)
    await clerk.worklist.finish(job, attempt, {"answer": "yes"})
    await expect(page.locator("h1 .status")).to_have_text("undone")
    await expect(page.locator("#in-hand")).to_have_count(0)


async def test_an_error_is_told_once_and_a_long_one_is_folded(place: Place) -> None:
    await place.engine.apply(TRIP)
    number = await new_trip(place, city="Recife", days=3, approved=True)
    long = "no room " * 500
    await fail(place, "book_hotel", f"Failed: {long}")
    page = await place.visit("clerk_1", f"/instances/{number}")
    await expect(page.locator("#instance")).not_to_contain_text("Failed:")
    step = page.locator("#story li", has_text="failed for good")
    await expect(step.locator("summary")).to_have_text(re.compile("^no room no room.*…$"))
    assert await height(step) < 200
    await step.locator("summary").click()
    await expect(step.locator(".long")).to_be_visible()
    assert await height(step) < 500
    await page.get_by_role("button", name="Why? book_hotel").click()
    await expect(page.locator("#why-book_hotel p").first).to_contain_text("has failed for good after 1 try: no room")
    told = await page.locator("#why-book_hotel").text_content() or ""
    assert told.count("has failed for good") == 1
    await accessible(page)


async def test_what_an_error_says_in_its_middle_is_left_as_it_is(place: Place) -> None:
    await place.engine.apply(TRIP)
    number = await new_trip(place, city="Recife", days=3, approved=True)
    await fail(place, "book_hotel", "HTTPError: Login: Failed: bad")
    page = await place.visit("clerk_1", f"/instances/{number}")
    await expect(page.get_by_role("region", name="Error of book_hotel")).to_have_text("HTTPError: Login: Failed: bad")
    await page.get_by_role("button", name="Why? book_hotel").click()
    await expect(page.locator("#why-book_hotel p").first).to_contain_text("1 try: HTTPError: Login: Failed: bad;")


async def test_an_error_that_has_a_code_alone_is_shown(place: Place) -> None:
    await place.engine.apply(TRIP)
    number = await new_trip(place, city="Recife", days=3, approved=True)
    await fail(place, "book_hotel")
    async with place.engine.connection() as connection:
        await connection.execute("update mutirao.job set error = error - 'error' || '{\"code\": \"no_room\"}'")
    page = await place.visit("clerk_1", f"/instances/{number}")
    await expect(page.get_by_role("region", name="Error of book_hotel")).to_contain_text("no_room")


async def test_a_long_value_does_not_fill_the_page(place: Place) -> None:
    number, _ = await place.site.item(city="Recife " * 800)
    page = await place.visit("clerk_1", f"/instances/{number}", viewport=NARROW)
    assert await height(page.locator("#data")) < 400
    await fits(page)
    await accessible(page)


async def test_the_flow_is_linked_for_those_who_may_see_it(place: Place) -> None:
    number, _ = await place.site.item(city="Recife")
    await (await place.site.client("clerk_1")).instances.hand_over(number, "outsider")
    page = await place.visit("outsider", f"/instances/{number}")
    await expect(page.locator("#facts")).to_contain_text("request, version 1")
    await expect(page.locator('#facts a[href^="/flows"]')).to_have_count(0)
    page = await place.visit("clerk_1", f"/instances/{number}")
    await expect(page.locator("#facts").get_by_role("link", name="request")).to_have_attribute("href", "/flows/request")

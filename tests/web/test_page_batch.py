"""One thing done to many instances: counted and told before, watched meanwhile, stopped and taken up again."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from instance_kit import TRIP, new_trip, trips
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import expect

from mutirao.database.batch import Batch
from mutirao.server.page.batch_order import Line, order_of
from mutirao.server.page.reader import Reader

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_chosen_ones_are_suspended_and_the_others_are_not(place: Place) -> None:
    await place.engine.apply(TRIP)
    first, second, third = [await new_trip(place, city="Recife") for _ in range(3)]
    page = await place.visit("boss", "/instances")
    await page.get_by_label(f"Choose instance {first}", exact=True).check()
    await page.get_by_label(f"Choose instance {third}", exact=True).check()
    await page.get_by_label("Do to several at once").select_option("suspend")
    await page.get_by_role("button", name="To the chosen").click()
    await expect(page.get_by_text("It is done to 2 instances.")).to_be_visible()
    await expect(page.locator("#plan")).to_contain_text("Nothing else starts until they are resumed.")
    await expect(page.locator("#chosen").get_by_role("link")).to_have_text([f"#{third}", f"#{first}"])
    await accessible(page)
    await page.get_by_label("Why").fill("the office is closed")
    await page.get_by_role("button", name="Do it").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("running")
    await accessible(page)
    await place.engine.drive_batch(1)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("finished")
    await expect(page.locator(".batch-facts")).to_contain_text("Done2")
    for chosen in (first, third):
        await expect(page.get_by_role("link", name=f"#{chosen}", exact=True)).to_have_attribute(
            "href", f"/instances/{chosen}"
        )
    statuses = {each: (await place.engine.instance(each)).hold for each in (first, second, third)}
    assert statuses == {first: "suspended", second: None, third: "suspended"}
    await page.goto("/batches")
    await expect(page.get_by_role("row", name="Suspend")).to_contain_text("2 of 2")
    await accessible(page)


async def test_all_that_fit_the_filter_are_changed_and_refusals_are_told(place: Place) -> None:
    await trips(place)
    page = await place.visit("boss", "/instances?flow=trip&attribute=city&value=Recife")
    await page.get_by_label("Do to several at once").select_option("roll_back")
    await page.get_by_role("button", name="To all that fit the filter").click()
    await expect(page.get_by_text("It is done to 1 instance.")).to_be_visible()
    await page.get_by_label("What to do").select_option("start_task")
    await expect(page.get_by_role("button", name="Do it")).to_be_disabled()
    await page.get_by_label("Task").select_option("book_hotel")
    await expect(page.get_by_text("It is done to 1 instance.")).to_be_visible()
    await page.get_by_role("button", name="Do it").click()
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await place.engine.drive_batch(1)
    await expect(page.get_by_role("heading", name="Refused")).to_be_visible()  # it has such a job already
    await page.goto("/instances?flow=trip")
    await page.get_by_label("Do to several at once").select_option("set")
    await page.get_by_role("button", name="To all that fit the filter").click()
    await expect(page.get_by_text("It is done to 2 instances.")).to_be_visible()
    await page.get_by_label("City").fill("Olinda")
    await page.get_by_role("button", name="Do it").click()
    await expect(page).to_have_url(f"{place.url}/batches/2")
    await place.engine.drive_batch(2)
    await expect(page.locator(".batch-facts")).to_contain_text("Done2")
    await expect(page.get_by_role("definition").filter(has_text="Olinda")).to_have_text("City: Olinda")
    assert {(await place.engine.instance(each)).state["city"] for each in (1, 2)} == {"Olinda"}


async def test_chosen_ones_of_one_flow_are_asked_for_its_attributes_and_those_of_two_are_not(place: Place) -> None:
    await place.engine.apply(TRIP)
    open_one, closed = [await new_trip(place, city="Recife") for _ in range(2)]
    await place.engine.cancel(closed)
    other, _ = await place.site.item(city="Olinda")
    assert await place.engine.flows_of_instances([open_one, closed, 99]) == ["trip"]
    assert await place.engine.flows_of_instances([closed]) == ["trip"]
    page = await place.visit("boss", f"/batches/new?kind=set&instance={open_one}")
    await expect(page.get_by_label("Hotel")).to_be_visible()
    await page.goto(f"/batches/new?kind=set&instance={open_one}&instance={other}")
    await expect(page.get_by_text("It is done to 2 instances.")).to_be_visible()
    await expect(page.get_by_label("Hotel")).to_have_count(0)


async def test_a_batch_is_stopped_and_taken_up_again(place: Place) -> None:
    await trips(place)
    page = await place.visit("boss", "/batches/new?kind=cancel&flow=trip&all=true", viewport=NARROW)
    await fits(page)
    await expect(page.locator("#chosen").get_by_role("link", name="trip")).to_be_visible()
    await page.get_by_role("button", name="Do it").click()
    await page.get_by_role("button", name="Stop", exact=True).click()
    await page.get_by_role("button", name="Stop it").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("stopped")
    await fits(page)
    await place.engine.drive_batch(1)
    assert (await place.engine.instance(1)).is_open
    await page.get_by_role("button", name="Go on", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Go on").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("running")
    await place.engine.drive_batch(1)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("finished")
    assert not (await place.engine.instance(1)).is_open


async def test_what_was_ordered_is_told_in_words() -> None:
    reader = Reader("en", ZoneInfo("UTC"), "light", True, datetime.now(UTC))
    chosen = {"flow": "trip", "ids": [*range(1, 61)], "status": "open", "exception": "nothing_fires", "task": "pay"}
    told = _order({**chosen, "started_before": "2026-01-31T12:00:00Z", "odd": [1]}, {"task": "book", "to": 3}, reader)
    assert told[0] == Line("Flow", "flow", ("trip",))
    assert told[1] == Line("Instances", "ids", tuple(range(1, 51)), left=10)
    assert [(each.label, *each.values) for each in told[2:]] == [
        ("State", "open"),
        ("Exception", "Nothing goes on"),
        ("Failed task", "pay"),
        ("Started before", "Jan 31, 2026, 12:00:00\u202fPM"),
        ("odd", "[1]"),
        ("Task", "book"),
        ("To version", "3"),
    ]
    moved = _order({}, {"tasks": {"book_hotel": "book_room"}, "closed_before": "infinity"}, reader)
    assert [each.values for each in moved] == [("book_hotel → book_room",), ("infinity",)]


def _order(chosen: dict[str, Any], given: dict[str, Any], reader: Reader) -> list[Line]:
    made = Batch(1, "set", None, chosen, given, "running", 3, 0, 0, 0, "boss", None, reader.now, None, None)
    return order_of(made, reader)


async def test_a_batch_that_makes_no_sense_says_so(place: Place) -> None:
    page = await place.visit("boss", "/batches/new?kind=cancel")
    await expect(page.get_by_text("no instances are chosen")).to_be_visible()
    for path, says in (
        ("/batches/new?kind=dance&instance=1", 'there is no batch of kind "dance"'),
        ("/batches/new?kind=cancel&instance=99", "there is no instance 99"),
        ("/batches/7", "there is no batch 7"),
    ):
        await page.goto(path)
        await expect(page.get_by_text(says)).to_be_visible()

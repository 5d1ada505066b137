"""The list of instances: filters, live counts, and nobody sees what is none of theirs."""

import pytest
from instance_kit import TRIP, new_trip, trips
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def shows(page: Page, *instances: int) -> None:
    """These, in this order, and no others."""
    rows = page.locator("tbody[data-rows] tr")
    await expect(rows).to_have_count(len(instances))
    for place, each in enumerate(instances):
        await expect(rows.nth(place)).to_have_attribute("id", f"instance-{each}")


async def test_instances_are_narrowed_down_by_what_is_known_of_them(place: Place) -> None:
    well, ill = await trips(place)
    other, _ = await place.site.item(city="Olinda")
    page = await place.visit("boss", "/instances")
    await shows(page, other, ill, well)
    await accessible(page)
    await page.locator("select[name=flow]").select_option("trip")
    await shows(page, ill, well)
    await expect(page).to_have_url(
        f"{place.url}/instances?text=&flow=trip&status=&who=&role=in_charge&older=&after=&before="
    )
    await page.get_by_text("More", exact=True).click()
    await page.locator("select[name=attribute]").select_option("city")
    await page.get_by_label("is", exact=True).fill("Recife")
    await page.keyboard.press("Enter")
    await shows(page, well)
    await page.goto("/instances")
    await page.locator("select[name=status]").select_option("open.exception")
    await shows(page, ill)
    await page.goto("/instances")
    await page.get_by_label("Person").fill("clerk_1")
    await page.locator("select[name=older]").select_option("1h")
    await expect(page.get_by_role("heading", name="None fits")).to_be_visible()
    await page.goto("/instances")
    await page.keyboard.press("/")
    await page.keyboard.type(str(well))
    await shows(page, well)
    await page.goto("/instances?who=nobody")
    await expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing here")
    await page.goto("/instances?after=yesterday")
    await expect(page.get_by_text("after is a time such as 2027-01-31T12:00")).to_be_visible()


async def test_counts_and_rows_follow_what_happens(place: Place) -> None:
    await trips(place)
    page = await place.visit("boss", "/instances")
    open_ones = page.get_by_role("link", name="open", exact=False).filter(has_text="open")
    await expect(open_ones.first).to_contain_text("2")
    chosen = page.get_by_label("Choose instance 1", exact=True)
    await chosen.check()
    third = await new_trip(place, city="Olinda")
    await expect(page.locator(f"#instance-{third}")).to_be_visible()
    await expect(open_ones.first).to_contain_text("3")
    await expect(chosen).to_be_checked()
    await expect(page.get_by_role("button", name="To the chosen")).to_contain_text("(1)")


async def test_people_see_those_that_they_have_had_to_do_with(place: Place) -> None:
    well, ill = await trips(place)
    mine = await place.visit("clerk_1", "/instances")
    await shows(mine, ill, well)
    await expect(mine.get_by_role("button", name="To the chosen")).to_have_count(0)
    await expect(mine.get_by_text("By flow")).to_have_count(0)
    outsider = await place.visit("outsider", "/instances")
    await expect(outsider.get_by_role("heading", name="No instances yet")).to_be_visible()
    for path in ("/instances?flow=trip", f"/instances?text={well}", "/instances?flow=trip&attribute=city&value=Recife"):
        await outsider.goto(path)
        await expect(outsider.get_by_role("heading", name="None fits")).to_be_visible()
    for path in (f"/instances/{well}", f"/instances/{well}/why/approve"):
        await outsider.goto(path)
        await expect(outsider.get_by_role("heading", level=1)).to_have_text("There is nothing here")
    for path in ("/batches", "/batches/new?kind=cancel&instance=1", "/batches/1"):
        await outsider.goto(path)
        await expect(outsider.get_by_role("heading", level=1)).to_have_text("This is not for you to see")


async def test_what_one_once_had_to_do_with_is_followed_too(place: Place) -> None:
    await place.engine.apply(TRIP)
    trip = await new_trip(place, city="Recife", days=3)
    colleague = await place.site.client("clerk_2")  # is sent no messages of it, and has no items in it any more
    taken = await colleague.worklist.next()
    assert taken is not None
    await colleague.worklist.finish(taken.job, taken.attempt, {"approved": True})
    page = await place.visit("clerk_2", "/instances?status=closed")
    await expect(page.get_by_role("heading", name="None fits")).to_be_visible()
    async with page.expect_request(lambda request: f"/api/events?instance={trip}" in request.url):
        await page.locator("select[name=status]").select_option("open")
    await expect(page.locator(f"#instance-{trip}")).to_contain_text("running")
    await place.engine.suspend(trip)
    await expect(page.locator(f"#instance-{trip}")).to_contain_text("suspended")


async def test_the_list_goes_by_pages_and_fits_a_small_screen(place: Place) -> None:
    await place.engine.apply(TRIP)
    for _ in range(52):
        await new_trip(place, city="Recife")
    page = await place.visit("boss", "/instances", viewport=NARROW)
    await fits(page)
    await accessible(page)
    await page.get_by_role("link", name="More", exact=True).click()
    await shows(page, 2, 1)
    await page.get_by_role("link", name="To the beginning").click()
    await expect(page.locator("#instance-52")).to_be_visible()

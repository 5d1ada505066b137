"""Waiting: who waits for whom, classes and orderings, and circles with their repair in place."""

from typing import Any

import pytest
from attention_kit import clock
from driver import Engine as Driver
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import expect

from mutirao.model import Attribute, Definition, Ordering, Task
from mutirao.model.dependency import Term

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIFT = Definition(
    name="lift",
    creator="clerk",
    attributes=(Attribute("load", "text"), Attribute("done", "boolean", default=False)),
    tasks=(Task(name="raise_load", when="not done", task_class="crane", outputs=("done",)),),
    final="done",
)


def half(number: int) -> Definition:
    """One of two flows that each have to let the other go first."""
    first, second = f"t_{number}1", f"t_{number}2"
    tasks: Any = (
        Task(name=first, when="true", fires="once", retries=0),
        Task(name=second, depends=Term(first, "succeeded"), retries=0),
    )
    return Definition(name=f"p_{number}", creator="clerk", attributes=(), tasks=tasks, ends="quiet")


async def in_a_circle(place: Place) -> tuple[int, int]:
    """By one ordering the one goes first, by another the other. The second one, of clerk_1, closes the circle."""
    for number in (1, 2):
        await place.engine.apply(half(number))
    await place.engine.library.put(Ordering("p_1", "p_2", (("t_11", "t_22"), ("t_12", "t_22"))))
    await place.engine.library.put(Ordering("p_2", "p_1", (("t_21", "t_12"), ("t_22", "t_12"))))
    [one] = await place.engine.start_named("p_1", [{}])
    two = (await (await place.site.client("clerk_1")).instances.create("p_2")).id
    async with Driver(place.engine.url) as driver:
        await driver.do("p_1", "t_11")
        await driver.do("p_2", "t_21")
    return one, two


async def test_a_class_is_made_and_the_second_goes_on_when_the_first_has_ended(place: Place) -> None:
    page = await place.visit("boss", "/waiting")
    await expect(page.get_by_role("heading", name="Nobody waits for anybody")).to_be_visible()
    await accessible(page)
    await page.get_by_role("button", name="Make a class").click()
    await accessible(page)
    await page.get_by_label("Name").fill("crane")
    await page.get_by_label("What it is about").fill("One load at a time")
    await page.get_by_role("button", name="Make it").click()
    await expect(page.get_by_role("region", name="Classes")).to_contain_text("One load at a time (one job at a time)")
    await place.engine.apply(LIFT)
    one, two = await place.engine.start_named("lift", [{}, {}])
    queue = page.get_by_role("region", name="Who waits")
    await expect(queue.get_by_role("row")).to_have_count(2)
    await expect(queue.get_by_role("row").nth(1)).to_contain_text(f"the end of {one} Raise load")
    await expect(queue.get_by_role("link", name=f"lift {two}")).to_have_attribute("href", f"/instances/{two}")
    await expect(page.get_by_role("region", name="Queues")).to_contain_text(f"{one} Raise load")
    await accessible(page)
    async with Driver(place.engine.url) as driver:
        await driver.do("lift", "raise_load", done=True)
        await expect(page.get_by_role("heading", name="Nobody waits for anybody")).to_be_visible()
        await driver.do("lift", "raise_load", done=True)
    assert (await place.engine.instance(two)).status == "closed.completed"


async def test_a_class_is_changed_and_dropped(place: Place) -> None:
    await place.engine.classes.put("crane", ["crane"])
    await place.engine.classes.put("night shift")
    page = await place.visit("boss", "/waiting", viewport=NARROW)
    await page.get_by_role("link", name="crane", exact=True).click()
    await expect(page.get_by_label("each other")).to_be_checked()
    await page.get_by_label("jobs of the class night shift").check()
    await page.get_by_label("each other").uncheck()
    await accessible(page)
    await fits(page)
    await page.get_by_role("button", name="Change it").click()
    await expect(page.locator("#told")).to_have_text("It is changed, for what starts from now on.")
    conflicts = {each.name: each.conflicts for each in await place.engine.classes.all()}
    assert conflicts == {"crane": ["night shift"], "night shift": ["crane"]}
    await page.get_by_role("button", name="Drop the class").click()
    await page.get_by_role("dialog").get_by_role("button", name="Drop it").click()
    await expect(page).to_have_url(f"{place.url}/waiting")
    assert [each.name for each in await place.engine.classes.all()] == ["night shift"]


async def test_a_circle_is_shown_as_one_and_broken_in_place(place: Place) -> None:
    one, two = await in_a_circle(place)
    page = await place.visit("boss", "/waiting")
    circle = page.get_by_role("region", name="Instances wait for each other")
    for number in (one, two):
        await expect(circle.get_by_role("link", name=str(number)).first).to_be_visible()
    await circle.locator("summary", has_text="Repair").click()
    await expect(circle.get_by_role("heading", name="T 22: skip it")).to_be_visible()
    await accessible(page)
    await circle.get_by_role("button", name="Skip it").click()
    await expect(circle).to_be_hidden()
    assert (await place.engine.instance(two)).reasons is None


async def test_an_ordering_is_dropped_and_nobody_waits_for_it_any_more(place: Place) -> None:
    one, two = await in_a_circle(place)
    page = await place.visit("boss", "/waiting")
    await expect(page.get_by_role("region", name="Who waits")).to_contain_text("its turn, after")
    await page.get_by_role("row", name="p_2, p_1").get_by_role("button", name="Drop it").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Instances of p_2 and p_1 keep no order any more")
    await accessible(page)
    await dialog.get_by_role("button", name="Drop it").click()
    await expect(page.get_by_role("row", name="p_2, p_1")).to_be_hidden()
    async with clock(place):
        await expect(page.get_by_role("region", name="Instances wait for each other")).to_be_hidden()
    assert "t_12" in {job.task for job in await place.engine.jobs(one) if job.status == "ready"}
    assert (await place.engine.instance(two)).status == "open.running"


async def test_nobody_is_shown_whom_they_may_not_see(place: Place) -> None:
    """clerk_1 sees that something waits for another instance, and not for which."""
    await place.engine.classes.put("crane", ["crane"])
    await place.engine.apply(LIFT)
    [other] = await place.engine.start_named("lift", [{}])
    mine = (await (await place.site.client("clerk_1")).instances.create("lift", {"load": "glass"})).id
    page = await place.visit("clerk_1", "/waiting")
    row = page.get_by_role("region", name="Who waits").get_by_role("row").nth(1)
    await expect(row).to_contain_text(f"lift {mine}")
    await expect(row).to_contain_text("the end of another instance")
    assert await page.locator(f"a[href='/instances/{other}']").count() == 0
    assert await page.get_by_role("button", name="Make a class").count() == 0
    page = await place.visit("outsider", "/waiting")
    await expect(page.get_by_role("heading", name="Nobody waits for anybody")).to_be_visible()
    assert await page.locator(f"a[href='/instances/{mine}']").count() == 0


async def test_of_a_circle_others_are_told_without_their_numbers(place: Place) -> None:
    one, two = await in_a_circle(place)
    for path in ("/waiting", "/exceptions", f"/exceptions/{two}", f"/instances/{two}"):
        page = await place.visit("clerk_1", path)
        await expect(page.get_by_text("another instance").first).to_be_visible()
        assert await page.locator(f"a[href='/instances/{one}']").count() == 0
        assert f"→ {one}" not in await page.locator("main").inner_text()
    client = await place.site.client("clerk_1")
    [stuck] = [each async for each in client.exceptions.instances()]
    [listed] = [each async for each in client.instances.all()]
    for seen in (stuck, listed, await client.instances.get(two)):
        [reason] = seen.reasons or []
        assert (None in reason["instances"], one in reason["instances"], "error" in reason) == (True, False, False)


async def test_of_a_circle_whoever_may_see_the_others_is_told_which_they_are(place: Place) -> None:
    one, two = await in_a_circle(place)
    page = await place.visit("boss", f"/instances/{two}")
    await expect(page.get_by_label("Who waits for whom").get_by_role("link", name=str(one))).to_be_visible()
    [reason] = (await (await place.site.client("boss")).instances.get(two)).reasons or []
    assert set(reason["instances"]) == {one, two}

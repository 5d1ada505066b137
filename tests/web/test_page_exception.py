"""Exceptions: what needs somebody, and its repair in place."""

import pytest
from attention_kit import clock
from driver import Engine as Driver
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Route, expect

from mutirao.model import Attribute, Definition, Task

pytestmark = pytest.mark.asyncio(loop_scope="session")

ORDER = Definition(
    name="order",
    creator="clerk",
    attributes=(
        Attribute("city", "text"),
        Attribute("amount", "number", default=1),
        Attribute("receipt", "text"),
        Attribute("day", "date"),
        Attribute("express", "boolean"),
    ),
    tasks=(
        Task(name="charge_card", when="receipt is null and amount > 0", retries=0, outputs=("receipt", "day")),
        Task(name="pack", when="receipt = 'odd'", fires="once", outputs=("receipt",)),
    ),
    final="receipt = 'paid'",
)


async def failed(place: Place, *errors: str, city: str = "Recife") -> list[int]:
    """Orders of clerk_1 whose card could not be charged."""
    await place.engine.apply(ORDER)
    client = await place.site.client("clerk_1")
    found = []
    async with Driver(place.engine.url) as driver:
        for error in errors:
            found.append((await client.instances.create("order", {"city": city})).id)
            await driver.fail_for_good(await driver.take("order", "charge_card"), error)
    return found


async def lose_the_answer(route: Route) -> None:
    """It is done, and whoever asked for it cannot know."""
    await route.fetch()
    await route.abort()


async def test_a_failed_task_is_tried_again_in_place_and_the_badge_follows(place: Place) -> None:
    first, second = await failed(place, "the bank is closed", "the bank is closed")
    page = await place.visit("clerk_1", "/exceptions")
    badge = page.locator("[data-badge=exceptions]")
    await expect(badge).to_have_text("2")
    row = page.locator(f"#exception-{first}")
    await expect(row.get_by_role("heading", name="Charge card failed")).to_be_visible()
    await expect(row.locator("code")).to_have_text("the bank is closed")
    await accessible(page)
    await row.get_by_role("button", name="Try again").click()
    await expect(row).to_be_hidden()
    await expect(badge).to_have_text("1")
    await expect(page.locator(f"#exception-{second}")).to_be_visible()
    assert [job.status for job in await place.engine.jobs(first)] == ["ready"]


async def test_a_failed_task_is_skipped_with_what_it_should_have_brought(place: Place) -> None:
    [instance] = await failed(place, "the bank is closed")
    page = await place.visit("clerk_1", "/exceptions", viewport=NARROW)
    await page.locator("summary", has_text="Repair").click()
    skip = page.get_by_role("region", name="Charge card: skip it")
    await expect(skip.get_by_label("Receipt")).to_be_visible()
    assert await skip.get_by_label("City").count() == 0  # it brings no such thing
    await accessible(page)
    await fits(page)
    await skip.get_by_label("Receipt").fill("paid")
    await skip.get_by_label("Day").fill("2026-05-01")
    await skip.get_by_label("Why").fill("paid in cash")
    await skip.get_by_role("button", name="Skip it").click()
    await expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible()
    ended = await place.engine.instance(instance)
    assert (ended.status, ended.state["day"]) == ("closed.completed", "2026-05-01")
    last = (await place.engine.trace(instance))[-1]
    assert (last.kind, last.writer, (last.note or {})["reason"]) == ("skip", "clerk_1", "paid in cash")


async def test_attributes_are_corrected_and_only_those_are_sent(place: Place) -> None:
    """Nothing fires with what it has; a value that makes no sense is refused at its field."""
    await place.engine.apply(ORDER)
    client = await place.site.client("clerk_1")
    instance = (await client.instances.create("order", {"city": "Recife"})).id
    await client.instances.set(instance, {"amount": 5})
    async with Driver(place.engine.url) as driver:
        await driver.complete(await driver.take("order", "charge_card"), receipt="lost")
    page = await place.visit("clerk_1", f"/exceptions/{instance}")
    await expect(page.get_by_role("heading", name="Nothing goes on")).to_be_visible()
    await accessible(page)
    form = page.get_by_role("region", name="Correct its data")
    await expect(form.get_by_label("Amount")).to_have_value("5")
    await form.get_by_label("City").fill("")
    await form.get_by_label("Receipt").fill("paid")
    await form.get_by_role("button", name="Correct it").click()
    await expect(page.get_by_role("heading", name="It needs nobody")).to_be_visible()
    last = (await place.engine.trace(instance))[-1]
    assert last.kind == "repair"
    assert (last.state or {})["city"] is None
    assert (last.state or {})["amount"] == 5
    assert (await place.engine.instance(instance)).status == "closed.completed"


async def test_whoever_was_quicker_is_told_about(place: Place) -> None:
    [instance] = await failed(place, "the bank is closed")
    page = await place.visit("clerk_1", f"/exceptions/{instance}")
    form = page.get_by_role("region", name="Correct its data")
    await form.get_by_label("City").fill("Natal")
    await place.engine.set(instance, {"city": "Olinda"})
    await form.get_by_role("button", name="Correct it").click()
    await expect(form.get_by_role("alert")).to_contain_text("Somebody else changed this meanwhile.")
    assert (await place.engine.instance(instance)).state["city"] == "Olinda"


async def test_all_of_a_kind_are_tried_again_by_a_batch(place: Place) -> None:
    instances = await failed(place, "order 17 is unknown", "order 4711 is unknown", "order 9 is unknown", "no network")
    page = await place.visit("boss", "/exceptions")
    kind = page.locator(".attention", has_text="3 instances")
    await expect(kind.get_by_role("heading", name="Charge card failed")).to_be_visible()
    await kind.get_by_role("button", name="Try all 3 again").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Each failed job is tried again")
    await expect(dialog).to_contain_text("Instances that this is done to: 3")
    await accessible(page)
    await dialog.get_by_label("Why").fill("the bank is back")
    await page.route("**/api/batches", lose_the_answer, times=1)
    await dialog.get_by_role("button", name="Try all 3 again").click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await dialog.get_by_role("button", name="Try all 3 again").click()
    await expect(page.get_by_role("region", name="Batches")).to_contain_text("0 done of 3")
    await expect(page.get_by_role("progressbar")).to_have_count(1)
    async with clock(place):
        await expect(page.get_by_role("region", name="Batches")).to_contain_text("3 done of 3")
    await expect(kind).to_be_hidden()
    await expect(page.locator(".attention", has_text="no network")).to_be_visible()
    await expect(page.locator("[data-badge=exceptions]")).to_have_text("1")
    jobs = [(await place.engine.jobs(each))[0].status for each in instances]
    assert jobs == ["ready", "ready", "ready", "failed"]


async def test_all_of_a_kind_are_corrected_with_one_change(place: Place) -> None:
    await place.engine.apply(ORDER)
    instances = await place.engine.start_named("order", [{}, {}])
    async with Driver(place.engine.url) as driver:
        for _ in instances:
            await driver.complete(await driver.take("order", "charge_card"), receipt="lost")
    page = await place.visit("boss", "/exceptions")
    await page.get_by_role("link", name="See to all 2").click()
    await expect(page.locator(".attention")).to_have_count(2)
    await page.get_by_role("button", name="Correct all 2").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Receipt").fill("paid")
    await dialog.get_by_role("button", name="Correct all 2").click()
    async with clock(place):
        await expect(page.get_by_role("heading", name="All of them are seen to")).to_be_visible()
    assert {(await place.engine.instance(each)).status for each in instances} == {"closed.completed"}


async def test_what_goes_wrong_appears_by_itself(place: Place) -> None:
    pages = [await place.visit(person, "/exceptions") for person in ("clerk_1", "boss")]
    for page in pages:
        await expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible()
        await accessible(page)
    await failed(place, "the bank is closed")
    for page in pages:
        await expect(page.get_by_role("heading", name="Charge card failed")).to_be_visible()
        await expect(page.locator("[data-badge=exceptions]")).to_have_text("1")
    await pages[0].locator("summary", has_text="Repair").click()
    await expect(pages[0].get_by_role("region", name="Correct its data")).to_be_visible()


async def test_nobody_sees_the_exceptions_of_others(place: Place) -> None:
    [instance] = await failed(place, "the bank is closed", city="Atlantis")
    for person in ("clerk_2", "outsider"):
        page = await place.visit(person, "/exceptions?flow=order&code=task_failed")
        await expect(page.get_by_role("heading", name="All of them are seen to")).to_be_visible()
        assert (await (await page.request.get("/badges")).json())["exceptions"] == 0
        await page.goto(f"/exceptions/{instance}")
        await expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing here")
    page = await place.visit("boss", "/exceptions?flow=nothing")
    await expect(page.get_by_role("main")).to_contain_text("nothing")

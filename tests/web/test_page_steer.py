"""Steering an instance: each act says what will happen first, and the second of two operators is told what the first one did."""

import pytest
from instance_kit import fail, finish, trips
from page_kit import NARROW, WIDE, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Locator, Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def opened(page: Page, button: str, title: str) -> Locator:
    await page.get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog", name=title)
    await expect(dialog).to_be_visible()
    return dialog


async def done(dialog: Locator, button: str) -> None:
    await dialog.get_by_role("button", name=button, exact=True).click()
    await expect(dialog).to_be_hidden()


async def is_new(place: Place, page: Page, instance: int) -> None:
    """The page shows the newest revision: what was read while something happened may name the one before it."""
    seen = await place.engine.seen_by(await place.engine.persons.number("boss")).instance(instance)
    await expect(page.locator("#cancel form")).to_have_attribute("data-revision", str(seen.revision))


async def test_an_instance_is_suspended_resumed_and_cancelled_with_a_reason(place: Place) -> None:
    well, _ = await trips(place)
    page = await place.visit("clerk_1", f"/instances/{well}")
    dialog = await opened(page, "Suspend", "Suspend this instance?")
    await expect(dialog).to_contain_text("Nothing else starts")
    await accessible(page)
    await dialog.get_by_label("Why").fill("the customer called")
    await done(dialog, "Suspend it")
    await expect(page.locator("h1 .status")).to_have_text("suspended")
    await expect(page.locator("#story li").first).to_contain_text("Suspended: the customer called")
    await expect(page.get_by_role("button", name="Suspend", exact=True)).to_have_count(0)
    await done(await opened(page, "Resume", "Resume this instance?"), "Resume it")
    await expect(page.locator("h1 .status")).to_have_text("running")
    await done(await opened(page, "Cancel it", "Cancel this instance?"), "Cancel it")
    await expect(page.locator("h1 .status")).to_have_text("cancelled")
    await expect(page.locator(".acts")).to_have_count(0)
    assert (await place.engine.instance(well)).status == "closed.aborted"


async def test_what_is_rare_is_in_a_menu_where_there_is_little_room(place: Place) -> None:
    well, _ = await trips(place)
    page = await place.visit("boss", f"/instances/{well}", viewport=NARROW)
    await expect(page.get_by_role("button", name="Suspend", exact=True)).to_be_visible()
    cancel = page.get_by_role("button", name="Cancel it", exact=True).first
    await expect(cancel).to_be_hidden()
    await page.locator("#more-acts summary").click()
    await expect(cancel).to_be_in_viewport(ratio=1)
    await accessible(page)
    await fits(page)
    await cancel.click()
    await expect(page.get_by_role("dialog", name="Cancel this instance?")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(cancel).to_be_hidden()
    await page.set_viewport_size(WIDE)
    await expect(cancel).to_be_visible()
    await expect(page.locator("#more-acts summary")).to_be_hidden()


async def test_only_what_somebody_changes_is_set_and_what_they_empty_is_taken_away(place: Place) -> None:
    well, _ = await trips(place)
    page = await place.visit("clerk_1", f"/instances/{well}")
    dialog = await opened(page, "Set attributes", "Set attributes")
    await expect(dialog.get_by_label("City")).to_have_value("Recife")
    await dialog.get_by_label("Days").fill("many")
    await expect(dialog).to_contain_text("A whole number is wanted")
    await dialog.get_by_label("Days").fill("5")
    await dialog.get_by_label("City").fill("")
    await accessible(page)
    await done(dialog, "Set them")
    await expect(page.locator("#story li").first.locator("dl")).to_contain_text("Recife → \N{EN DASH}")
    seen = await place.engine.instance(well)
    assert {name: value for name, value in seen.state.items() if value is not None} == {"days": 5, "approved": True}


async def test_nothing_is_set_where_nobody_changed_anything(place: Place) -> None:
    well, _ = await trips(place)
    before = (await place.engine.trace(well))[-1].id
    page = await place.visit("clerk_1", f"/instances/{well}")
    dialog = await opened(page, "Set attributes", "Set attributes")
    for _ in range(2):  # asking twice is no way round it
        await dialog.get_by_role("button", name="Set them").click()
        await expect(dialog.get_by_role("alert")).to_have_text("Nothing is changed yet: change at least one value.")
    assert (await place.engine.trace(well))[-1].id == before
    await dialog.get_by_label("City").fill("Olinda")
    await done(dialog, "Set them")
    await expect(page.locator("#data")).to_contain_text("Olinda")


async def test_a_refusal_is_told_in_words_of_the_page(place: Place) -> None:
    """And in those of the engine only where they say more."""
    well, _ = await trips(place)
    page = await place.visit("clerk_1", f"/instances/{well}")
    dialog = await opened(page, "Set attributes", "Set attributes")
    await dialog.get_by_label("City").fill("Olinda")
    await place.engine.cancel(well)
    await page.evaluate("for (const form of document.querySelectorAll('#set form')) delete form.dataset.revision")
    await dialog.get_by_role("button", name="Set them").click()
    await expect(dialog.get_by_role("alert")).to_have_text("This instance has ended.")
    page = await place.visit("clerk_1", "/instances/999999")
    await expect(page.get_by_role("main")).to_contain_text("There is no instance 999999.")


async def test_a_failed_job_is_tried_again_or_skipped_with_what_it_should_have_written(place: Place) -> None:
    _, ill = await trips(place)
    page = await place.visit("clerk_1", f"/instances/{ill}")
    await done(await opened(page, "Try again", "Try book_hotel again?"), "Try again")
    await expect(page.locator('[data-node="book_hotel"]')).to_have_attribute("data-state", "ready")
    await fail(place, "book_hotel", "still no answer")
    await expect(page.locator(".error")).to_have_text("still no answer")
    await is_new(place, page, ill)
    dialog = await opened(page, "Skip it", "Skip book_hotel?")
    await dialog.get_by_label("Hotel").fill("Boa Vista")
    await done(dialog, "Skip it")
    await expect(page.locator("#data")).to_contain_text("Boa Vista")
    await done(await opened(page, "Repair", "Repair this instance"), "Repair it")
    await expect(page.locator("#story")).to_contain_text("Repaired")


async def test_tasks_are_started_by_hand_gone_back_to_and_rolled_back(place: Place) -> None:
    well, _ = await trips(place)
    await finish(place, well, "book_hotel", hotel="Boa Vista")
    page = await place.visit("clerk_1", f"/instances/{well}")
    dialog = await opened(page, "Go back", "Go back to a task")
    await dialog.get_by_label("Task").select_option("book_hotel")
    await done(dialog, "Go back")
    await expect(page.locator("#story li").first).to_contain_text("Gone back to Book hotel")
    dialog = await opened(page, "Start a task", "Start a task by hand")
    await dialog.get_by_label("Task").select_option("approve")
    await done(dialog, "Start it")
    await expect(page.locator('[data-node="approve"]')).to_have_attribute("data-state", "ready")
    await finish(place, well, "approve", approved=True)
    await expect(page.locator('[data-node="approve"]')).to_have_attribute("data-state", "succeeded")
    await is_new(place, page, well)
    dialog = await opened(page, "Roll back", "Roll this instance back?")
    await expect(dialog.get_by_label("How far")).to_contain_text("Back to approve, and it goes on from there")
    await done(dialog, "Roll it back")
    await expect(page.locator("#story")).to_contain_text("To be rolled back")


async def test_the_second_of_two_operators_is_told_what_the_first_one_changed(place: Place) -> None:
    well, _ = await trips(place)
    mine, boss = await place.visit("clerk_1", f"/instances/{well}"), await place.visit("boss", f"/instances/{well}")
    dialog = await opened(boss, "Cancel it", "Cancel this instance?")
    theirs = await opened(mine, "Set attributes", "Set attributes")
    await theirs.get_by_label("City").fill("Olinda")
    await done(theirs, "Set them")
    await expect(boss.locator("#data")).to_contain_text("Olinda")
    await dialog.get_by_role("button", name="Cancel it", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Somebody else changed this meanwhile.")
    assert (await place.engine.instance(well)).is_open
    await dialog.get_by_role("button", name="Leave it").click()
    await is_new(place, boss, well)
    await mine.reload()
    handing = await opened(mine, "Hand over", "Hand it over")
    await handing.get_by_label("To", exact=False).first.fill("clerk_2")
    await done(handing, "Hand it over")
    await expect(mine.locator("#facts")).to_contain_text("clerk_2")
    await expect(mine.locator(".acts")).to_have_count(0)
    await is_new(place, boss, well)
    await done(await opened(boss, "Cancel it", "Cancel this instance?"), "Cancel it")
    await expect(mine.locator("h1 .status")).to_have_text("cancelled")

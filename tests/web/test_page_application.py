"""The file of an application, as administrators see it and change it: by the process language, which the API takes."""

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import expect

from mutirao.model import Application

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_file_of_an_application_is_changed_and_the_rest_of_it_stays(place: Place) -> None:
    before = Application(name="Write & print", filename="/opt/write 1", os="Linux", hosts=("printer-1",))
    await place.engine.library.put(before)
    page = await place.visit("boss", "/applications")
    row = page.get_by_role("row", name="Write & print")
    await expect(row.locator("code")).to_have_text("/opt/write 1")
    await row.get_by_role("link", name="Change Write & print").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Change Write & print")
    await expect(page.get_by_text("No mistakes found.")).to_be_visible()
    await page.set_viewport_size(NARROW)
    await accessible(page)
    await fits(page)
    text = page.get_by_label("The application, in the process language")
    known = await text.input_value()
    await text.fill(known.replace("OS ", "OZ "))
    await expect(page.locator(".findings li").first).to_contain_text("OZ")
    await text.fill(known.replace("/opt/write 1", "/opt/write 2"))
    await page.get_by_role("button", name="Put in place").click()
    await expect(page).to_have_url(f"{place.url}/applications")
    await expect(row.locator("code")).to_have_text("/opt/write 2")
    [after] = (await place.engine.library.applications()).values()
    assert (after.filename, after.os, after.hosts) == ("/opt/write 2", before.os, before.hosts)


async def test_only_administrators_change_applications_and_only_those_that_are_there(place: Place) -> None:
    page = await place.visit("clerk_1", "/flows/new-flow?application=Write")
    await expect(page.get_by_role("heading", level=1)).to_have_text("This is not for you to see")
    page = await place.visit("boss", "/flows/new-flow?application=Write")
    await expect(page.get_by_role("main")).to_contain_text('There is no application "Write".')

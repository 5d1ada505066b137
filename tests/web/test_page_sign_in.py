"""Signing in and out, and what is there for nobody."""

import re

import pytest
from page_kit import Place, a_place, accessible  # noqa: F401 gives the fixture
from playwright.async_api import expect
from served import PASSWORD

from mutirao.people import set_password

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_whoever_is_not_signed_in_signs_in_and_comes_to_where_they_wanted(place: Place) -> None:
    await set_password(place.engine, None, "clerk_1", PASSWORD)
    page = await place.visit(None, "/work?sort=priority")
    await expect(page).to_have_title("Sign in · Mutirão")
    await accessible(page)
    await page.get_by_label("Name").fill("clerk_1")
    await page.get_by_label("Password").fill("wrong wrong wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("Name or password is wrong.")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{place.url}/work?sort=priority")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page).to_have_url(f"{place.url}/sign-in")


async def test_after_too_many_attempts_one_is_told_until_when_to_wait(place: Place) -> None:
    await set_password(place.engine, None, "clerk_1", PASSWORD)
    page = await place.visit(None, "/sign-in")
    await page.get_by_label("Name").fill("clerk_1")
    told = page.get_by_role("alert")
    for attempt in range(6):
        await page.get_by_label("Password").fill(f"wrong wrong {attempt}")
        async with page.expect_response("**/api/session"):
            await page.get_by_role("button", name="Sign in").click()
        await expect(told).to_be_visible()
    await expect(told).to_contain_text("There were too many attempts.")
    await expect(told).to_contain_text(re.compile(r"try again after \d{4}-\d\d-\d\d \d\d:\d\d"))


async def test_signing_in_leads_to_no_other_site(place: Place) -> None:
    for elsewhere in (
        "//example.org",
        "https://example.org",
        "/\\example.org",
        "/%09/example.org",
        "/%0a/example.org",
        "javascript:alert(1)",
    ):
        page = await place.visit(None, f"/sign-in?next={elsewhere}")
        assert await page.locator("form").get_attribute("data-then") == "/"


async def test_an_address_where_there_is_nothing_says_so(place: Place) -> None:
    page = await place.visit("clerk_1", "/nothing/here")
    await expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing here")
    await accessible(page)

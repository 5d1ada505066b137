"""Roles: who is in them, and where flows name them."""

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_role_is_added_filled_changed_and_removed(place: Place) -> None:
    page = await place.visit("boss", "/roles")
    await accessible(page)
    await page.get_by_role("button", name="Add a role").click()
    dialog = page.get_by_role("dialog", name="Add a role")
    await accessible(page)
    await dialog.get_by_label("Name").fill("clerk")
    await dialog.get_by_role("button", name="Add").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("This name is taken.")
    await dialog.get_by_label("Name").fill("manager")
    await dialog.get_by_label("What its members do").fill("They decide.")
    await dialog.get_by_role("button", name="Add").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("manager")
    await expect(page.get_by_role("heading", name="Nobody is in this role")).to_be_visible()
    await page.get_by_role("button", name="Put people in").click()
    await accessible(page)
    await page.get_by_label("Names, with commas between them").fill("clerk_1, clerk_2")
    await page.get_by_role("button", name="Put in").click()
    await expect(page.get_by_role("heading", name="2 members")).to_be_visible()
    await page.get_by_role("button", name="Take out clerk_2").click()
    await page.get_by_role("dialog").get_by_role("button", name="Take out").click()
    await expect(page.get_by_role("heading", name="1 member")).to_be_visible()
    await page.get_by_role("button", name="Change").click()
    await page.get_by_role("dialog").get_by_label("Name").fill("head")
    await page.get_by_role("dialog").get_by_role("button", name="Change").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("head")
    assert [each.name for each in await place.engine.persons.page(None)][:1] == ["boss"]
    assert (await place.engine.persons.get(None, "clerk_1")).roles == ["clerk", "head"]
    await page.get_by_role("button", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page).to_have_url(f"{place.url}/roles")
    await expect(page.get_by_role("link", name="head")).to_have_count(0)


async def test_a_role_that_a_flow_names_says_where_and_stays(place: Place) -> None:
    page = await place.visit("boss", "/roles")
    await expect(page.get_by_role("row", name="clerk")).to_contain_text("request")
    await page.get_by_role("link", name="clerk", exact=True).click()
    await expect(page.get_by_text("may start it, does approve")).to_be_visible()
    await page.get_by_role("button", name="Remove").click()
    await accessible(page)
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Remove").click()
    await expect(dialog.get_by_role("alert")).to_contain_text('flow "request" may be started by it')


async def test_others_see_a_role_and_its_members_and_change_nothing(place: Place) -> None:
    await place.engine.roles.change(None, "clerk", {"description": "Those at the counter."})
    page = await place.visit("outsider", "/roles")
    await expect(page.get_by_role("row", name="clerk")).to_contain_text("Those at the counter.")
    assert "request" not in await page.content()  # which they may not start
    await page.get_by_role("link", name="clerk", exact=True).click()
    await expect(page.get_by_role("row", name="clerk_1")).to_be_visible()
    said = await page.content()
    for word in ("request", 'data-api="POST /api/roles', "Put people in"):
        assert word not in said
    missing = await place.visit("outsider", "/roles/clark")
    await expect(missing.locator("main")).to_contain_text('did you mean "clerk"?')


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_roles_fit_a_telephone(place: Place, scheme: str) -> None:
    for path in ("/roles", "/roles/clerk"):
        page = await place.visit("boss", path, viewport=NARROW, color_scheme=scheme)
        await fits(page)
        await accessible(page)

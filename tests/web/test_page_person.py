"""People: an administrator sees to them, and everybody to themselves."""

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Page, expect
from served import PASSWORD

from mutirao.people import add_token, set_password
from mutirao.server.client import Client
from mutirao.server.page.agent import short_agent

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANOTHER = "another long and secret one"


async def sign_in(page: Page, name: str, password: str) -> None:
    await page.goto("/sign-in")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).not_to_have_title("Sign in · Mutirão")


async def test_a_person_is_added_gets_a_password_once_and_signs_in(place: Place) -> None:
    page = await place.visit("boss", "/people")
    await page.get_by_role("button", name="Add a person").click()
    form = page.get_by_role("dialog", name="Add a person")
    await accessible(page)
    await form.get_by_label("Name to sign in with").fill("clerk_3")
    await form.get_by_label("Full name").fill("Clerk of the third floor")
    await form.get_by_label("E-mail").fill("nowhere")
    await form.get_by_label("E-mail").fill("clerk_3@example.org")
    await form.get_by_role("checkbox", name="clerk").check()
    await form.get_by_role("button", name="Add").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Clerk of the third floor")
    await page.get_by_role("button", name="Make the first password").click()
    secret = page.locator("#shown-once")
    await expect(secret).to_be_visible()
    await accessible(page)
    password = await secret.text_content() or ""
    await page.get_by_role("button", name="I have it").click()
    await expect(secret).to_have_text("")
    assert password not in await page.content()
    theirs = await place.visit(None, "/sign-in")
    await sign_in(theirs, "clerk_3", password)
    await theirs.goto("/people/clerk_3")
    await expect(theirs.locator("#person")).to_contain_text("clerk_3@example.org")
    found = await place.engine.persons.get(None, "clerk_3")
    assert (found.roles, found.made_by) == (["clerk"], "boss")


async def test_people_are_searched_and_paged_and_the_disabled_marked(place: Place) -> None:
    for number in range(60):
        await place.engine.persons.add(None, f"temp_{number:02}", full_name="Temporary help")
    await place.engine.persons.disable(None, "temp_07")
    page = await place.visit("boss", "/people")
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(50)
    await page.get_by_role("link", name="More").click()
    await expect(rows).to_have_count(14)
    await page.get_by_label("Search").fill("temp_0")
    await expect(rows).to_have_count(10)
    await expect(page.get_by_role("row", name="temp_07")).to_contain_text("disabled")
    await page.get_by_label("Who").select_option("disabled")
    await expect(rows).to_have_count(1)
    assert "status=disabled" in page.url
    await page.get_by_label("Search").fill("nobody at all")
    await expect(page.get_by_role("heading", name="Nobody fits")).to_be_visible()
    await accessible(page)
    refused = await place.visit("boss", "/people?status=nonsense")
    await expect(refused.get_by_role("heading", level=1)).to_have_text("That did not work")


async def test_an_administrator_changes_disables_and_lets_in_again(place: Place) -> None:
    await set_password(place.engine, None, "clerk_2", PASSWORD)
    theirs = await place.visit("clerk_2", "/people/clerk_2")
    page = await place.visit("boss", "/people/clerk_2")
    await page.get_by_role("button", name="Change").first.click()
    await page.get_by_label("Full name").fill("Second Clerk")
    await page.get_by_role("dialog").get_by_role("button", name="Change").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Second Clerk")
    await page.get_by_role("button", name="Put into a role").click()
    await page.get_by_role("dialog").get_by_label("Role").select_option("administrator")
    await page.get_by_role("dialog").get_by_role("button", name="Put in").click()
    await expect(page.locator(".role-list")).to_contain_text("administrator")
    await page.get_by_role("button", name="Take out of the role administrator").click()
    await page.get_by_role("dialog").get_by_role("button", name="Take out").click()
    await expect(page.locator(".role-list")).not_to_contain_text("administrator")
    await page.get_by_role("button", name="Disable").click()
    await accessible(page)
    await page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    await expect(page.locator(".head .status").first).to_have_text("disabled")
    await theirs.goto("/people/clerk_2")
    await expect(theirs).to_have_title("Sign in · Mutirão")
    await page.get_by_role("button", name="Let them sign in again").click()
    await expect(page.get_by_role("button", name="Disable")).to_be_visible()
    assert (await place.engine.persons.get(None, "clerk_2")).disabled_at is None


async def test_of_two_administrators_who_change_somebody_the_slower_is_told(place: Place) -> None:
    page = await place.visit("boss", "/people/clerk_1")
    await page.get_by_role("button", name="Change").first.click()
    await page.get_by_label("Full name").fill("First Clerk")
    await place.engine.persons.change(None, "clerk_1", {"email": "clerk_1@example.org"})
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Change").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Somebody else changed this meanwhile.")
    found = await place.engine.persons.get(None, "clerk_1")
    assert (found.full_name, found.email) == (None, "clerk_1@example.org")


async def test_one_changes_ones_password_and_ends_other_sessions(place: Place) -> None:
    page = await place.visit("clerk_1", "/work")
    elsewhere = await place.visit(None, "/sign-in")
    await sign_in(elsewhere, "clerk_1", PASSWORD)
    await page.get_by_role("link", name="clerk_1").click()
    await expect(page.locator(".lines .status", has_text="this one")).to_have_count(1)
    await expect(page.locator(".lines li").first).to_contain_text("Chrome")
    await accessible(page)
    await page.get_by_role("button", name="Sign out everywhere else").click()
    await expect(page.get_by_role("button", name="Sign out everywhere else")).to_have_count(0)
    await elsewhere.goto("/work")
    await expect(elsewhere).to_have_title("Sign in · Mutirão")
    await page.get_by_label("Your password now").fill("not the one I have")
    await page.get_by_label("Your new password").fill(ANOTHER)
    await page.get_by_role("button", name="Change the password").click()
    await expect(page.locator("[data-problem]:visible")).to_contain_text("Name or password is wrong.")
    await page.get_by_label("Your password now").fill(PASSWORD)
    await page.get_by_role("button", name="Change the password").click()
    await expect(page.locator("#told")).to_contain_text("Your password is changed.")
    async with Client(place.url) as client:
        assert (await client.sessions.sign_in("clerk_1", ANOTHER)).name == "clerk_1"


async def test_a_token_is_shown_once_works_and_ends(place: Place) -> None:
    page = await place.visit("clerk_1", "/people/clerk_1")
    await page.get_by_role("button", name="Make one").click()
    await accessible(page)
    await page.get_by_label("What is it for?").fill("nightly import")
    await page.get_by_role("button", name="Make it").click()
    await expect(page.locator("#shown-once")).not_to_be_empty()
    secret = await page.locator("#shown-once").text_content() or ""
    assert secret.startswith("mut_")
    async with Client(place.url, token=secret) as client:
        assert (await client.sessions.me()).name == "clerk_1"
    await page.get_by_role("button", name="Copy").click()
    await expect(page.locator("#told")).to_have_text("Copied.")
    await page.get_by_role("button", name="I have it").click()
    await page.reload()
    assert secret not in await page.content()
    await page.get_by_role("button", name="Remove the token nightly import").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_text("nightly import", exact=True)).to_have_count(0)
    assert await place.engine.access.tokens(None, "clerk_1") == []


async def test_one_goes_away_and_comes_back(place: Place) -> None:
    page = await place.visit("clerk_1", "/people/clerk_1")
    await page.get_by_role("button", name="Say when").click()
    await accessible(page)
    await page.get_by_label("Until (empty").fill("2099-12-24T18:00")
    await page.get_by_label("Who stands in").fill("clerk_1")
    await page.get_by_role("button", name="Note it").click()
    await expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    await page.get_by_label("Who stands in").fill("clerk_2")
    await page.get_by_role("button", name="Note it").click()
    await expect(page.locator("#person .head").first).to_contain_text("away")
    found = await place.engine.persons.get(None, "clerk_1")
    assert found.substitute == "clerk_2"
    assert found.away_until is not None
    assert found.away_until.isoformat() == "2099-12-24T21:00:00+00:00"  # it was six in the evening in Recife
    await page.get_by_role("button", name="Back again").click()
    await expect(page.get_by_text("Not away, and nothing planned.")).to_be_visible()
    await page.get_by_role("link", name="Webhooks").click()
    await expect(page).to_have_url(f"{place.url}/messages/webhooks")


async def test_others_see_names_and_roles_and_no_more(place: Place) -> None:
    await place.engine.persons.change(None, "clerk_1", {"email": "clerk_1@example.org"})
    await add_token(place.engine, None, "clerk_1", "nightly import")
    for reader in ("outsider", "clerk_2"):
        page = await place.visit(reader, "/people")
        await expect(page.get_by_role("row", name="clerk_1")).to_contain_text("clerk")
        await expect(page.get_by_role("button", name="Add a person")).to_have_count(0)
        assert "example.org" not in await page.content()
        await page.get_by_role("link", name="clerk_1", exact=True).click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("clerk_1")
        said = await page.content()
        for secret in ("example.org", "nightly import", "In work", "Password", "Disable", 'data-opens="change'):
            assert secret not in said, secret
    page = await place.visit("outsider", "/people/no-such-person")
    await expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing here")


@pytest.mark.parametrize(
    ("said", "short"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox 140, Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/150.0 Safari/537.36 Edg/150.0", "Edge 150, Windows"),
        ("Mozilla/5.0 (iPhone; like Mac OS X) AppleWebKit/605.1 Version/18.1 Mobile Safari/604.1", "Safari 18, iPhone"),
        ("curl/8.14.1", "curl/8.14.1"),
    ],
)
async def test_a_browser_is_told_in_short(said: str, short: str) -> None:
    assert short_agent(said) == short


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_pages_about_people_fit_a_telephone(place: Place, scheme: str) -> None:
    await place.engine.roles.add(None, "those who answer the telephone in the afternoon")
    for path in ("/people", "/people/boss", "/people/clerk_1"):
        page = await place.visit("boss", path, viewport=NARROW, color_scheme=scheme)
        await fits(page)
        await accessible(page)

"""Somebody is away: their substitute finds, takes and finishes what is theirs, and is told for whom."""

from datetime import UTC, datetime, timedelta

import pytest
from page_kit import Place, a_place, accessible  # noqa: F401 gives the fixture
from playwright.async_api import Locator, Page, expect

from mutirao.database.person import Away

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = "You do it instead of clerk_1, who is away."


async def go_away(place: Place, person: str, substitute: str) -> None:
    since = datetime.now(UTC) - timedelta(hours=1)
    await place.engine.persons.away(None, person, Away(since, since + timedelta(days=30), substitute))


def row(page: Page, job: int) -> Locator:
    return page.locator(f"#item-{job}")


async def test_a_substitute_finishes_what_is_for_somebody_who_is_away(place: Place) -> None:
    """The outsider is no clerk: all that they find is another person's."""
    instance, job = await place.site.item(city="Recife")
    page = await place.visit("outsider", "/work")
    await expect(page.get_by_role("heading", name="Nothing to do")).to_be_visible()
    await go_away(place, "clerk_1", "outsider")
    await page.reload()
    await expect(row(page, job)).to_contain_text("instead of clerk_1")
    await row(page, job).get_by_role("link").click()
    await expect(page.locator("#facts dt:text-is('Instead of') + dd")).to_have_text("clerk_1")
    await page.locator("#take").click()
    await expect(page.locator("#standing")).to_contain_text("It is yours.")
    await expect(page.locator("#standing")).to_contain_text(WORDS)
    await accessible(page)
    await page.goto("/work")
    await expect(row(page, job)).to_contain_text("instead of clerk_1")
    await page.goto(f"/items/{job}")
    await page.get_by_label("Answer").fill("yes")
    await page.get_by_role("button", name="Finish").click()
    await expect(page.get_by_text("Finished.")).to_be_visible()
    page = await place.visit("boss", f"/instances/{instance}")
    await expect(page.locator("#story li").first).to_contain_text("outsider")
    assert (await place.engine.instance(instance)).state["answer"] == "yes"


async def test_what_somebody_held_when_they_went_is_taken_from_them_first(place: Place) -> None:
    _, job = await place.site.item(city="Recife")
    _, own = await place.site.item(city="Natal")
    for person, taken in (("clerk_1", job), ("clerk_2", own)):
        await (await place.site.client(person)).worklist.select(taken)
    await go_away(place, "clerk_1", "clerk_2")
    page = await place.visit("clerk_2", "/work")
    await expect(row(page, job)).to_contain_text("instead of clerk_1")
    await expect(row(page, own)).not_to_contain_text("instead of")
    await row(page, job).get_by_role("link").click()
    await page.get_by_role("button", name="Take it from clerk_1").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("clerk_1 cannot finish it any more, and is told.")
    await dialog.get_by_role("button", name="Take it from clerk_1").click()
    await expect(page.get_by_text("Taken from clerk_1.")).to_be_visible()
    await page.locator("#take").click()
    await page.get_by_label("Answer").fill("yes")
    await expect(page.locator("#standing")).not_to_contain_text("instead of")  # they are a clerk themselves
    await page.get_by_role("button", name="Finish").click()
    await expect(page).to_have_url(f"{place.url}/items/{own}#fill")

"""Two people at two browsers: what one does, the other sees at once, without reading the page again."""

import asyncio

import pytest
from page_kit import Place, a_place  # noqa: F401 gives the fixture
from playwright.async_api import Page, expect
from work_kit import CLAIM, claim

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_one_takes_goes_from_the_list_of_the_other_and_comes_back(place: Place) -> None:
    _, job = await place.site.item()
    mine, theirs = await place.visit("clerk_1", "/work"), await place.visit("clerk_2", "/work")
    for page in (mine, theirs):
        await expect(page.locator(f"#item-{job}")).to_be_visible()
    await mine.get_by_role("button", name="Take", exact=True).click()
    await expect(theirs.locator(f"#item-{job}")).to_have_count(0)
    await expect(theirs.get_by_role("heading", name="Nothing to do")).to_be_visible()
    await mine.get_by_role("button", name="Give back").click()
    await mine.get_by_role("dialog").get_by_role("button", name="Give back").click()
    await expect(theirs.locator(f"#item-{job}")).to_be_visible()


async def test_of_two_who_take_at_once_one_is_told_who_has_it(place: Place) -> None:
    _, job = await place.site.item()
    pages = {name: await place.visit(name, "/work") for name in ("clerk_1", "clerk_2")}
    for page in pages.values():
        # Neither hears of the other in time.
        await page.evaluate("document.addEventListener('htmx:beforeRequest', (event) => event.preventDefault())")
        await expect(page.locator(f"#take-{job}")).to_be_visible()
    await asyncio.gather(*(page.locator(f"#take-{job}").click() for page in pages.values()))
    [winner] = [name for name, page in pages.items() if await _has_gone_to(page, job)]
    [loser] = [name for name in pages if name != winner]
    told = pages[loser].get_by_role("alert").filter(has_text="Somebody else has taken this item.")
    await expect(told).to_contain_text(f'"{winner}" holds')
    await expect(pages[loser]).to_have_url(f"{place.url}/work")


async def _has_gone_to(page: Page, job: int) -> bool:
    """Whether they have come to the item, or were refused: one of both happens."""
    refused = page.get_by_role("alert").filter(has_text="Somebody else")
    filled = page.locator("#finish")
    await expect(refused.or_(filled)).to_be_visible()
    return page.url.endswith(f"/items/{job}#fill")


async def test_whoever_looks_at_an_item_is_told_who_has_taken_and_that_it_has_ended(place: Place) -> None:
    await place.engine.apply(CLAIM)
    _, job = await claim(place)
    looking = await place.visit("clerk_2", f"/items/{job}")
    doing = await place.visit("clerk_1", f"/items/{job}")
    await expect(looking.get_by_text("Nobody has taken it yet.")).to_be_visible()
    await doing.keyboard.press("t")
    await expect(looking.locator("#standing")).to_have_text("clerk_1 has taken this item.", use_inner_text=True)
    await expect(looking.locator("#take")).to_have_count(0)
    await doing.get_by_label("Granted").select_option("yes")
    await doing.keyboard.press("Control+Enter")
    await expect(looking.get_by_role("heading", level=1)).to_have_text("Nothing to do here any more")
    await expect(looking.get_by_role("link", name="To my work")).to_be_visible()


async def test_an_item_that_is_taken_from_somebody_leaves_them_what_they_wrote(place: Place) -> None:
    await place.engine.apply(CLAIM)
    instance, job = await claim(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await page.keyboard.press("t")
    await page.get_by_label("Remarks").fill("an hour of work")
    in_charge = await place.visit("clerk_1", f"/items/{job}")
    await in_charge.get_by_role("button", name="Take it from clerk_2").click()
    await in_charge.get_by_role("dialog").get_by_role("button", name="Take it from clerk_2").click()
    await expect(page.get_by_text("It was taken from you")).to_be_visible()
    await expect(page.get_by_label("Remarks")).to_have_value("an hour of work")
    await in_charge.locator("#take").click()
    await expect(page.get_by_text("clerk_1 has taken this item.")).to_be_visible()
    await page.get_by_role("button", name="Finish").click()
    refused = page.locator("#finish").get_by_role("alert")
    await expect(refused).to_contain_text("This item is with somebody else now.")
    await expect(refused).to_contain_text("your result is not written, but kept as attachment")
    await expect(in_charge.locator("#late")).to_contain_text("clerk_2")
    await in_charge.locator("#late summary").click()
    await expect(in_charge.locator("#late")).to_contain_text("an hour of work")
    await in_charge.get_by_label("Granted").select_option("yes")
    await in_charge.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Nothing to do here any more")
    await expect(page.get_by_text("What you have written is still here.")).to_be_visible()
    await expect(page.get_by_label("Remarks")).to_have_value("an hour of work")
    state = (await (await place.site.client("clerk_1")).instances.get(instance)).state
    assert (state["granted"], state.get("remarks")) == (True, None)


async def test_what_was_taken_away_and_taken_again_is_finished_from_the_same_form(place: Place) -> None:
    await place.engine.apply(CLAIM)
    instance, job = await claim(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await page.keyboard.press("t")
    await page.get_by_label("Remarks").fill("half")
    await (await place.site.client("boss")).worklist.give_back(job)
    await page.get_by_role("button", name="Take", exact=True).click()
    await expect(page.get_by_text("It is yours.")).to_be_visible()
    await page.get_by_label("Granted").select_option("yes")
    await page.get_by_role("button", name="Finish").click()
    await expect(page).to_have_url(f"{place.url}/work")
    state = (await (await place.site.client("clerk_1")).instances.get(instance)).state
    assert (state["granted"], state["remarks"]) == (True, "half")


async def test_a_delegated_item_appears_at_the_other_one_with_a_message(place: Place) -> None:
    _, job = await place.site.item()
    theirs = await place.visit("clerk_2", "/work")
    unread = theirs.locator("[data-badge=messages]")
    await expect(theirs.locator("[data-badge=work]")).to_have_text("1")
    await expect(unread).to_be_hidden()
    mine = await place.visit("clerk_1", f"/items/{job}")
    await mine.keyboard.press("t")
    await expect(theirs.locator("[data-badge=work]")).to_be_hidden()
    await mine.get_by_role("button", name="Delegate").click()
    options = mine.locator("#persons option")
    await expect(options).to_have_count(1)  # of the role, and not oneself
    await expect(options).to_have_attribute("value", "clerk_2")
    await mine.get_by_role("dialog").get_by_label("Person").fill("clerk_2")
    await mine.get_by_role("dialog").get_by_label("Why (it stands in the history)").fill("you know it")
    await mine.get_by_role("dialog").get_by_role("button", name="Delegate").click()
    row = theirs.locator(f"#item-{job}")
    await expect(row).to_contain_text("for you alone")
    await expect(unread).to_have_text("1")
    await expect(theirs.locator("[data-badge=work]")).to_have_text("1")
    await row.get_by_role("button", name="Take").click()
    await expect(theirs.locator("#story")).to_contain_text("Approve: delegated to clerk_2: you know it")

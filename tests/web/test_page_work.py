"""My work: the worklist in all its orders, with filters that are kept, by mouse and by keyboard, and always up to date."""

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Locator, Page, expect
from work_kit import CLAIM, claim

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def jobs(page: Page) -> list[int]:
    """The items that are shown, from above."""
    found = await page.locator("[data-row]").evaluate_all("(rows) => rows.map((row) => Number(row.dataset.job))")
    return list(found)


def row(page: Page, job: int) -> Locator:
    return page.locator(f"#item-{job}")


async def test_items_come_in_every_order_and_reversed(place: Place) -> None:
    client = await place.site.client("clerk_1")
    await place.engine.apply(CLAIM)
    _, due = await claim(place)
    found = [due]
    for priority, city in ((3, "Recife" * 200), (9, "Natal")):
        instance = await client.instances.create("request", {"city": city}, priority=priority)
        found += [job.id async for job in client.instances.jobs(instance.id)]
    first, large, urgent = found
    page = await place.visit("clerk_2", "/work")
    assert await jobs(page) == [first, large, urgent]
    orders = {"Priority": [urgent, large, first], "Deadline": [first, large, urgent], "Size": [urgent, first, large]}
    for order, expected in orders.items():
        await page.get_by_label("Order").select_option(order)
        await expect(page).to_have_url(f"{place.url}/work?sort={order.lower()}")
        await expect(page.locator("[data-row]").first).to_have_attribute("data-job", str(expected[0]))
        assert await jobs(page) == expected
    await page.get_by_label("Reversed").check()
    await expect(page).to_have_url(f"{place.url}/work?sort=size&descending=true")
    await expect(page.locator("[data-row]").first).to_have_attribute("data-job", str(large))


async def test_rows_are_dragged_by_mouse_and_moved_by_keys(place: Place) -> None:
    first, second, third = [(await place.site.item())[1] for _ in range(3)]
    page = await place.visit("clerk_2", "/work?sort=hand")
    async with page.expect_response(lambda answer: answer.url.endswith("/move")) as moved:
        await row(page, third).drag_to(row(page, first), target_position={"x": 200, "y": 5})
    assert (await moved.value).ok
    await expect(page.get_by_role("status").filter(has_text="Moved.")).to_be_visible()
    await page.reload()
    assert await jobs(page) == [third, first, second]
    await page.keyboard.press("j")
    await page.keyboard.press("J")
    await expect(page.locator("[data-row]").first).to_have_attribute("data-job", str(first))
    await expect(page.locator(f"#down-{third}")).to_be_focused()
    async with page.expect_response(lambda answer: answer.url.endswith("/move")):
        await page.keyboard.press("Enter")
    await place.site.item()
    await expect(page.locator("[data-row]")).to_have_count(4)  # it was read again, and the focus has stayed
    await expect(page.locator(f"#down-{third}")).to_be_focused()
    await page.get_by_label("Reversed").check()
    await expect(page.locator("[data-row]").last).to_have_attribute("data-job", str(first))
    async with page.expect_response(lambda answer: answer.url.endswith("/move")):
        await row(page, first).get_by_label("Move up").click()
    await page.reload()
    assert (await jobs(page))[-2:] == [first, second]


async def test_a_filter_is_kept_by_name_and_the_last_one_is_remembered(place: Place) -> None:
    await place.engine.apply(CLAIM)
    await claim(place)
    for city in ("Recife", "Natal", "Recife"):
        await place.site.item(city=city)
    page = await place.visit("clerk_2", "/work")
    counts = page.get_by_label("How much there is, by flow and role")
    await expect(counts.get_by_role("link")).to_have_text(["claim · clerk 1", "request · clerk 3"])
    await counts.get_by_role("link", name="request").click()
    await expect(page.locator("[data-row]")).to_have_count(3)
    await expect(counts.get_by_role("link")).to_have_count(2)
    await page.get_by_label("Search").press_sequentially("nothing like it")
    await expect(counts).to_have_count(0)  # they tell of all, and less is wanted
    await page.get_by_label("Search").fill("")
    await expect(counts.get_by_role("link")).to_have_count(2)
    await page.get_by_text("More filters").click()
    await page.get_by_label("Attribute").fill("city=Recife")
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-row]")).to_have_count(2)
    await page.get_by_role("button", name="Keep this filter").click()
    await accessible(page)
    await page.get_by_label("Call it").fill("Recife / north")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="Recife / north")).to_have_attribute("aria-current", "true")
    await page.locator("[data-row] a").first.click()
    await page.get_by_label("Pages").get_by_role("link", name="My work").click()
    await expect(page.locator("[data-row]")).to_have_count(2)
    await expect(page.get_by_label("Attribute")).to_have_value("city=Recife")
    await page.get_by_label("Kept filters").get_by_role("link", name="All").click()
    await expect(page.locator("[data-row]")).to_have_count(4)
    await page.goto("/work")
    await expect(page.locator("[data-row]")).to_have_count(4)
    await page.get_by_role("link", name="Recife / north").click()
    await expect(page.locator("[data-row]")).to_have_count(2)
    await page.get_by_label("Forget the filter Recife / north").click()
    await expect(page.get_by_role("link", name="Recife / north")).to_have_count(0)


async def test_take_the_next_takes_what_the_filter_shows_and_says_when_there_is_nothing(place: Place) -> None:
    await place.engine.apply(CLAIM)
    await place.site.item()
    _, wanted = await claim(place)
    page = await place.visit("clerk_2", "/work")
    await page.get_by_label("Flow", exact=True).fill("claim")
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-row]")).to_have_count(1)
    await page.get_by_role("button", name="Take the next").click()
    await expect(page).to_have_url(f"{place.url}/items/{wanted}#fill")
    await page.keyboard.press("Escape")
    await page.keyboard.press("n")  # the filter is remembered
    await expect(page.get_by_text("There is nothing to take at present.")).to_be_visible()
    await expect(page).to_have_url(f"{place.url}/items/{wanted}#fill")


async def test_a_search_finds_and_bad_filters_say_what_would_be_right(place: Place) -> None:
    await place.engine.apply(CLAIM)
    await place.site.item()
    await claim(place)
    page = await place.visit("clerk_2", "/work")
    await page.keyboard.press("/")
    await page.keyboard.type("damage")
    await expect(page.locator("[data-row]")).to_have_count(1)
    await expect(page.get_by_label("Search")).to_be_focused()
    await expect(page).to_have_url(f"{place.url}/work?sort=arrival&text=damage")
    await page.get_by_label("Search").fill("nowhere")
    await expect(page.get_by_role("heading", name="Nothing fits this filter")).to_be_visible()
    await page.get_by_label("Search").fill("")
    await page.get_by_text("More filters").click()
    for text, says in (("city", "name=value"), ("amount=3", "searchable"), ("colour=red", "colour")):
        await page.get_by_label("Attribute").fill(text)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert").filter(has_text=says)).to_be_visible()
    for query, says in {"sort=taste": "arrival", "priority=high": "whole number", "cursor=zzz": "cursor"}.items():
        page = await place.visit("clerk_2", f"/work?{query}")
        await expect(page.get_by_role("alert").filter(has_text=says)).to_be_visible()
        await expect(page.get_by_role("heading", level=1)).to_have_text("My work")


async def test_the_list_is_live_and_keeps_focus_and_scrolling(place: Place) -> None:
    found = [(await place.site.item())[1] for _ in range(30)]
    page = await place.visit("clerk_2", "/work")
    focused = found[20]
    await page.locator(f"#open-{focused}").focus()
    await page.evaluate(f"document.getElementById('item-{focused}').scrollIntoView()")
    _, new = await place.site.item()
    await expect(row(page, new)).to_be_attached()
    await expect(page.locator(f"#open-{focused}")).to_be_focused()
    await expect(row(page, focused)).to_be_in_viewport()
    other = await place.site.client("clerk_1")
    await other.worklist.select(focused)
    await expect(row(page, focused)).to_have_count(0)
    await page.keyboard.press("j")  # goes on with the row that stands there now
    await expect(page.locator(f"#open-{found[21]}")).to_be_focused()


async def test_an_item_is_found_taken_and_finished_without_a_mouse(place: Place) -> None:
    _, first = await place.site.item()
    instance, second = await place.site.item()
    page = await place.visit("clerk_2", "/work")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(page.locator(f"#open-{second}")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{place.url}/items/{second}")
    await page.keyboard.press("u")
    await page.wait_for_url("**/work")
    await page.keyboard.press("k")
    await page.keyboard.press("t")
    await expect(page.get_by_label("Answer")).to_be_focused()
    await page.keyboard.type("yes, jt")  # letters are letters there
    await page.keyboard.press("Escape")
    await page.keyboard.press("f")
    await expect(page.get_by_label("Answer")).to_be_focused()
    await page.keyboard.press("Control+Enter")
    await expect(page).to_have_url(f"{place.url}/work")
    await expect(page.get_by_text("Finished.")).to_be_visible()
    seen = await (await place.site.client("clerk_1")).instances.get(instance)
    assert seen.state["answer"] == "yes, jt"
    await page.keyboard.press("j")
    await page.keyboard.press("t")
    await expect(page).to_have_url(f"{place.url}/items/{first}#fill")
    await page.keyboard.press("Escape")
    await page.keyboard.press("u")
    await page.wait_for_url("**/work")
    await page.keyboard.press("j")
    await page.keyboard.press("r")
    await expect(row(page, first).get_by_role("button", name="Take")).to_be_visible()


async def test_shortcuts_are_explained_and_can_be_switched_off(place: Place) -> None:
    await place.site.item()
    page = await place.visit("clerk_2", "/work")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    await accessible(page)
    await page.get_by_label("Letters are shortcuts").uncheck()
    await page.keyboard.press("Escape")
    await page.keyboard.press("j")
    await page.keyboard.press("t")
    await expect(page.locator("[data-row] :focus")).to_have_count(0)
    await expect(page).to_have_url(f"{place.url}/work")


async def test_long_lists_come_in_pages(place: Place) -> None:
    client = await place.site.client("clerk_1")
    for _ in range(52):
        await client.instances.create("request", {})
    page = await place.visit("clerk_2", "/work?sort=priority")
    await expect(page.locator("[data-row]")).to_have_count(50)
    await page.get_by_role("link", name="More", exact=True).click()
    await expect(page.locator("[data-row]")).to_have_count(2)
    await client.instances.create("request", {})
    await expect(page.locator("[data-row]")).to_have_count(3)  # still the second page
    await page.get_by_role("link", name="To the beginning").click()
    await expect(page.locator("[data-row]")).to_have_count(50)


async def test_the_worklist_fits_a_telephone_and_everybody_can_read_it(place: Place) -> None:
    page = await place.visit("clerk_2", "/work", viewport=NARROW)
    await expect(page.get_by_role("heading", name="Nothing to do")).to_be_visible()
    await accessible(page)
    await place.site.item(city="Recife")
    client = await place.site.client("clerk_2")
    await client.worklist.next()
    await place.site.item(city="Natal")
    await expect(page.locator("[data-row]")).to_have_count(2)
    await page.get_by_label("Order").select_option("By hand")
    await expect(page.get_by_label("Move up").first).to_be_visible()
    await page.get_by_text("More filters").click()
    await accessible(page)
    await fits(page)

"""Messages: what a person was told, live, and where it is sent on to."""

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_message_arrives_by_itself_and_is_read(place: Place) -> None:
    page = await place.visit("clerk_1", "/messages")
    badge = page.locator("[data-badge=messages]")
    await expect(page.get_by_role("heading", name="No messages yet")).to_be_visible()
    await accessible(page)
    instance, job = await place.site.item(city="Recife")
    row = page.get_by_role("listitem").filter(has_text="It has started.")
    await expect(row.get_by_role("link", name=f"request {instance}")).to_have_attribute(
        "href", f"/instances/{instance}"
    )
    await expect(row).to_contain_text("new")
    await expect(badge).to_have_text("1")
    other = await place.site.client("clerk_2")
    held = await other.worklist.select(job)
    await other.worklist.finish(job, held, {"answer": "yes"})
    await expect(page.get_by_role("listitem").filter(has_text="It has come to its end.")).to_be_visible()
    await expect(badge).to_have_text("2")
    await accessible(page)
    await row.get_by_role("button", name="Mark as read").click()
    await expect(row.get_by_role("button", name="Mark as read")).to_be_hidden()
    await expect(badge).to_have_text("1")
    await page.get_by_role("button", name="Mark all as read").click()
    await expect(page.get_by_text("All are read", exact=True)).to_be_visible()
    await expect(badge).to_be_hidden()
    [ended, started] = [each async for each in (await place.site.client("clerk_1")).messages.all()]
    assert None not in (ended.read_at, started.read_at)


async def test_the_counts_are_read_once_for_all_that_moves_together(place: Place) -> None:
    page = await place.visit("clerk_1", "/messages")
    await page.route("**/api/events*", lambda route: route.abort())  # no hint comes by chance
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/badges") else None)
    async with page.expect_response("**/badges"):
        await page.goto("/work")
    asked.clear()
    async with page.expect_response("**/badges"):
        await page.evaluate(
            "for (const what of ['worklist', 'messages', 'page']) document.body.dispatchEvent(new Event(`reread-${what}`))"
        )
    assert len(asked) == 1


async def test_messages_are_filtered_and_told_in_plain_words(place: Place) -> None:
    instance, job = await place.site.item(city="Recife")
    boss, second = await place.site.client("boss"), await place.site.client("clerk_2")
    await second.worklist.select(job)
    await boss.worklist.delegate(job, "clerk_1", reason="you know them")
    await boss.instances.hand_over(instance, "clerk_2")
    page = await place.visit("clerk_1", "/messages", viewport=NARROW)
    item = page.get_by_role("listitem").filter(has_text="Approve is yours now: boss delegated it to you.")
    await expect(item.get_by_role("link", name="To the item")).to_have_attribute("href", f"/items/{job}")
    await fits(page)
    await page.get_by_label("Kind").select_option("instance_started")
    await expect(item).to_be_hidden()
    await expect(page).to_have_url(f"{place.url}/messages?kind=instance_started")
    await page.locator(".message").get_by_role("button", name="Mark up to here").click()
    await expect(page.get_by_role("button", name="Mark up to here")).to_be_hidden()
    await page.get_by_label("Not read yet").check()
    await expect(page.get_by_role("heading", name="No such messages")).to_be_visible()
    page = await place.visit("clerk_2", "/messages")
    await expect(page.locator(".message").first).to_contain_text("You are in charge of it now, by boss.")
    await expect(page.locator(".message").nth(1)).to_contain_text("Approve was taken from you by boss.")
    await page.locator(".message").first.get_by_text("Exactly").click()
    await expect(page.locator(".message").first).to_contain_text(f"You are in charge of instance {instance} of request")
    page = await place.visit("outsider", "/messages?kind=gossip")
    await expect(page.get_by_role("main")).to_contain_text('There is no kind "gossip" of message')


async def test_many_messages_come_in_pages(place: Place) -> None:
    client = await place.site.client("clerk_1")
    for _ in range(51):
        await client.instances.create("request")
    page = await place.visit("clerk_1", "/messages")
    await expect(page.locator(".message")).to_have_count(50)
    await page.get_by_role("link", name="More").click()
    await expect(page.locator(".message")).to_have_count(1)
    await page.get_by_role("link", name="To the beginning").click()
    await expect(page.locator(".message")).to_have_count(50)


async def test_a_webhook_is_added_tried_paused_and_removed(place: Place) -> None:
    page = await place.visit("clerk_1", "/messages/webhooks")
    await expect(page.get_by_role("heading", name="Nothing is sent on")).to_be_visible()
    await page.get_by_role("button", name="Add a webhook").click()
    await accessible(page)
    await page.get_by_label("Address").fill("ftp://hooks.example.org/4711")
    await page.get_by_role("button", name="Add it").click()
    await expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("http")
    await page.get_by_label("Address").fill("https://hooks.example.org/4711")
    await page.get_by_label("Deadline").check()
    await page.get_by_role("button", name="Add it").click()
    await page.get_by_role("link", name="hooks.example.org").click()
    hook = page.locator(".hook")
    await expect(hook).to_contain_text("https://hooks.example.org/4711")
    await hook.get_by_role("button", name="Pause").click()
    await expect(hook.get_by_role("button", name="Resume")).to_be_visible()
    await hook.get_by_role("button", name="Send a trial message").click()
    await expect(hook.get_by_role("cell", name="trial")).to_be_visible()
    await accessible(page)
    [made] = await place.engine.webhooks.all(None)
    assert (made.person, made.kinds, made.paused) == ("clerk_1", ["deadline"], True)
    stranger = await place.visit("outsider", f"/messages/webhooks?webhook={made.id}")
    await expect(stranger.get_by_role("heading", level=1)).to_have_text("There is nothing here")
    await hook.get_by_role("button", name="Remove it").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove it").click()
    await expect(page.get_by_role("heading", name="Nothing is sent on")).to_be_visible()
    assert await place.engine.webhooks.all(None) == []


async def test_webhooks_are_added_one_after_another_and_by_an_administrator_for_anybody(place: Place) -> None:
    page = await place.visit("boss", "/messages/webhooks")
    for host in ("one", "two"):
        await page.get_by_role("button", name="Add a webhook").click()
        await page.get_by_label("Address").fill(f"https://{host}.example.org/4711")
        if host == "one":
            await page.get_by_label("Deadline").check()
            await page.get_by_label("Whose messages").fill("clerk_1")
        await page.get_by_role("button", name="Add it").click()
        await expect(page.get_by_role("link", name=f"{host}.example.org")).to_be_visible()
    made = {(each.person, each.kinds and tuple(each.kinds)) for each in await place.engine.webhooks.all(None)}
    assert made == {("clerk_1", ("deadline",)), ("boss", None)}

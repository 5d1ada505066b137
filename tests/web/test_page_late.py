"""Results that were not written: those that wait for others, and those that came when the item was another's."""

import pytest
from page_kit import Place, a_place, accessible  # noqa: F401 gives the fixture
from playwright.async_api import Page, expect

from mutirao.model import Attribute, Definition, Offer, Task

pytestmark = pytest.mark.asyncio(loop_scope="session")

VERDICT = Definition(
    name="verdict",
    creator="clerk",
    attributes=(Attribute("first", "text"), Attribute("second", "text")),
    tasks=(
        Task(name="ask_one", when="first is null", offer=Offer(role="clerk"), outputs=("first",)),
        Task(name="ask_another", when="second is null", offer=Offer(role="clerk"), outputs=("second",)),
    ),
    final="first is not null or second is not null",
)
"""Either answer would end it while the other one is asked for."""


async def verdict(place: Place) -> tuple[int, dict[str, int]]:
    await place.engine.apply(VERDICT)
    client = await place.site.client("clerk_1")
    instance = await client.instances.create("verdict", {})
    return instance.id, {job.task: job.id async for job in client.instances.jobs(instance.id)}


async def answer(page: Page, job: int, field: str, words: str) -> None:
    await page.goto(f"/items/{job}")
    await page.locator("#take").click()
    await page.get_by_label(field).fill(words)
    await page.get_by_role("button", name="Finish").click()
    await expect(
        page.get_by_text("Finished. It is written when other work of this instance has ended.")
    ).to_be_visible()


async def test_results_that_wait_for_each_other_are_shown_until_one_is_skipped(place: Place) -> None:
    instance, jobs = await verdict(place)
    clerk = await place.visit("clerk_2", "/work")
    await answer(clerk, jobs["ask_one"], "First", "guilty, they say")
    page = await place.visit("clerk_1", f"/instances/{instance}")
    waits = page.locator(f"#job-{jobs['ask_one']}")
    await expect(waits).to_contain_text("done, and waits for others")
    await expect(waits).to_contain_text("guilty, they say")
    await accessible(page)
    await answer(clerk, jobs["ask_another"], "Second", "not guilty")
    await expect(page.get_by_role("heading", name="It cannot come to its end")).to_be_visible()
    await page.get_by_role("link", name="What can be done about it").click()
    await expect(page.get_by_text("one of them has to be skipped")).to_be_visible()
    await expect(page.get_by_role("region", name="Ask one: skip it")).to_contain_text("guilty, they say")
    await accessible(page)
    other = page.get_by_role("region", name="Ask another: skip it")
    await expect(other).to_contain_text("not guilty")
    await other.get_by_role("button", name="Skip it").click()
    await expect(page.get_by_role("heading", name="It needs nobody")).to_be_visible()
    ended = await place.engine.instance(instance)
    assert (ended.status, ended.state["first"], ended.state["second"]) == ("closed.completed", "guilty, they say", None)


async def test_a_large_result_that_waits_is_left_out_of_lists_and_seen_with_its_job(place: Place) -> None:
    instance, jobs = await verdict(place)
    clerk = await place.site.client("clerk_2")
    long = {"ask_one": {"first": "".join(map(str, range(1000)))}, "ask_another": {"second": "well packed " * 5000}}
    for task, change in long.items():
        await clerk.worklist.finish(jobs[task], await clerk.worklist.select(jobs[task]), change)
    listed = [each async for each in clerk.instances.jobs(instance) if each.task in jobs]
    assert [(each.change, each.is_change_left_out) for each in listed] == [(None, True)] * 2
    assert {each.task: (await clerk.jobs.get(each.id)).change for each in listed} == long
    page = await place.visit("clerk_1", f"/instances/{instance}")
    await expect(page.locator(f"#job-{jobs['ask_one']}")).to_contain_text("too large to be shown here")
    await accessible(page)
    await page.get_by_role("link", name="What can be done about it").click()
    await page.get_by_role("region", name="Ask one: skip it").get_by_role("link", name="See all of it").click()
    await expect(page.locator("body")).to_contain_text(long["ask_one"]["first"])


async def test_a_result_that_came_too_late_is_kept_with_the_instance_and_said_to_be_of_no_effect(place: Place) -> None:
    instance, job = await place.site.item(city="Recife")
    late, quick = await place.site.client("clerk_2"), await place.site.client("clerk_1")
    was = await late.worklist.select(job)
    await quick.worklist.give_back(job)
    page = await place.visit("clerk_1", f"/instances/{instance}")
    await expect(page.locator("#attachments")).to_have_count(0)
    with pytest.raises(Exception, match="item_moved"):
        await late.worklist.finish(job, was, {"answer": "<b>too</b> late"})
    kept = page.locator("#attachments")
    await expect(kept).to_contain_text("They were not written, only kept.")
    await kept.locator("summary", has_text="clerk_2").click()
    await expect(kept.get_by_role("region", name="What was sent")).to_contain_text("<b>too</b> late")
    await expect(kept).to_contain_text("approve")
    await accessible(page)
    await page.get_by_role("button", name="Cancel it").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel it").click()
    await expect(page.locator("h1 .status")).to_have_text("cancelled")
    await expect(kept.get_by_role("region", name="What was sent")).to_contain_text("<b>too</b> late")

"""Before an instance is rolled back, its dialog tells what that will do to each task, however far it is to go."""

import pytest
from driver import Engine as Driver
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Locator, Page, expect
from site_kit import refused

from mutirao.model import Attribute, Definition, Offer, Recovery, Task

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARCEL = Definition(
    name="parcel",
    creator="clerk",
    attributes=tuple(Attribute(name, "text") for name in ("packed", "sealed", "sent", "told", "handed", "undone")),
    tasks=(
        Task(name="pack", when="packed is null", recovery=Recovery(compensation="unpack")),
        Task(name="seal", when="packed = 'well' and sealed is null", recovery=Recovery(safe_point=True)),
        Task(name="send", when="sealed is not null and sent is null", recovery=Recovery(compensation="fetch")),
        Task(name="tell", when="sent is not null and told is null", offer=Offer(role="clerk"), outputs=("told",)),
        Task(name="hand_out", when="told is not null and handed is null", recovery=Recovery(critical=True)),
        Task(name="wait", when="handed is not null and undone is null", fires="once"),
        Task(name="unpack"),
        Task(name="fetch"),
    ),
    final="undone is not null",
)


async def sent(place: Place) -> tuple[int, int]:
    """A parcel that was packed twice, sealed and sent; and the item to tell somebody, which clerk_2 has."""
    await place.engine.apply(PARCEL)
    instance = (await (await place.site.client("clerk_1")).instances.create("parcel", {})).id
    async with Driver(place.engine.url) as driver:
        for task, change in (
            ("pack", {}),
            ("pack", {"packed": "well"}),
            ("seal", {"sealed": "yes"}),
            ("send", {"sent": "yes"}),
        ):
            await driver.do("parcel", task, **change)
        job = await driver.job(instance, "tell")
    await (await place.site.client("clerk_2")).worklist.select(job)
    return instance, job


async def opened(page: Page) -> tuple[Locator, Locator]:
    """The dialog, and what it says will happen to each task."""
    await page.get_by_role("button", name="Roll back", exact=True).click()
    dialog = page.get_by_role("dialog", name="Roll this instance back?")
    return dialog, dialog.locator("#roll-back-plan li")


async def test_what_a_rollback_will_undo_is_told_as_far_as_it_is_to_go(place: Place) -> None:
    instance, job = await sent(place)
    page = await place.visit("clerk_1", f"/instances/{instance}")
    dialog, plan = await opened(page)
    after = ["Tell: ends first, and nothing undoes it", "Send: Fetch undoes it"]
    before = ["Seal: nothing undoes it: it stays as it is", "Pack \N{MULTIPLICATION SIGN} 2: Unpack undoes it"]
    await expect(plan).to_have_text([*after, *before])
    await expect(dialog).to_contain_text("Then the instance has ended.")
    await accessible(page)
    await dialog.get_by_label("How far").select_option("seal")
    await expect(plan).to_have_text(after)
    await expect(dialog).to_contain_text("Seal and all that came before it stay done.")
    await dialog.get_by_role("button", name="Roll it back").click()
    await expect(dialog).to_be_hidden()
    clerk = await place.site.client("clerk_2")
    await clerk.worklist.finish(job, (await clerk.worklist.show(job)).item.attempt or 0, {"told": "yes"})
    assert [each.task for each in await place.engine.jobs(instance)] == ["fetch"]
    async with Driver(place.engine.url) as driver:
        await driver.do("parcel", "fetch", sent=None)
    await expect(page.locator("#story li").first).to_contain_text("Rolled back")
    assert [each.task for each in await place.engine.jobs(instance)] == ["send", "hand_out"]  # what was told stays told


async def test_programs_of_whoever_steers_it_are_told_the_same(place: Place) -> None:
    instance, _ = await sent(place)
    told = await (await place.site.client("clerk_1")).instances.preview_roll_back(instance, "seal")
    assert [(each.task, each.compensation, each.is_running) for each in told] == [
        ("tell", None, True),
        ("send", "fetch", False),
    ]
    async with refused("forbidden", 403):
        await (await place.site.client("clerk_2")).instances.preview_roll_back(instance)


async def test_what_cannot_be_undone_is_told_before_it_is_refused(place: Place) -> None:
    instance, job = await sent(place)
    clerk = await place.site.client("clerk_2")
    await clerk.worklist.finish(job, (await clerk.worklist.show(job)).item.attempt or 0, {"told": "yes"})
    async with Driver(place.engine.url) as driver:
        await driver.do("parcel", "hand_out", handed="yes")
    page = await place.visit("clerk_1", f"/instances/{instance}")
    dialog, plan = await opened(page)
    await expect(plan.first).to_have_text("Hand out: cannot be undone")
    await expect(dialog).to_contain_text("This will be refused, and nothing happens")
    await page.set_viewport_size(NARROW)
    await accessible(page)
    await fits(page)
    await dialog.get_by_role("button", name="Roll it back").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("hand_out")
    assert (await place.engine.instance(instance)).hold is None

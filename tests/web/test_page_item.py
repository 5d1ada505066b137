"""One work item: what it shows, the form that is filled in, and all that can be done with it."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Locator, Page, expect
from work_kit import CLAIM, PICTURE, claim, pdf

from mutirao.model import Attribute, Definition, Offer, Task

pytestmark = pytest.mark.asyncio(loop_scope="session")

DROP = """(place, [name, text]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], name, { type: "text/plain" }));
  for (const type of ["dragover", "drop"])
    place.dispatchEvent(new DragEvent(type, { dataTransfer: carried, bubbles: true, cancelable: true }));
}"""


async def held(place: Place, person: str = "clerk_2", **state: object) -> tuple[int, int]:
    """An instance of `claim`, and its item, which this person has taken."""
    instance, job = await claim(place, **state)
    await (await place.site.client(person)).worklist.select(job)
    return instance, job


async def state_of(place: Place, instance: int) -> dict[str, object]:
    found = await (await place.site.client("boss")).instances.get(instance)
    return {name: value for name, value in found.state.items() if value is not None}


def fact(page: Page, name: str) -> Locator:
    return page.locator(f"#facts dt:text-is('{name}') + dd")


async def choose(page: Page, name: str) -> None:
    """One of the things in the menu."""
    await page.locator("#more > summary").click()
    await page.get_by_role("button", name=name).click()


async def test_an_item_shows_what_it_is_about(place: Place) -> None:
    await place.engine.apply(CLAIM)
    client = await place.site.client("clerk_1")
    photo = await client.files.put(PICTURE, "dent.png", media="image/png")
    letter = await client.files.put(b"Dear all,\n<b>it</b> is broken.", "letter.txt", media="text/plain")
    past = [{"year": 2020 + n, "settled": n % 2 == 0} for n in range(120)]
    instance, job = await claim(
        place, photo=photo, letter=letter, sum=Decimal("1234.50"), happened_at="2026-11-10T22:30:00Z", past=past
    )
    page = await place.visit("clerk_2", f"/items/{job}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Assess the damage")
    await expect(page.locator("#given-sum dd")).to_have_text("1,234.5")
    await expect(page.locator("#given-happened_at dd")).to_contain_text("19:30:00")  # in Recife
    await expect(page.locator("#given-past tbody tr")).to_have_count(100)
    await expect(page.locator("#given-past tbody tr").first).to_have_text("2020yes")
    await expect(page.locator("#given-past")).to_contain_text("20 more rows.")
    for name, value in {"Status": "ready", "Role": "clerk", "Held by": "nobody", "In charge": "clerk_1"}.items():
        await expect(fact(page, name)).to_have_text(value)
    await expect(fact(page, "Deadline")).to_have_text("in 3 days")
    await expect(page.locator("#history")).to_contain_text("Started")
    await expect(page.locator("#history a")).to_have_attribute("href", f"/instances/{instance}")
    await page.locator("#given-photo").get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("img", name="dent.png")).to_be_visible()
    await page.locator("#given-letter").get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("region", name="letter.txt")).to_have_text("Dear all,\n<b>it</b> is broken.")
    await expect(page.get_by_role("region", name="letter.txt")).to_have_css("white-space", "pre-wrap")
    await accessible(page)
    async with page.expect_download() as saved:
        await page.get_by_role("link", name="Download letter.txt").click()
    assert (await saved.value).suggested_filename == "letter.txt"
    await (await place.site.client("clerk_2")).worklist.select(job)
    await expect(fact(page, "Held by")).to_have_text("clerk_2")  # read again, and what was unfolded has stayed
    await expect(page.get_by_role("img", name="dent.png")).to_be_visible()


async def test_a_pdf_is_shown_and_what_cannot_be_is_only_downloaded(place: Place) -> None:
    await place.engine.apply(CLAIM)
    client = await place.site.client("clerk_1")
    letter = await client.files.put(pdf("Dear all"), "letter.pdf", media="application/pdf")
    photo = await client.files.put(b"no picture", "dent.png", media="image/png")
    _, job = await claim(place, letter=letter, photo=photo)
    page = await place.visit("clerk_2", f"/items/{job}")
    await page.locator("#given-letter").get_by_role("button", name="Preview").click()
    frame = page.get_by_title("letter.pdf")
    await expect(frame).to_be_visible()
    assert str(await frame.get_attribute("src")).startswith("blob:")
    await page.locator("#given-photo").get_by_role("button", name="Preview").click()
    await expect(page.locator("#given-photo")).to_contain_text("This file cannot be shown.")


async def test_what_is_typed_is_sent_exactly_and_what_is_empty_is_not(place: Place) -> None:
    await place.engine.apply(CLAIM)
    instance, job = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await page.get_by_label("Granted").select_option("no")
    await page.get_by_label("Paid").fill("0012345678901234567890.10")
    await page.get_by_label("Visits").fill("+7")
    await page.get_by_label("Seen on").fill("2026-11-17")
    await page.get_by_label("Call at").fill("2026-11-20T09:30:00")
    await page.get_by_label("Details").fill('{"parts": [1, {"price": 12.50}]}')
    await page.get_by_role("button", name="Finish").click()
    await expect(page).to_have_url(f"{place.url}/work")
    assert await state_of(place, instance) == {
        "customer": "A. Customer",
        "granted": False,
        "paid": Decimal("12345678901234567890.10"),
        "visits": 7,
        "seen_on": "2026-11-17",
        "call_at": "2026-11-20T12:30:00Z",  # Recife is three hours behind
        "details": {"parts": [1, {"price": Decimal("12.50")}]},
    }


async def test_fields_are_checked_as_one_types_and_refusals_stand_at_them(place: Place) -> None:
    await place.engine.apply(CLAIM)
    instance, job = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    for label, wrong, says in (
        ("Visits", "3.5", "A whole number is wanted, such as 42."),
        ("Visits", "9223372036854775808", "This number is too large."),
        ("Paid", "12,50", "A number is wanted, such as 12.50."),
        ("Details", "{", "This is not JSON."),
        ("Seen on", "22027-03-10", "The year is between 1 and 9999."),
        ("Call at", "22027-03-10T08:00", "The year is between 1 and 9999."),
    ):
        await page.get_by_label(label).fill(wrong)
        await expect(page.get_by_label(label)).to_have_accessible_description(says)
        await expect(page.get_by_label(label)).to_have_attribute("aria-invalid", "true")
    await accessible(page)
    await page.get_by_role("button", name="Finish").click()
    await expect(page.get_by_label("Paid")).to_be_focused()
    for label, right in (("Visits", "3"), ("Paid", "12.50"), ("Details", "{}"), ("Seen on", ""), ("Call at", "")):
        await page.get_by_label(label).fill(right)
        await expect(page.get_by_label(label)).to_have_accessible_description("")
    await page.get_by_label("Granted").select_option("yes")
    await page.get_by_label("Paid").fill("1e999999")  # only the engine knows better
    await page.get_by_role("button", name="Finish").click()
    await expect(page.locator("#finish").get_by_role("alert")).to_be_visible()
    await expect(page.get_by_label("Paid")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("Paid")).to_be_focused()
    await expect(page.get_by_label("Paid")).to_have_accessible_description(re.compile("digits"))
    await page.get_by_label("Paid").fill("12.50")
    await page.keyboard.press("Control+Enter")
    await expect(page).to_have_url(f"{place.url}/work")
    assert (await state_of(place, instance))["paid"] == Decimal("12.50")


async def test_a_year_that_is_typed_has_four_digits(place: Place) -> None:
    await place.engine.apply(CLAIM)
    _, job = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await page.get_by_label("Seen on").press_sequentially("31022027")
    await expect(page.get_by_label("Seen on")).to_have_value("2027-03-10")
    await page.get_by_label("Call at").press_sequentially("03102027083000AM")  # after the year comes the hour
    await expect(page.get_by_label("Call at")).to_have_value(re.compile("^2027-03-10T08:30"))


async def test_a_draft_survives_a_closed_tab_until_it_is_sent_or_discarded(place: Place) -> None:
    await place.engine.apply(CLAIM)
    instance, job = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await page.get_by_label("Remarks").fill("half a sent")
    await page.get_by_label("Granted").select_option("yes")
    await page.locator("#finish input[type=file]").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"notes"}
    )
    await expect(page.locator("#finish [data-file-name]")).to_have_text("notes.txt")
    await page.close()
    clerk = await place.site.client("clerk_2")
    await clerk.worklist.give_back(job)
    attempt = await clerk.worklist.select(job)
    page = await place.visit("clerk_2", f"/items/{job}")
    await expect(page.get_by_text("Your draft from earlier is here again.")).to_be_visible()
    await expect(page.get_by_label("Remarks")).to_have_value("half a sent")
    await expect(page.locator("#finish [data-file-name]")).to_have_text("notes.txt")
    await expect(page.locator("#finish [name=attempt]")).to_have_value(str(attempt))  # no draft's business
    await page.get_by_role("button", name="Discard the draft").click()
    await expect(page.get_by_label("Remarks")).to_have_value("")
    await expect(page.locator("#finish [data-file-name]")).to_have_text("")
    await page.get_by_label("Remarks").fill("a whole sentence")
    await page.reload()
    await page.get_by_label("Granted").select_option("yes")
    await page.get_by_role("button", name="Finish").click()
    await expect(page).to_have_url(f"{place.url}/work")
    assert (await state_of(place, instance))["remarks"] == "a whole sentence"
    assert await page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('draft/'))") == []


async def test_a_file_is_dropped_sent_with_progress_and_finished_with(place: Place) -> None:
    await place.engine.apply(CLAIM)
    instance, job = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    slow = await page.context.new_cdp_session(page)
    limits = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 40_000}
    await slow.send("Network.emulateNetworkConditions", limits)
    await page.locator("#finish [data-file]").evaluate(DROP, ["report.txt", "x" * 60_000])
    bar = page.get_by_role("progressbar", name="Upload")
    await expect(bar).to_be_visible()
    await page.wait_for_function("(bar) => bar.value > 0 && bar.value < 1", arg=await bar.element_handle())
    await page.get_by_label("Granted").select_option("yes")
    await page.keyboard.press("Control+Enter")  # not before the file is there
    await expect(page).to_have_url(f"{place.url}/items/{job}")
    await slow.send("Network.emulateNetworkConditions", {**limits, "uploadThroughput": -1})
    await expect(page.locator("#finish [data-file-name]")).to_have_text("report.txt")
    await expect(bar).to_be_hidden()
    await page.get_by_label("Remarks").evaluate(DROP, ["better.txt", "beside the field, and yet taken"])
    await expect(page.locator("#finish [data-file-name]")).to_have_text("better.txt")
    await page.get_by_role("button", name="Finish").click()
    await expect(page).to_have_url(f"{place.url}/work")
    report = (await state_of(place, instance))["report"]
    assert isinstance(report, dict)
    assert (report["name"], report["size"]) == ("better.txt", 31)


async def test_a_file_that_is_refused_says_why_and_can_be_tried_again(place: Place) -> None:
    await place.engine.apply(CLAIM)
    await place.engine.settings.set(None, {"file_limit": 1000})
    _, job = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await page.locator("#finish [data-file]").evaluate(DROP, ["large.txt", "x" * 5000])
    await expect(page.locator("[data-file-problem]")).to_contain_text("1,000 bytes")
    await page.locator("#finish [data-file]").evaluate(DROP, ["small.txt", "x"])
    await expect(page.locator("#finish [data-file-name]")).to_have_text("small.txt")
    await expect(page.locator("[data-file-problem]")).to_be_hidden()


REVISE = Definition(
    name="revise",
    creator="clerk",
    attributes=(
        Attribute("text", "text"),
        Attribute("due_at", "timestamp"),
        Attribute("amount", "number"),
        Attribute("kept", "text"),
        Attribute("done", "boolean"),
    ),
    tasks=(Task(name="edit", when="done is null", offer=Offer(role="clerk")),),
    final="done",
)


async def test_what_is_known_stands_in_the_form_and_only_changes_are_sent(place: Place) -> None:
    await place.engine.apply(REVISE)
    boss, clerk = await place.site.client("boss"), await place.site.client("clerk_2")
    known = {"text": "old\r\nlines", "due_at": "2026-12-01T12:00:00.123456Z", "amount": 3, "kept": "as it was"}
    instance = await boss.instances.create("revise", known)
    [job] = [job async for job in boss.instances.jobs(instance.id)]
    await clerk.worklist.select(job.id)
    page = await place.visit("clerk_2", f"/items/{job.id}")
    await expect(page.get_by_label("Due at")).to_have_value("2026-12-01T09:00")
    await expect(page.get_by_label("Amount")).to_have_value("3")
    await place.engine.set(instance.id, {"kept": "changed meanwhile"})
    await page.get_by_label("Amount").fill("")
    await page.get_by_label("Done", exact=True).select_option("yes")
    await page.get_by_role("button", name="Finish").click()
    await expect(page).to_have_url(f"{place.url}/work")
    assert await state_of(place, instance.id) == {
        "text": "old\r\nlines",
        "due_at": "2026-12-01T12:00:00.123456Z",
        "kept": "changed meanwhile",
        "done": True,
    }


async def test_it_is_taken_given_back_and_after_finishing_one_goes_on_to_the_next(place: Place) -> None:
    await place.engine.apply(CLAIM)
    _, job = await claim(place)
    _, other = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await expect(page.locator("#wanted")).to_contain_text("Granted, Paid, Visits")
    await page.get_by_role("button", name="Take", exact=False).first.click()
    await expect(page.get_by_text("It is yours.")).to_be_visible()
    await expect(page.get_by_label("Granted")).to_be_focused()
    await page.get_by_role("button", name="Give back").click()
    await accessible(page)
    await page.get_by_role("dialog").get_by_label("Why (it stands in the history)").fill("I know the customer")
    await page.get_by_role("dialog").get_by_role("button", name="Give back").click()
    await expect(page).to_have_url(f"{place.url}/work")
    await page.goto(f"/items/{job}")
    await expect(page.locator("#story")).to_contain_text("Assess: given back: I know the customer")
    await page.keyboard.press("t")
    await page.get_by_label("Granted").select_option("yes")
    await page.keyboard.press("Control+Enter")
    await expect(page).to_have_url(f"{place.url}/items/{other}#fill")
    await expect(page.get_by_text("Finished.")).to_be_visible()


async def test_it_is_finished_as_failed_with_a_reason(place: Place) -> None:
    await place.engine.apply(CLAIM)
    instance, job = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await page.get_by_role("button", name="It cannot be done").click()
    await accessible(page)
    await page.get_by_role("dialog").get_by_role("button", name="It cannot be done").click()
    await expect(page.get_by_label("Why not (it stands in the history)")).to_be_focused()  # a reason is needed
    await page.keyboard.type("the car is gone")
    await page.keyboard.press("Control+Enter")
    await expect(page).to_have_url(f"{place.url}/work")
    await page.goto(f"/items/{job}")
    await expect(page.get_by_text("It could not be done.")).to_be_visible()
    await expect(page.locator("#story")).to_contain_text("the car is gone")
    assert (await (await place.site.client("boss")).instances.get(instance)).status == "open.exception"


async def test_whoever_is_in_charge_moves_it_about_and_others_cannot(place: Place) -> None:
    await place.engine.apply(CLAIM)
    _, job = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await expect(page.get_by_text("It is yours.")).to_be_visible()
    await page.locator("#more > summary").click()
    await expect(page.get_by_role("button", name="Another deadline")).to_have_count(0)
    page = await place.visit("clerk_1", f"/items/{job}")
    await choose(page, "Another deadline")
    await accessible(page)
    later = (datetime.now(UTC) + timedelta(days=9)).replace(second=0, microsecond=0)
    for at in (later - timedelta(days=90), later):
        await page.get_by_label("To be done by").fill((at - timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M"))
        await page.get_by_role("button", name="Set the deadline").click()
        if at != later:
            await expect(page.get_by_role("alert")).to_contain_text("a time to come")
    await expect(page.locator("#facts time").first).to_have_attribute("datetime", later.isoformat())
    await choose(page, "Put into a list")
    await page.get_by_role("dialog").get_by_label("Person").fill("outsider")
    await page.keyboard.press("Enter")
    await expect(page.locator("#story")).to_contain_text("put into the list of outsider")
    await choose(page, "Take out of a list")
    await page.get_by_role("dialog").get_by_label("Person").fill("nobody_here")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("nobody_here")
    await page.get_by_role("dialog").get_by_label("Person").fill("clerk_2")
    await page.keyboard.press("Enter")
    await expect(fact(page, "Held by")).to_have_text("nobody")
    outsider = await place.site.client("outsider")
    assert [each.job async for each in outsider.worklist.all()] == [job]


async def test_others_are_told_to_whom_an_item_is_delegated(place: Place) -> None:
    _, job = await place.site.item()
    page = await place.visit("clerk_1", f"/items/{job}")
    await page.get_by_role("button", name="Delegate").click()
    await page.get_by_role("dialog").get_by_label("Person").fill("clerk_2")
    await page.get_by_role("dialog").get_by_role("button", name="Delegate").click()
    await expect(page.locator("#standing")).to_contain_text("It is offered to clerk_2 alone.")
    await expect(fact(page, "Role")).to_have_text("clerk (offered to clerk_2 alone)")
    page = await place.visit("clerk_2", f"/items/{job}")
    await expect(page.locator("#standing")).to_contain_text("Nobody has taken it yet.")
    await expect(page.locator("#standing")).not_to_contain_text("alone")


async def test_it_is_locked_to_be_done_offline(place: Place) -> None:
    await place.engine.apply(CLAIM)
    _, job = await held(place)
    page = await place.visit("clerk_2", f"/items/{job}")
    await choose(page, "Lock, to do it offline")
    await expect(page.get_by_text("It is locked, so that you can do it away from here.")).to_be_visible()
    assert (await (await place.site.client("clerk_2")).worklist.show(job)).item.locked
    await choose(page, "Unlock")
    await expect(page.get_by_text("It is locked")).to_have_count(0)


async def test_comments_are_made_and_taken_back(place: Place) -> None:
    instance, job = await place.site.item()
    other = await place.site.client("clerk_1")
    page = await place.visit("clerk_2", f"/items/{job}")
    said = page.locator("#comments li")
    await page.get_by_label("Say something to those who work on this").fill("<i>Who</i> knows more?")
    await page.get_by_role("button", name="Say it").click()
    await expect(said).to_contain_text(["<i>Who</i> knows more?"])
    await expect(page.get_by_label("Say something to those who work on this")).to_have_value("")
    await other.comments.add(instance, "I do.", job=job)
    await expect(said).to_have_count(2)
    await expect(said.last.get_by_role("button")).to_have_count(0)  # it is somebody else's
    await said.first.get_by_role("button", name="Take back").click()
    await expect(said).to_have_count(1)
    await expect(said).to_contain_text(["I do."])


async def test_an_item_that_has_ended_says_so_plainly(place: Place) -> None:
    instance, job = await place.site.item()
    clerk = await place.site.client("clerk_2")
    attempt = await clerk.worklist.select(job)
    await clerk.worklist.finish(job, attempt, {"answer": "yes"})
    page = await place.visit("clerk_2", f"/items/{job}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("You have finished this item")
    await expect(page.get_by_role("link", name="To its instance")).to_have_attribute("href", f"/instances/{instance}")
    await accessible(page)
    for person, path in (("clerk_1", f"/items/{job}"), ("outsider", f"/items/{job}"), ("outsider", "/items/999999")):
        page = await place.visit(person, path)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Nothing to do here any more")
        await expect(page.get_by_text("yes", exact=True)).to_have_count(0)


async def test_an_item_and_its_dialogs_fit_a_telephone(place: Place) -> None:
    await place.engine.apply(CLAIM)
    word = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen" * 3
    past = [{f"column_{n}": word for n in range(8)}]
    _, job = await held(place, "clerk_1", story=word, past=past)
    page = await place.visit("clerk_1", f"/items/{job}", viewport=NARROW)
    await fits(page)
    await accessible(page)
    for name in ("Give back", "It cannot be done", "Delegate"):
        await page.get_by_role("button", name=name).first.click()
        await fits(page)
        await accessible(page)
        await page.keyboard.press("Escape")
    for name in ("Another deadline", "Put into a list", "Take out of a list"):
        await choose(page, name)
        await accessible(page)
        await page.keyboard.press("Escape")


async def test_a_form_with_nothing_in_it_is_sent_when_that_was_asked_for_twice(place: Place) -> None:
    _, job = await place.site.item(city="Recife")
    page = await place.visit("clerk_1", f"/items/{job}")
    await page.get_by_role("button", name="Take t").click()
    finish = page.locator("#finish button.main")
    await finish.click()
    await expect(page.get_by_text("Nothing is filled in.")).to_be_visible()
    assert (await place.engine.job(job)).status == "running"
    await finish.click()
    await expect(page).to_have_url(f"{place.url}/work")

"""A flow from a text: checked as it is typed, refused at the line that is wrong, put in place whole."""

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import FilePayload, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

LEAVE = """WORKFLOW Leave {
  NUMBER Days { REQUIRED; }
  STRING Answer;
  TASK Decide { DEPENDS; ROLE clerk; OUT_CONTEXT Answer; }
}
"""
TWO_MISTAKES = """WORKFLOW Leave {
  STRING Answer;
  TASK Decide {
    DEPENDS;
    ROLE clerk;
    OUT_CONTEXT Anser;
  }
  TASK Tell {
    WHEN "answr is not null";
  }
}
"""


async def test_mistakes_are_shown_at_their_lines_and_nothing_is_put_in_place_until_they_are_gone(place: Place) -> None:
    page = await place.visit("boss", "/flows/new-flow")
    text = page.get_by_label("The flow, in the process language")
    await expect(page.get_by_text("No mistakes found.")).to_be_visible()
    await accessible(page)
    await text.fill(TWO_MISTAKES)
    findings = page.locator(".findings li")
    await expect(findings.first).to_contain_text("Anser")
    await expect(page.locator(".gutter .is-wrong")).to_have_text(["6", "9"])  # the other is what PostgreSQL says
    await expect(page.locator("#pdl-status")).to_contain_text("Mistakes:")
    await accessible(page)
    await findings.first.get_by_role("button", name="Line 6").click()
    caret = "(area) => area.value.slice(area.selectionStart, area.selectionEnd)"
    assert await text.evaluate(caret) == "Anser"
    await page.get_by_role("button", name="Put in place").click()
    await expect(page.locator("form [data-problem]")).to_contain_text("Anser")
    assert [each.name for each in await place.engine.flow_heads()] == ["request"]
    await text.fill(LEAVE)
    await expect(page.get_by_text("No mistakes found.")).to_be_visible()
    await expect(page.locator(".gutter .is-wrong")).to_have_count(0)
    await page.get_by_label("Who may start flows").select_option("clerk")
    await page.get_by_role("button", name="Put in place").click()
    await expect(page).to_have_url(f"{place.url}/flows/leave")
    await expect(page.get_by_text("leave: version 1 is in place.")).to_be_visible()
    assert (await place.engine.definition("leave")).creator == "clerk"


async def test_a_new_version_begins_with_the_text_of_the_newest_and_may_come_from_a_file(place: Place) -> None:
    page = await place.visit("boss", "/flows/request")
    await page.get_by_role("link", name="New version").click()
    text = page.get_by_label("The flow, in the process language")
    await expect(text).to_have_value(await _pdl(place))
    longer = (await _pdl(place)).replace("  STRING answer;", "STRING answer; STRING note;")
    chosen = FilePayload(name="request.pdl", mimeType="text/plain", buffer=longer.encode())
    await page.get_by_label("choose one").set_input_files(chosen)
    await expect(text).to_have_value(longer)
    await page.get_by_role("button", name="Lay out").click()
    await expect(text).to_have_value(longer.replace("STRING answer; STRING note;", "  STRING answer;\n  STRING note;"))
    await page.reload()
    await expect(text).to_have_value(longer.replace("STRING answer; STRING note;", "  STRING answer;\n  STRING note;"))
    await page.get_by_role("button", name="Put in place").click()
    await expect(page).to_have_url(f"{place.url}/flows/request")
    await expect(page.get_by_text("request: version 2 is in place.")).to_be_visible()
    names = [each.name for each in (await place.engine.definition("request")).attributes]
    assert names == ["city", "answer", "note", "amount"]


async def test_another_name_is_another_flow_and_that_is_said_before(place: Place) -> None:
    page = await place.visit("boss", "/flows/request/edit")
    text = page.get_by_label("The flow, in the process language")
    warning = page.locator("[data-others]")
    await expect(page.get_by_text("No mistakes found.")).to_be_visible()
    await expect(warning).to_be_hidden()
    await text.fill((await _pdl(place)).replace("WORKFLOW request", "WORKFLOW New"))
    await expect(warning).to_have_text("This makes a new flow called new; request stays as it is.")
    await accessible(page)
    await page.get_by_role("button", name="Put in place").click()
    await expect(page).to_have_url(f"{place.url}/flows/new")  # any name of a flow has its page
    await expect(page.get_by_role("heading", level=1)).to_have_text("new")
    assert [each.version for each in await place.engine.flow_heads("request")] == [1]
    await page.goto("/flows")
    await page.get_by_role("link", name="New flow").click()
    await text.fill(await _pdl(place))
    await expect(warning).to_have_text("There is a flow called request already: this makes a new version of it.")
    await text.fill("")
    await expect(warning).to_be_hidden()
    await text.fill(await _pdl(place))
    await expect(warning).to_be_visible()
    await text.fill(LEAVE + LEAVE.replace("Leave", "Holiday"))
    await expect(warning).to_be_hidden()
    await page.get_by_role("button", name="Put in place").click()
    await expect(page).to_have_url(f"{place.url}/flows")
    await expect(page.get_by_text("leave: version 1 is in place. holiday: version 1 is in place.")).to_be_visible()


async def test_a_file_is_dropped_onto_the_text(place: Place) -> None:
    page = await place.visit("boss", "/flows/new-flow")
    await expect(page.get_by_text("No mistakes found.")).to_be_visible()
    dropped = await page.evaluate_handle(
        "(text) => { const data = new DataTransfer(); data.items.add(new File([text], 'leave.pdl')); return data; }",
        LEAVE,
    )
    text = page.get_by_label("The flow, in the process language")
    await text.dispatch_event("drop", {"dataTransfer": dropped})
    await expect(text).to_have_value(LEAVE)


async def test_a_flow_that_sql_defines_is_not_changed_here(place: Place) -> None:
    async with place.engine.connection() as connection:
        await connection.execute("select mutirao.create_flow('by_sql')")
    page = await place.visit("boss", "/flows/by_sql", viewport=NARROW)
    await expect(page.locator(".flow-facts")).to_contain_text("defined by SQL")
    await expect(page.get_by_role("link", name="New version")).to_have_count(0)
    await accessible(page)
    await fits(page)
    await page.goto("/flows/by_sql/edit")
    await expect(page.get_by_text("This flow is defined by SQL: change it there.")).to_be_visible()


async def _pdl(place: Place) -> str:
    answer = await (await place.site.http("boss")).get("/api/flows/request/pdl")
    return str(answer.json()["text"])

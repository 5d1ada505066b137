"""Files, from the item that they are attached to until somebody looks at them on the page of the instance; none is ever run."""

import re
from pathlib import Path

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Error, FilePayload, Page, expect
from work_kit import CLAIM, PICTURE, claim, pdf

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = FilePayload(name="report of the visit.txt", mimeType="text/plain", buffer=b"A dent,\n<b>large</b>.")
TRAP = b"<!doctype html><title>broken</title><script>document.title = 'broken'; fetch('/api/session')</script>"


async def with_files(place: Place, **files: tuple[bytes, str, str]) -> int:
    """An instance of `claim` with these."""
    await place.engine.apply(CLAIM)
    client = await place.site.client("clerk_1")
    kept = {
        name: await client.files.put(content, called, media=media) for name, (content, called, media) in files.items()
    }
    instance, _ = await claim(place, **kept)
    return instance


async def saved(page: Page, name: str) -> tuple[str, bytes]:
    """What a file is called that this link downloads, and what is in it."""
    async with page.expect_download() as coming:
        await page.get_by_role("link", name=f"Download {name}").click()
    download = await coming.value
    return download.suggested_filename, Path(await download.path()).read_bytes()


async def test_what_is_attached_to_an_item_is_seen_and_downloaded_on_the_page_of_its_instance(place: Place) -> None:
    await place.engine.apply(CLAIM)
    instance, job = await claim(place)
    await (await place.site.client("clerk_2")).worklist.select(job)
    page = await place.visit("clerk_2", f"/items/{job}")
    await page.locator("#finish input[type=file]").set_input_files(TEXT)
    await expect(page.locator("#finish [data-file-name]")).to_have_text(TEXT["name"])
    await page.get_by_label("Granted").select_option("yes")
    await page.get_by_role("button", name="Finish").click()
    await expect(page).to_have_url(f"{place.url}/work")
    page = await place.visit("clerk_1", f"/instances/{instance}", viewport=NARROW)
    await page.locator("#data").get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("region", name=TEXT["name"])).to_have_text("A dent,\n<b>large</b>.")
    await accessible(page)
    await fits(page)
    assert await saved(page, TEXT["name"]) == (TEXT["name"], TEXT["buffer"])
    await expect(page.locator("#story")).to_contain_text(TEXT["name"])
    address = await page.get_by_role("link", name="Download").get_attribute("href")
    stranger = await place.context("outsider")
    assert (await stranger.request.get(str(address))).status == 404


async def test_a_picture_is_shown_and_a_pdf_stands_in_a_frame_of_its_own_type(place: Place) -> None:
    letter = pdf("Dear all")
    files = {"photo": (PICTURE, "dent.png", "image/png"), "letter": (letter, "letter.pdf", "application/pdf")}
    instance = await with_files(place, **files)
    page = await place.visit("clerk_1", f"/instances/{instance}")
    data = page.locator("#data")
    await data.locator("[data-name='dent.png']").click()
    await expect(page.get_by_role("img", name="dent.png")).to_be_visible()
    async with page.expect_response(lambda answer: answer.url.startswith("blob:")) as framed:
        await data.locator("[data-name='letter.pdf']").click()
    assert (await framed.value).headers["content-type"] == "application/pdf"
    await expect(page.get_by_title("letter.pdf")).to_be_visible()
    await accessible(page)
    assert await saved(page, "letter.pdf") == ("letter.pdf", letter)


async def test_a_file_of_html_is_read_and_never_run(place: Place) -> None:
    """Whatever somebody says that it is."""
    media = {"photo": "image/png", "letter": "text/html", "report": "application/pdf"}
    instance = await with_files(place, **{name: (TRAP, f"{name}.html", kind) for name, kind in media.items()})
    page = await place.visit("clerk_1", f"/instances/{instance}")
    for name in ("letter", "report", "photo"):
        await page.locator(f"[data-name='{name}.html']").click()
    await expect(page.get_by_role("region", name="letter.html")).to_have_text(TRAP.decode())
    await expect(page.locator("#data")).to_contain_text("This file cannot be shown.")
    await expect(page.get_by_title("report.html")).to_be_visible()
    assert {await frame.title() for frame in page.frames[1:]} & {"broken"} == set()
    await expect(page).to_have_title(re.compile("claim"))
    address = str(await page.get_by_role("link", name="Download letter.html").get_attribute("href"))
    with pytest.raises(Error, match="Download is starting"):
        await page.goto(address)
    for headers in ({}, {"Range": "bytes=0-9"}):
        told = (await page.request.get(address, headers=headers)).headers
        assert told["content-disposition"].startswith("attachment;")
        assert told["content-type"] == "application/octet-stream"
        assert told["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in told["content-security-policy"]

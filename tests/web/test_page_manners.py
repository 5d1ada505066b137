"""Good manners of every page: for eyes, ears, hands and screens of all kinds, in every language, without jumps."""

import pytest
from every_page import addresses, lively
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

_SHIFT = """() => new Promise((resolve) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
  }).observe({type: "layout-shift", buffered: true});
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
})"""


@pytest.mark.parametrize(("language", "scheme"), [("en-GB", "light"), ("pt-BR", "dark")])
async def test_every_page_keeps_to_wcag(place: Place, language: str, scheme: str) -> None:
    known = await lively(place)
    page = await place.visit("boss", "/", locale=language, color_scheme=scheme)
    for path in addresses(place, known):
        await page.goto(path)
        assert (await page.locator("html").get_attribute("lang")) == ("en" if language == "en-GB" else language)
        await accessible(page)


@pytest.mark.parametrize("width", [360, 1920])
async def test_every_page_fits_its_screen_and_nothing_jumps(place: Place, width: int) -> None:
    known = await lively(place)
    page = await place.visit("boss", "/", viewport={**NARROW, "width": width})
    for path in addresses(place, known):
        await page.goto(path)
        await fits(page)
        assert await page.evaluate(_SHIFT) < 0.02, path


async def test_a_language_and_colours_that_were_chosen_are_kept(place: Place) -> None:
    page = await place.visit("clerk_1", "/work")
    await page.get_by_label("Language").select_option("pt-BR")
    await page.wait_for_function("document.documentElement.lang == 'pt-BR'")
    await page.locator("[data-cookie=mutirao_theme]").select_option("dark")
    await page.wait_for_function("document.documentElement.dataset.theme == 'dark'")
    await page.goto("/messages")
    assert await page.locator("html").get_attribute("data-theme") == "dark"
    assert await page.locator("html").get_attribute("lang") == "pt-BR"


async def test_times_are_told_in_the_zone_of_the_browser(place: Place) -> None:
    _, job = await place.site.item(city="Recife")
    titles = []
    for zone in ("Asia/Tokyo", "America/Recife"):
        page = await place.visit("clerk_1", "/work", timezone_id=zone)
        await page.wait_for_function(f"document.body.dataset.zone == '{zone}'")
        titles.append(await page.locator(f"#item-{job} time").first.get_attribute("title"))
    assert titles[0] != titles[1]

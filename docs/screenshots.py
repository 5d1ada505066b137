"""Takes the screenshots of the docs from the real thing: `make screenshots`.

Every page, light and dark, in English and Portuguese, on a wide screen; some on a telephone, too. To have a page shown, add
a line to SHOTS: a test sees to it that every page has one. `python docs/screenshots.py work item` takes only those.
"""

import asyncio
import io
import logging
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright
from rich.progress import Progress
from stage import ADMINISTRATOR, PASSWORD, Stage, set_stage

PAGES = Path(__file__).parent / "images" / "pages"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LANGUAGES = {"en": "en", "pt": "pt-BR"}
SCREENS: dict[str, ViewportSize] = {"": {"width": 1280, "height": 900}, "-narrow": {"width": 360, "height": 740}}
NO_SCROLLBARS = "html { scrollbar-gutter: auto !important; }"  # nor the room for them
COLOURS = 256
LARGEST = 8_000_000

WRONG_PDL = """WORKFLOW Holiday {
  STRING Days { REQUIRED; }
  TASK Ask { ROLE office; DEPENDS; OUT_CONTEXT Days; }
  TASK Decide { ROLE manger; DEPENDS Aks -> SUCCEEDED; IN_CONTEXT Days; }
}
"""


async def nothing(page: Page) -> None:
    """What is to be seen is there by itself."""


async def write_something_wrong(page: Page) -> None:
    await page.locator("textarea[name=text]").fill(WRONG_PDL)
    await page.locator("[data-findings] li").first.wait_for()


async def ask_why_not(page: Page) -> None:
    """Of the task that waits for its turn."""
    asked = page.locator("button[hx-get*='/why/fetch_parts']")
    await asked.click()
    await page.locator("#why-fetch_parts > *").first.wait_for()
    await page.locator("#why-fetch_parts").evaluate("row => row.closest('section').scrollIntoView({block: 'start'})")
    await page.evaluate("document.querySelectorAll('.table').forEach((each) => { each.scrollLeft = 0; })")


@dataclass(frozen=True)
class Look:
    """How somebody sees the pages."""

    theme: Literal["light", "dark"]
    language: str
    screen: str

    @property
    def ending(self) -> str:
        return f"{self.screen}-{self.theme}-{self.language}"


LOOKS = tuple(Look(*each) for each in product(THEMES, LANGUAGES, SCREENS))


@dataclass(frozen=True)
class Shot:
    """One picture: of which route, what to do there first, and whether it is also taken on a telephone.

    Of the stage's instances it shows the one of that name.
    """

    name: str
    route: str
    act: Callable[[Page], Awaitable[None]] = nothing
    query: str = ""
    instance: str = "instance"
    is_narrow: bool = False
    is_signed_in: bool = True

    def address(self, stage: Stage) -> str:
        known = {**stage.known, "instance": stage.known[self.instance]}
        return self.route.format(**known) + self.query


SHOTS = (
    Shot("first", "/", is_narrow=True),
    Shot("sign-in", "/sign-in", is_signed_in=False),
    Shot("work", "/work", is_narrow=True),
    Shot("item", "/items/{job}", is_narrow=True),
    Shot("messages", "/messages"),
    Shot("webhooks", "/messages/webhooks"),
    Shot("flows", "/flows"),
    Shot("flow", "/flows/{name}"),
    Shot("flow-versions", "/flows/{name}/versions"),
    Shot("flow-new", "/flows/new-flow", write_something_wrong),
    Shot("flow-edit", "/flows/{name}/edit"),
    Shot("flow-start", "/flows/{name}/start"),
    Shot("instances", "/instances"),
    Shot("instance", "/instances/{instance}", instance="waiting"),
    Shot("instance-why", "/instances/{instance}", ask_why_not, instance="waiting"),
    Shot("batches", "/batches"),
    Shot("batch", "/batches/{batch}"),
    Shot("batch-new", "/batches/new", query="?kind=suspend&flow=repair_example&all=true"),
    Shot("exceptions", "/exceptions"),
    Shot("exception", "/exceptions/{instance}", instance="exception"),
    Shot("waiting", "/waiting"),
    Shot("people", "/people"),
    Shot("person", "/people/{person}"),
    Shot("roles", "/roles"),
    Shot("role", "/roles/{role}"),
    Shot("databases", "/databases"),
    Shot("applications", "/applications"),
    Shot("task-models", "/task_models"),
    Shot("schedules", "/schedules"),
    Shot("schedule", "/schedules/form", query="?name=papers"),
    Shot("workers", "/workers"),
    Shot("settings", "/settings"),
)

PARTS = (
    "/asset/{name}",
    "/badges",
    "/work/next",
    "/work/counts",
    "/schedules/form",
    "/schedules/times",
    "/instances/{instance}/why/{task}",
    "/instances/{instance}/roll_back",
)
"""Routes that are no pages of their own: they are read into others, or lead to them."""


async def take_all(stage: Stage, browser: Browser, shots: tuple[Shot, ...]) -> None:
    PAGES.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        bar = progress.add_task("Screenshots", total=(len(shots) + sum(each.is_narrow for each in shots)) * 4)
        for look, is_signed_in in product(LOOKS, (False, True)):
            context = await _context(stage, browser, look, is_signed_in=is_signed_in)
            for shot in shots:
                if shot.is_signed_in == is_signed_in and (shot.is_narrow or not look.screen):
                    progress.update(bar, description=f"{shot.name}{look.ending}")
                    await _take(stage, context, shot, PAGES / f"{shot.name}{look.ending}.png")
                    progress.advance(bar)
            await context.close()


async def _context(stage: Stage, browser: Browser, look: Look, *, is_signed_in: bool) -> BrowserContext:
    context = await browser.new_context(
        base_url=stage.url,
        viewport=SCREENS[look.screen],
        color_scheme=look.theme,
        locale=LANGUAGES[look.language],
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    cookies = {"mutirao_zone": "UTC", "mutirao_language": LANGUAGES[look.language]}
    await context.add_cookies([{"name": name, "value": value, "url": stage.url} for name, value in cookies.items()])
    if is_signed_in:
        await stage.engine.access.end_sessions(None, ADMINISTRATOR)  # of the looks before: one's own page tells of them
        answer = await context.request.post("/api/session", data={"name": ADMINISTRATOR, "password": PASSWORD})
        if not answer.ok:
            raise RuntimeError(await answer.text())
    return context


async def _take(stage: Stage, context: BrowserContext, shot: Shot, path: Path) -> None:
    page = await context.new_page()
    answer = await page.goto(shot.address(stage))
    if answer is None or not answer.ok:
        raise RuntimeError(f"{shot.route} was answered by {answer and answer.status}")
    await page.wait_for_function("document.readyState === 'complete' && !document.querySelector('[aria-busy=true]')")
    await shot.act(page)
    await page.evaluate("document.fonts.ready.then(() => new Promise(requestAnimationFrame))")
    picture = await page.screenshot(animations="disabled", caret="hide", style=NO_SCROLLBARS)
    await asyncio.to_thread(save, picture, path)
    await page.close()


def save(picture: bytes, path: Path) -> None:
    """With a palette it needs a third of the room, and pages have few colours."""
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


async def main(names: Sequence[str]) -> None:
    """All of them, or those of some names."""
    shots = tuple(each for each in SHOTS if not names or each.name in names)
    logging.disable()  # what goes wrong on the stage is part of the play
    async with async_playwright() as playwright, set_stage() as stage:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        await take_all(stage, browser, shots)
        await browser.close()
    size = sum(each.stat().st_size for each in PAGES.glob("*.png"))
    if size > LARGEST:
        raise SystemExit(f"{PAGES} has {size:,} bytes of pictures; {LARGEST:,} are enough")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))

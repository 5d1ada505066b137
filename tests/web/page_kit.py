"""A real browser on a real server: who looks at pages in it, and what holds for every page they see.

Tests of pages run in one event loop for the whole session, since the browser is started once:
`pytestmark = pytest.mark.asyncio(loop_scope="session")`.
"""

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    ViewportSize,
    async_playwright,
)
from served import PASSWORD
from site_kit import Site, serving

from mutirao.people import set_password
from mutirao.testing import advance
from mutirao.testing.database import TestServer

AXE = (Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js").read_text("utf-8")
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
WIDE, NARROW = ViewportSize(width=1280, height=900), ViewportSize(width=360, height=740)
_CHROMIUM = ("--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb")


class Place:
    """A site, and people who sit at browsers of their own. `site.engine` is the engine behind it."""

    def __init__(self, site: Site, browser: Browser, stack: AsyncExitStack) -> None:
        self.site = site
        self.engine = site.engine
        self.url = site.url
        self._browser = browser
        self._stack = stack
        self._contexts: dict[str, BrowserContext] = {}
        self._known: set[str] = set()
        self.complaints: list[str] = []
        """What browsers have said against our pages: mistakes in scripts, and what the Content-Security-Policy forbids."""

    async def visit(self, person: str | None, path: str, **options: Any) -> Page:
        """A new tab of this person's browser, signed in, at this page. `options` are those of the browser's context."""
        page = await (await self.context(person, **options)).new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        await page.goto(path)
        return page

    async def context(self, person: str | None, **options: Any) -> BrowserContext:
        name = f"{person} {sorted(options.items())}"
        if name not in self._contexts:
            wanted = {"viewport": WIDE, "locale": "en-GB", "timezone_id": "America/Recife", **options}
            context = await self._browser.new_context(base_url=self.url, **wanted)
            zone = quote(wanted["timezone_id"], safe="")
            await context.add_cookies(
                [{"name": "mutirao_zone", "value": zone, "url": self.url}]
            )  # it has been here before: the first page is not read twice
            context.set_default_timeout(10_000)
            self._stack.push_async_callback(context.close)
            if person is not None:
                await self._give_password(person)
                answer = await context.request.post("/api/session", data={"name": person, "password": PASSWORD})
                assert answer.ok, await answer.text()
            self._contexts[name] = context
        return self._contexts[name]

    async def _give_password(self, person: str) -> None:
        """Once: a new one would end the sessions of their other browsers."""
        if person not in self._known:
            self._known.add(person)
            await set_password(self.engine, None, person, PASSWORD)

    async def advance(self, by: timedelta) -> None:
        """Move the engine's clock, and that of the pages."""
        async with self.engine.connection() as connection:
            await advance(connection, by)
        self.site.server.app.state.ahead += by

    def _hear(self, message: ConsoleMessage) -> None:
        # A refusal that a page shows is said by the browser as well.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """Debian's, started once."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(_CHROMIUM))
        yield browser
        await browser.close()


@pytest_asyncio.fixture(name="place", loop_scope="session")
async def a_place(servers: dict[str, TestServer], chromium: Browser) -> AsyncIterator[Place]:
    """On the newest PostgreSQL: pages do not depend on it. Nothing may be wrong in any browser when the test ends."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(servers["pg18"].clone())
        site = await stack.enter_async_context(serving(url))
        made = Place(site, chromium, stack)
        yield made
        assert made.complaints == []


async def accessible(page: Page, *, without: Sequence[str] = ()) -> None:
    """Asks axe whether the page keeps to WCAG 2.2 AA, as far as a program can tell."""
    await page.evaluate(AXE)
    found = await page.evaluate(
        "async (tags) => (await axe.run(document, {runOnly: tags})).violations.map("
        "(each) => [each.id, each.help, each.nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary)])",
        list(WCAG),
    )
    wrong = [each for each in found if each[0] not in without]
    assert wrong == [], "\n".join(map(str, wrong))


async def fits(page: Page) -> None:
    """Nothing is wider than the screen."""
    widths = await page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert widths[0] <= widths[1], f"{page.url} is {widths[0]} px wide on a screen of {widths[1]} px"

"""The first minutes: `mutirao up` as a newcomer meets it, from the terminal to the first piece of work done in a browser."""

import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from command import Background, mutirao, running
from playwright.async_api import Browser, Page, expect


def told(up: Background) -> tuple[str, str]:
    """Where to go, and the password, as the terminal says them."""
    password = up.wait_for("not shown after this run: ").rpartition("not shown after this run: ")[2].strip()
    return address(up), password


def address(up: Background) -> str:
    found = re.search(r"http://[\d.:]+", up.wait_for("in a browser, and sign in"))
    assert found is not None
    return found[0]


async def signed_in(browser: Browser, url: str, password: str) -> Page:
    """As somebody does it who has read the terminal."""
    page = await browser.new_page(locale="en-GB")
    await page.goto(url)
    await page.get_by_label("Name").fill("administrator")
    await page.get_by_label("Password").fill(password)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Welcome to Mutirão")).to_be_visible()
    return page


async def do_the_first_item(page: Page) -> str:
    """Take the first call and plan its visit; answers of which item that was."""
    await page.get_by_role("link", name="Open My work").click()
    await page.locator("select[name=role]").select_option("office")
    await expect(page.locator("[data-row]").filter(has_text="manager")).to_have_count(0)
    first = page.get_by_role("button", name="Take", exact=True).first
    await first.click()
    await expect(page).to_have_url(re.compile(r"/items/\d+"))
    item = re.findall(r"/items/(\d+)", page.url)[0]
    await page.get_by_label("Visit on").fill("2030-01-05")
    await page.get_by_role("button", name="Finish").click()
    await expect(page.get_by_text("Finished.")).to_be_visible()
    return str(item)


@pytest.mark.timeout(240)
@pytest.mark.asyncio(loop_scope="session")
async def test_a_newcomer_signs_in_with_what_the_terminal_says_and_does_some_work(
    place: Path,
    chromium: Browser,
) -> None:
    home = place / "home"
    with running("up", "--port", 0, MUTIRAO_HOME=home) as up:
        url, password = told(up)
        page = await signed_in(chromium, url, password)
        await expect(page.locator("[data-thing]")).to_have_count(3)
        await expect(page.get_by_role("region", name="What needs a person")).to_contain_text("has no account")
        item = await do_the_first_item(page)
        await page.goto(url)
        await expect(page.locator("[data-thing=item]").get_by_text("done")).to_be_visible()
        up.signal(signal.SIGINT)
        assert up.ends_with() == 0
    with running("up", "--port", 0, MUTIRAO_HOME=home) as up:
        assert "person reset-password administrator" in up.wait_for('Sign in as "administrator"')
        page = await signed_in(chromium, address(up), password)
        await expect(page.locator("#example-steps b").first).not_to_have_text("0")
        up.signal(signal.SIGINT)
        assert up.ends_with() == 0
    trace = mutirao("instance", "list", "--flow", "repair_example", "--json", MUTIRAO_HOME=home).stdout
    assert trace.count('"lighthouse-1"') == 1
    assert mutirao("job", "show", item, MUTIRAO_HOME=home).returncode != 0, "it has ended"


def test_the_board_keeps_address_and_sign_in_in_sight(place: Path) -> None:
    """On a terminal of its own, where a browser is opened; the address is printed in any case."""
    opened = place / "opened"
    browser = place / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    browser.chmod(0o755)
    home = {"MUTIRAO_HOME": str(place / "home"), "BROWSER": str(browser)}
    shown = on_a_terminal("up", "--port", "0", "--for", "4", **home)
    url = re.findall(r"Open (http://[\d.:]+)", shown)[0]
    password = re.findall(r"not shown after this run: (\S+)", shown)[0]
    board = shown.rpartition("Mutirão is up")[2]
    assert url in board
    assert f"administrator · password {password}" in board
    assert opened.read_text().split() == [url]
    again = on_a_terminal("up", "--port", "0", "--for", "1", "--no-browser", **home)
    assert "a new password: " in again.rpartition("Mutirão is up")[2]
    assert len(opened.read_text().split()) == 1


def test_no_browser_is_opened_where_nobody_sits_and_no_example_where_none_is_wanted(place: Path) -> None:
    home = place / "home"
    said = mutirao("up", "--port", 0, "--for", 1, "--no-example", MUTIRAO_HOME=home, BROWSER="/bin/false")
    assert said.returncode == 0, said
    assert mutirao("flow", "list", "--json", MUTIRAO_HOME=home).stdout.strip() == "[]"


def on_a_terminal(*words: str, **environment: str) -> str:
    """What a command shows there, to its end."""
    terminal, its_end = pty.openpty()
    known = {name: value for name, value in os.environ.items() if name not in ("CI", "SSH_CONNECTION")}
    with subprocess.Popen(
        [sys.executable, "-m", "mutirao", *words],
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        env={**known, "TERM": "xterm", "COLUMNS": "120", "LINES": "50", **environment},
    ) as process:
        os.close(its_end)
        read = b""
        with suppress(OSError):  # it ends by an error
            while chunk := os.read(terminal, 65536):
                read += chunk
        os.close(terminal)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\", "", read.decode("utf-8", "replace"))
    assert process.returncode == 0, shown
    return shown

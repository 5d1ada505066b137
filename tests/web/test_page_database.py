"""Databases that flows ask, applications, task models and settings; and that no page has a password."""

import re
from decimal import Decimal

import pytest
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import expect
from test_http_database import NOWHERE, REORDER, SECRET, by_network

from mutirao.model import Application, Attribute, Definition, Task, TaskModel

pytestmark = pytest.mark.asyncio(loop_scope="session")

LETTERS = Definition(
    name="letters",
    attributes=(Attribute("letter", "text"),),
    tasks=(Task(name="write", when="letter is null", application="Write", outputs=("letter",)),),
    final="letter is not null",
)


async def test_a_database_is_named_tried_changed_and_removed(place: Place) -> None:
    page = await place.visit("boss", "/databases")
    await expect(page.get_by_role("heading", name="No databases yet")).to_be_visible()
    await accessible(page)
    await page.get_by_role("button", name="Name a database").first.click()
    dialog = page.get_by_role("dialog", name="Name a database")
    await accessible(page)
    await dialog.get_by_label("What flows call it").fill("stock")
    await dialog.get_by_label("Address").fill("postgresql:///stock?host=/tmp")
    await dialog.get_by_role("button", name="Name it").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("its address has no user")
    async with by_network(place.engine.url) as url:
        await dialog.get_by_label("Address").fill(url)
        await dialog.get_by_role("button", name="Name it").click()
        card = page.get_by_role("article", name="stock")
        await card.get_by_role("button", name="Try it").click()
        await expect(card.get_by_role("status")).to_contain_text("version: PostgreSQL")
        await accessible(page)
    assert SECRET not in await page.content()
    await card.get_by_role("button", name="Change").click()
    change = page.get_by_role("dialog", name="Change stock")
    await change.get_by_label("New address").fill(NOWHERE)
    await change.get_by_label("A query may take").fill("2.5")
    await change.get_by_role("button", name="Change").click()
    await expect(card).to_contain_text("127.0.0.1, database stock")
    await card.get_by_role("button", name="Try it").click()
    await expect(card.get_by_role("alert")).to_contain_text("Connection refused")
    await page.reload()
    for word in (SECRET, "reader"):
        assert word not in await page.content()
    await place.engine.apply(REORDER)
    await page.reload()
    await expect(card.get_by_role("link", name="reorder")).to_be_visible()
    await card.get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Jobs of the flows that ask it fail")
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(card).to_have_count(0)
    assert await place.engine.sources.all() == []


async def test_applications_and_task_models_tell_who_uses_them(place: Place) -> None:
    page = await place.visit("boss", "/applications")
    await expect(page.get_by_role("heading", name="No applications yet")).to_be_visible()
    await accessible(page)
    await place.engine.library.put(
        Application(name="Write", filename="write-letter", os="Linux", hosts=("printer-1",), size=1200)
    )
    await place.engine.library.put(Application(name="Old", filename="old"))
    await place.engine.library.put(TaskModel(name="Decide", kind="manual", role="clerk", description="Say yes or no."))
    await place.engine.apply(LETTERS)
    await page.reload()
    row = page.get_by_role("row", name="write-letter")
    for word in ("printer-1", "Linux", "1.2 MB", "letters", "none"):
        await expect(row).to_contain_text(word)
    await row.get_by_role("button", name="Remove Write").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Remove").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("is used by flow letters")
    await dialog.get_by_role("button", name="Leave it").click()
    await page.get_by_role("button", name="Remove Old").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.locator("tbody tr")).to_have_count(1)
    await page.get_by_role("link", name="Task models").click()
    model = page.get_by_role("row", name="Decide")
    await expect(model).to_contain_text("Say yes or no.")
    await accessible(page)
    await model.get_by_role("button", name="Remove Decide").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("heading", name="No task models yet")).to_be_visible()


async def test_workers_that_run_an_application_are_told(place: Place) -> None:
    await place.engine.library.put(Application(name="Write", filename="write-letter"))
    await place.engine.apply(LETTERS)
    async with place.engine.connection() as connection:
        await connection.execute(
            "insert into mutirao.worker (name, host, program, tasks, started_at, seen_at) "
            "select 'printer-1:42', 'printer-1', 'mutirao', array[t.id], mutirao.now(), mutirao.now() from mutirao.task t where t.name = 'write'"
        )
    page = await place.visit("boss", "/applications")
    await expect(page.get_by_role("row", name="write-letter")).to_contain_text("printer-1:42")


async def test_a_setting_is_changed_with_a_reason_that_stands_in_the_history(place: Place) -> None:
    page = await place.visit("boss", "/settings")
    await accessible(page)
    await page.get_by_role("button", name="Change keep_messages").click()
    dialog = page.get_by_role("dialog")
    await accessible(page)
    await dialog.get_by_label("Value").fill("soon")
    await expect(dialog.locator(".check-line")).to_contain_text("A number is wanted")
    await dialog.get_by_label("Value").fill("99999")
    await dialog.get_by_role("button", name="Change").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("a number of days from 0 to 36500")
    await dialog.get_by_label("Value").fill("30")
    await dialog.get_by_label("Why").fill("the archive has them")
    await dialog.get_by_role("button", name="Change").click()
    await expect(page.get_by_role("row", name="keep_messages").first).to_contain_text("30 days")
    history = page.get_by_role("region", name="History").get_by_role("row").nth(1)
    for word in ("keep_messages", "90", "30", "boss", "the archive has them"):
        await expect(history).to_contain_text(word)
    await page.get_by_role("button", name="Change reminders").click()
    await page.get_by_role("dialog").get_by_label("Value").fill("36, soon")
    await expect(page.get_by_role("dialog").locator(".check-line")).to_contain_text("Numbers are wanted")
    await page.get_by_role("dialog").get_by_label("Value").fill("36 1,5")
    await expect(page.get_by_role("dialog").locator(".check-line")).to_contain_text("a decimal point")
    await page.get_by_role("dialog").get_by_label("Value").fill("36, 24;1.5,")
    await page.get_by_role("dialog").get_by_role("button", name="Change").click()
    await expect(page.get_by_role("row", name="reminders").first).to_contain_text("36, 24, 1.5")
    await expect(history).to_contain_text("48, 24, 12, 6, 1")
    values = {each.name: each.value for each in await place.engine.settings.all()}
    assert (values["keep_messages"], values["reminders"]) == (30, [36, 24, Decimal("1.5")])


async def test_there_may_be_no_reminders(place: Place) -> None:
    await place.engine.settings.set(None, {"transfer": 0})
    page = await place.visit("boss", "/settings")
    await page.get_by_role("button", name="Change reminders").click()
    await accessible(page)
    await page.get_by_role("dialog").get_by_label("Value").fill("")
    await page.get_by_role("dialog").get_by_role("button", name="Change").click()
    await expect(page.get_by_role("row", name="reminders").first).to_contain_text("none")
    assert {each.name: each.value for each in await place.engine.settings.all()}["reminders"] == []


async def test_a_setting_that_the_page_has_no_words_for_stays_json(place: Place) -> None:
    async with place.engine.connection() as connection:
        await connection.execute("insert into mutirao.setting (name, value) values ('colours', '[\"red\", 7]')")
    page = await place.visit("boss", "/settings")
    await page.get_by_role("button", name="Change colours").click()
    await expect(page.get_by_role("dialog").get_by_label("Value")).to_have_value(re.compile(r'^\["red", ?7\]$'))


async def test_what_holds_for_all_is_for_administrators(place: Place) -> None:
    await place.engine.sources.put("stock", NOWHERE)
    for path in ("/databases", "/applications", "/task_models", "/settings", "/schedules", "/schedules/form"):
        page = await place.visit("clerk_1", path)
        await expect(page.get_by_role("heading", level=1)).to_have_text("This is not for you to see")
        assert "stock" not in await page.content()
    await expect(page.get_by_role("link", name="Databases and applications")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_pages_about_what_flows_share_fit_a_telephone(place: Place, scheme: str) -> None:
    await place.engine.sources.put("stock", NOWHERE)
    await place.engine.library.put(
        Application(name="Write", filename="/usr/local/share/programs/of-the-office/write-letter")
    )
    for path in ("/databases", "/applications", "/task_models", "/settings"):
        page = await place.visit("boss", path, viewport=NARROW, color_scheme=scheme)
        await fits(page)
        await accessible(page)

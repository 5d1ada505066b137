"""The first page: for whoever is new, for whoever works here, and in an engine where there is nothing yet."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
import pytest_asyncio
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import Browser, expect
from served import site_on
from site_kit import Site

from mutirao.cli.firm import RepairExample, move_in
from mutirao.cli.staff import MOST_OPEN, Callers
from mutirao.model import Attribute, Definition, Task
from mutirao.server.page.first_step import EXAMPLE
from mutirao.testing.database import TestServer

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(name="bare", loop_scope="session")
async def a_bare_place(servers: dict[str, TestServer], chromium: Browser) -> AsyncIterator[Place]:
    """An engine with an administrator, and nothing else."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(servers["pg18"].clone())
        site = await stack.enter_async_context(site_on(url, Site))
        await site.engine.persons.add(None, "boss", roles=("administrator",))
        made = Place(site, chromium, stack)
        yield made
        assert made.complaints == []


async def test_an_empty_engine_says_what_to_do_first(bare: Place) -> None:
    page = await bare.visit("boss", "/")
    await expect(page.get_by_role("heading", name="Nothing is here yet")).to_be_visible()
    for words, path in {"Add people": "/people", "Define a flow": "/flows/new-flow"}.items():
        await expect(page.get_by_role("link", name=words)).to_have_attribute("href", path)
    await accessible(page)
    narrow = await bare.visit("boss", "/", viewport=NARROW)
    await fits(narrow)


async def test_whoever_works_here_sees_what_is_theirs_and_live(place: Place) -> None:
    await place.site.item(city="Recife")
    page = await place.visit("clerk_1", "/")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Hello, clerk_1")
    mine = page.get_by_role("region", name="For you to do")
    await expect(mine.get_by_role("link", name="1 item", exact=True)).to_be_visible()
    await expect(page.get_by_role("region", name="In your charge").get_by_role("link")).to_have_count(2)
    await expect(page.get_by_role("region", name="What runs now")).to_have_count(0)
    await place.site.item(city="Olinda")
    await expect(mine.get_by_role("link", name="2 items")).to_be_visible()
    await accessible(page)


async def test_an_outsider_sees_nothing_of_others(place: Place) -> None:
    await place.site.item(city="Recife")
    page = await place.visit("outsider", "/")
    await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    await expect(page.locator("#now")).not_to_contain_text("request")


async def test_administrators_see_what_needs_a_person_and_what_runs(place: Place) -> None:
    instance, job = await place.site.item(city="Recife")
    clerk = await place.engine.persons.number("clerk_1")
    attempt = await place.engine.worklists.select(clerk, job)
    await place.engine.worklists.fail(clerk, job, attempt, "the form is lost")
    page = await place.visit("boss", "/")
    stuck = page.get_by_role("region", name="What needs a person")
    await expect(stuck).to_contain_text("the form is lost")
    await expect(stuck).not_to_contain_text("task_failed")
    await expect(stuck.get_by_role("link", name=f"request {instance}")).to_have_attribute(
        "href", f"/instances/{instance}"
    )
    await expect(stuck.get_by_role("link", name="1 instance")).to_have_attribute("href", "/exceptions")
    await expect(stuck).to_contain_text("Approve failed")
    await expect(page.get_by_role("region", name="What runs now")).to_contain_text("1 open")
    await expect(page.get_by_role("region", name="Health")).to_contain_text("No worker is running")
    await accessible(page)


async def test_messages_are_told_in_the_readers_language_here_as_well(place: Place) -> None:
    _, job = await place.site.item(city="Recife")
    clerk = await place.engine.persons.number("clerk_2")
    attempt = await place.engine.worklists.select(clerk, job)
    await place.engine.worklists.fail(clerk, job, attempt, "a ficha sumiu")
    page = await place.visit("clerk_1", "/", locale="pt-BR")
    told = page.locator("[id^=first-message-]", has_text="a ficha sumiu")
    await expect(told).to_contain_text("Approve falhou: a ficha sumiu.")
    await expect(page.locator("#now")).not_to_contain_text(re.compile("task_failed|open\\.|has failed"))


async def test_the_example_is_explained_with_three_things_to_try(bare: Place) -> None:
    assert await move_in(bare.engine)
    callers = Callers(bare.engine)
    await callers.begin()
    await callers.begin()
    begun = await bare.engine.instances(EXAMPLE, status="open")
    page = await bare.visit("boss", "/")
    await expect(page.get_by_role("heading", name="Welcome to Mutirão")).to_be_visible()
    steps = page.get_by_role("list", name="The example now")
    await expect(steps.get_by_role("listitem").first).to_have_text("6 The office plans")
    counts = [int(text) for text in await steps.locator("b").all_text_contents()]
    assert sum(counts) == len(begun) <= MOST_OPEN
    await expect(page.get_by_role("region", name="For you to do").get_by_role("link", name="6 items")).to_be_visible()
    things = page.locator("[data-thing]")
    await expect(things).to_have_count(3)
    await expect(things.get_by_text("done")).to_have_count(3)
    await expect(things.get_by_text("done").first).to_be_hidden()
    await accessible(page)
    await page.get_by_role("button", name="Hide the first steps").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Hello, boss")
    await page.get_by_role("button", name="Show the first steps").click()
    await expect(page.get_by_role("heading", name="Three things to try")).to_be_visible()
    narrow = await bare.visit("boss", "/", viewport=NARROW)
    await fits(narrow)
    await page.get_by_role("link", name="All calls").click()
    await expect(page).to_have_url(re.compile(rf"/instances\?flow={EXAMPLE}$"))


async def test_whoever_starts_the_example_is_asked_only_for_what_a_caller_knows(bare: Place) -> None:
    await move_in(bare.engine)
    page = await bare.visit("boss", f"/flows/{EXAMPLE}/start")
    asked = page.locator("form.start > .field > label")
    await expect(asked).to_have_text([re.compile(each) for each in ("Customer", "Request", "Letter", "Account")])


async def test_what_was_tried_is_ticked(bare: Place) -> None:
    await move_in(bare.engine)
    await Callers(bare.engine).begin()
    page = await bare.visit("boss", "/")
    await page.get_by_role("link", name="Open My work").click()
    await page.get_by_role("button", name="Take", exact=True).first.click()
    await page.get_by_label("Visit on").fill("2030-01-05")
    await page.get_by_role("button", name="Finish").click()
    await expect(page.get_by_text("Finished.")).to_be_visible()
    await page.goto("/")
    done = page.locator("[data-thing=item]")
    await expect(done.get_by_text("done")).to_be_visible()
    await expect(page.locator("[data-thing=instance]").get_by_text("done")).to_be_hidden()
    await expect(page.locator("[data-thing=instance]")).to_contain_text("At present no bill waits for an account.")
    async with bare.engine.connection() as connection:
        await connection.execute(
            "select mutirao.fail(c.job, c.attempt, 'no account', true) from mutirao.task t join mutirao.flow f on f.id = t.flow,"
            " lateral mutirao.claim('test', array[t.id], 100) c where f.name = %s and t.name = 'calculate_price'",
            [EXAMPLE],
        )
    await page.goto("/")
    await page.get_by_role("link", name="Look at lighthouse-").click()
    await expect(page).to_have_url(re.compile(r"/instances/\d+$"))
    await page.goto("/")
    await expect(page.locator("[data-thing=instance]").get_by_text("done")).to_be_visible()
    steps = page.get_by_role("list", name="The example now")
    await expect(steps.get_by_role("listitem").first).to_have_text("5 The office plans")


async def test_a_flow_of_somebody_else_with_the_examples_name_is_shown_as_well(bare: Place) -> None:
    names = ("visit_on", "parts", "hours", "price", "bill")
    attributes = tuple(Attribute(each, "text") for each in names)
    bill = Task(name="write_bill", when="bill is null", outputs=("bill",))
    await bare.engine.apply(Definition(name=EXAMPLE, attributes=attributes, tasks=(bill,), final="bill is not null"))
    await bare.engine.start_named(EXAMPLE, [dict.fromkeys(names[:4], "much")])
    page = await bare.visit("boss", "/")
    steps = page.get_by_role("list", name="The example now")
    await expect(steps.get_by_role("listitem").last).to_have_text("1 A program bills")


async def test_the_example_stays_out_where_others_live(place: Place) -> None:
    assert not await move_in(place.engine)
    assert {each.name for each in await place.engine.flows()} == {"request"}
    assert {each.name for each in await place.engine.roles.all(None)} == {"administrator", "clerk"}


async def test_the_firm_is_found_again_and_a_new_administrator_helps_out(bare: Place) -> None:
    assert await move_in(bare.engine)
    await bare.engine.roles.take(None, "office", ["boss"])
    await bare.engine.persons.add(None, "administrator", roles=("administrator",))
    assert await move_in(bare.engine, "administrator")
    assert (await bare.engine.persons.get(None, "boss")).roles == ["administrator", "manager"]
    assert "office" in (await bare.engine.persons.get(None, "administrator")).roles
    assert len(await bare.engine.versions(EXAMPLE)) == 1
    assert RepairExample.definition.name == EXAMPLE


async def test_of_two_who_move_in_at_once_the_second_finds_it_done(bare: Place) -> None:
    assert all(await asyncio.gather(move_in(bare.engine), move_in(bare.engine)))
    assert len(await bare.engine.versions(EXAMPLE)) == 1


async def test_the_first_page_moves_with_the_clock(bare: Place) -> None:
    await move_in(bare.engine)
    await Callers(bare.engine).begin()
    await bare.advance(timedelta(hours=3))
    page = await bare.visit("boss", "/")
    await expect(page.get_by_text("6 are overdue")).to_be_visible()

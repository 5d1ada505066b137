"""An item whose input is rows of another database: asked when it is taken, and shown as a table that is neither endless nor run."""

import re
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import expect

from mutirao.model import Attribute, Definition, Offer, Query, Task
from mutirao.testing.database import TestServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHORT = "select name, left_over, price from article where left_over < :enough order by left_over"
REORDER = Definition(
    name="reorder",
    creator="clerk",
    attributes=(
        Attribute("enough", "integer"),
        Attribute("articles", "json", query=Query("stock", SHORT)),
        Attribute("ordered", "text"),
    ),
    tasks=(Task(name="order", when="ordered is null", offer=Offer(role="clerk"), outputs=("ordered",)),),
    final="ordered is not null",
)
NASTY = "<script>document.title = 'broken'</script>"


@pytest_asyncio.fixture(name="stock", loop_scope="session")
async def a_stock(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """A database that is none of ours, with articles."""
    async with servers["pg18"].empty() as url:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("create table article (name text, left_over int, price numeric)")
            await connection.execute("insert into article values (%s, -1, 1234567890.50)", [NASTY])
            await connection.execute("insert into article select 'nail ' || n, n, null from generate_series(0, 999) n")
        yield url


async def item(place: Place, enough: int) -> tuple[int, int]:
    client = await place.site.client("clerk_1")
    instance = await client.instances.create("reorder", {"enough": enough})
    [job] = [job async for job in client.instances.jobs(instance.id)]
    return instance.id, job.id


async def test_rows_of_another_database_are_a_table_of_the_item(place: Place, stock: str) -> None:
    await place.engine.sources.put("stock", stock)
    await place.engine.apply(REORDER)
    instance, job = await item(place, enough=150)
    page = await place.visit("clerk_2", f"/items/{job}")
    table = page.locator("#given-articles")
    await expect(table).to_have_count(0)  # nobody has asked yet
    await page.get_by_role("button", name="Take", exact=False).first.click()
    await expect(table.locator("thead th")).to_have_text(["name", "price", "left_over"])  # as jsonb has them
    await expect(table.locator("tbody tr")).to_have_count(100)
    await expect(table.locator("tbody tr").nth(0).locator("td")).to_have_text([NASTY, "1234567890.5", "-1"])
    await expect(table.locator("tbody tr").nth(1).locator("td")).to_have_text(["nail 0", "\N{EN DASH}", "0"])
    await expect(table).to_contain_text("51 more rows.")
    await expect(page).to_have_title(re.compile("^Order"))
    await expect(page.locator("main script")).to_have_count(0)
    await accessible(page)
    await expect(page.locator("#history")).to_contain_text("Order: rows were read from another database")
    whole = await page.request.get(str(await table.get_by_role("link").get_attribute("href")))
    assert len((await whole.json())["inputs"]["articles"]) == 151
    page = await place.visit("clerk_1", f"/instances/{instance}", viewport=NARROW)
    await expect(page.locator("#data tbody tr")).to_have_count(100)
    await expect(page.locator("#data tbody td").first).to_have_text(NASTY)
    await fits(page)


async def test_whoever_takes_an_item_whose_rows_cannot_be_had_is_told_and_may_try_again(
    place: Place, stock: str
) -> None:
    await place.engine.sources.put("stock", stock)
    await place.engine.apply(REORDER)
    _, job = await item(place, enough=3)
    async with await psycopg.AsyncConnection.connect(stock, autocommit=True) as connection:
        await connection.execute("alter table article rename to gone")
        page = await place.visit("clerk_2", f"/items/{job}")
        take = page.get_by_role("button", name="Take", exact=False).first
        await take.click()
        await expect(page.get_by_role("alert")).to_contain_text('"article" does not exist')
        await expect(page.locator("#facts")).to_contain_text("nobody")
        await connection.execute("alter table gone rename to article")
    await take.click()
    await expect(page.locator("#given-articles tbody tr")).to_have_count(4)

"""Workers and health: who is there, what waits for them, how fast it goes, what to do where something is wrong."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from instance_kit import trips
from page_kit import NARROW, Place, a_place, accessible, fits  # noqa: F401 gives the fixture
from playwright.async_api import expect

from mutirao import Change, Flow, task
from mutirao.model import Attribute, Definition, Limit, Offer, Task
from mutirao.worker import Worker, WorkerOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

# A page is read again every five seconds.
SOON = 15_000


class Parcel(Flow):
    weight: int = 0
    sent: bool = False
    final = "sent"

    @task(when="not sent and weight > 0")
    async def send(self) -> Change:
        return {"sent": True}

    @task(when="weight = 0")
    async def weigh(self) -> Change:
        return {"weight": 3}


@asynccontextmanager
async def working(place: Place, name: str) -> AsyncIterator[None]:
    worker = Worker(place.engine, [Parcel], WorkerOptions(name=name))
    running = asyncio.create_task(worker.run())
    await asyncio.wait([running, asyncio.create_task(worker.ready.wait())], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield
    finally:
        worker.stop()
        await running


async def test_a_backlog_that_nobody_does_is_pointed_out_until_a_worker_comes_and_does_it(place: Place) -> None:
    await place.engine.apply(Parcel)
    await place.engine.start_many([Parcel() for _ in range(12)])
    page = await place.visit("boss", "/workers")
    lonely = page.locator("#orphan-parcel-weigh")
    await expect(lonely).to_contain_text("No worker does weigh of parcel")
    await expect(lonely).to_contain_text("12 jobs are ready and nobody takes them.")
    await expect(lonely.locator("code")).to_have_text("mutirao worker FILE.py")
    row = page.locator("#queue-parcel-weigh")
    await expect(row).to_contain_text("nobody")
    await expect(page.get_by_text("None. A worker is a program")).to_be_visible()
    await expect(page.locator("#chart-throughput rect.series-done")).to_have_count(0)
    await accessible(page)

    async with working(place, "ann"):
        await expect(page.locator("#alive")).to_contain_text("ann", timeout=SOON)
        await expect(page.locator("#alive")).to_contain_text("parcel.weigh")
        await expect(lonely).to_have_count(0, timeout=SOON)
        await expect(page.get_by_text("All is well")).to_be_visible()
        await expect(page.get_by_text("Nothing waits for a program.")).to_be_visible(timeout=SOON)

    # It has left, and told what it did: 24 jobs, in one minute or two
    await expect(page.locator("#gone")).to_contain_text("ann", timeout=SOON)
    await expect(page.locator("#gone")).to_contain_text("stopped")
    await expect(page.locator("#chart-throughput .sub")).to_contain_text("In the last hour: 24 done, 0 failed.")
    await expect(page.locator("#chart-latency polyline.series-p95")).not_to_have_count(0)
    await page.locator("#chart-throughput").get_by_text("The numbers").click()
    cells = page.locator("#chart-throughput tbody tr td:first-of-type")
    assert sum(map(int, await cells.all_text_contents())) == 24
    await page.locator("#chart-latency").get_by_text("The numbers").click()
    await expect(page.locator("#chart-latency tbody tr").first).to_contain_text("ms")
    await accessible(page)


async def test_charts_show_each_minute_of_the_last_hour(place: Place) -> None:
    await place.engine.apply(Parcel)
    numbers, _ = await place.engine.task_numbers("parcel", ["send"])
    ages = [60 * minute for minute in range(1, 50)]
    async with place.engine.connection() as connection:
        for time, count in ((13, 900), (19, 90), (-1, 40)):
            await connection.execute(
                "select mutirao.note_pace(%s::int[], %s::int[], %s::int[], %s::int[])",
                [ages, [numbers["send"]] * 49, [time] * 49, [count + minute for minute in range(49)]],
            )
    page = await place.visit("boss", "/workers")
    chart = page.locator("#chart-throughput")
    await expect(chart.locator("rect.series-done")).to_have_count(49)
    await expect(chart.locator(".plot rect.series-failed")).to_have_count(49)
    await expect(chart.locator(".ticks span")).to_have_text(["2,000", "1,000", "0"])
    # 990 to 1,086 of 2,000 are as high as half of the plot
    heights = await chart.locator("rect.series-done").evaluate_all(
        "all => all.map(each => +each.getAttribute('height'))"
    )
    assert min(heights) == pytest.approx(49.5)
    assert max(heights) == pytest.approx(54.3)
    await expect(page.locator("#chart-latency .plot polyline")).to_have_count(2)
    await expect(page.locator("#chart-latency .sub")).to_contain_text("half took 79 ms at most, 95 of 100")
    await expect(page.locator("#chart-latency .moments span")).to_have_count(5)


async def test_workers_that_fell_silent_what_is_late_and_limits_are_told(place: Place) -> None:
    await place.engine.apply(Parcel)
    await place.engine.limit("parcel", "send", Limit(at_once=2, per_second=0.5))
    numbers, _ = await place.engine.task_numbers("parcel", ["weigh"])
    await place.engine.start_many([Parcel() for _ in range(3)])
    async with place.engine.connection() as connection:
        await connection.execute("select mutirao.announce('bob', %s, 'host-7', '1.2')", [[numbers["weigh"]]])
        await connection.execute("select mutirao.claim('bob', %s)", [[numbers["weigh"]]])
    await place.advance(timedelta(minutes=3))
    page = await place.visit("boss", "/workers", color_scheme="dark")
    await expect(page.locator("#gone")).to_contain_text("bob")
    await expect(page.locator("#gone")).to_contain_text("silent")
    await expect(page.locator("#orphan-parcel-weigh")).to_contain_text(
        re.compile(r"It was last done by bob \(host-7\), 3 min")
    )
    late = page.locator("#notice-lease")
    await expect(late).to_contain_text(re.compile(r"should have been taken over 2(\.\d)? min ago"))
    await expect(late.locator("code")).to_have_text("mutirao clock")
    limit = page.get_by_role("region", name="Limits in force")
    await expect(limit).to_contain_text("2 at once")
    await expect(limit).to_contain_text("0.5 a second")
    await expect(page.get_by_text("PostgreSQL 18")).to_be_visible()
    await expect(page.get_by_text("1 open event stream")).to_be_visible(timeout=SOON)
    await accessible(page)
    await page.set_viewport_size(NARROW)
    await fits(page)
    await accessible(page)


async def test_all_is_not_well_while_an_instance_needs_a_person(place: Place) -> None:
    well, ill = await trips(place)
    page = await place.visit("boss", "/workers")
    told = page.locator("#notice-exceptions")
    await expect(told).to_contain_text("1 instance needs a person")
    await expect(told.get_by_role("link")).to_have_attribute("href", "/exceptions")
    await place.engine.cancel(well)
    [failed] = [each.id for each in await place.engine.jobs(ill) if each.status == "failed"]
    await place.engine.skip(failed, {"hotel": "Atlântico", "flight": "by bus"})
    await expect(page.get_by_text("All is well")).to_be_visible(timeout=SOON)


async def test_all_is_well_while_a_result_waits_for_others(place: Place) -> None:
    await place.engine.apply(
        Definition(
            name="verdict",
            creator="clerk",
            attributes=(Attribute("first", "text"), Attribute("second", "text")),
            tasks=(
                Task(name="look_up", when="first is null"),
                Task(name="ask", when="second is null", offer=Offer(role="clerk")),
            ),
            final="first is not null",
        )
    )
    instance = (await (await place.site.client("clerk_1")).instances.create("verdict", {})).id
    numbers, _ = await place.engine.task_numbers("verdict", ["look_up"])
    async with place.engine.connection() as connection:
        await connection.execute(
            """select mutirao.complete(j.job, j.attempt, '{"first": "guilty"}') from mutirao.claim('test', %s, 1) j""",
            [[numbers["look_up"]]],
        )
    assert {each.task: each.status for each in await place.engine.jobs(instance)}["look_up"] == "parked"
    page = await place.visit("boss", "/workers")
    await expect(page.locator("#queue-verdict-look_up")).to_be_visible()
    await expect(page.get_by_text("All is well")).to_be_visible()
    await expect(page.get_by_role("heading", name="This needs you")).to_have_count(0)


async def test_it_is_for_administrators(place: Place) -> None:
    page = await place.visit("clerk_1", "/workers")
    await expect(page.locator("main")).to_contain_text("Only administrators may do this")
    await expect(page.locator("#health")).to_have_count(0)
    await expect(page.get_by_role("link", name="Workers and health")).to_have_count(0)

"""Makes the pictures of the docs from the real thing: `make pictures`."""

import asyncio
import io
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from rich.console import Console, RenderableType

from mutirao import Change, Creation, Flow, ItemFilter, Worker, task
from mutirao.cli.board import View, look
from mutirao.cli.cause import Picture
from mutirao.cli.door import Door
from mutirao.cli.story import story_table
from mutirao.cli.tally import Tally
from mutirao.cli.up import EXAMPLE, Shown, prepare, with_example
from mutirao.cli.worklist_page import item_table
from mutirao.database.engine import Engine
from mutirao.database.story import tell
from mutirao.language.pdl import read_pdl
from mutirao.testing import advance, throwaway_engine

IMAGES = Path(__file__).parent / "images"
WATCHED = timedelta(seconds=12)


async def watch_the_example(engine: Engine) -> None:
    """Let the example run for a while, then take a picture of its board and of one instance's story."""
    tally = Tally()
    door = Door("administrator")
    loaded, actors = await with_example(engine, EXAMPLE, door)
    worker, board = await prepare(
        engine, loaded, tally, Shown("embedded server in ~/.local/share/mutirao, database mutirao")
    )
    board = replace(board, server="http://127.0.0.1:8321", sign_in=door.short(board.call))
    services = [asyncio.create_task(service.run()) for service in (worker, *actors)]
    await asyncio.sleep(WATCHED.total_seconds())
    view = await look(engine, View())
    rate = sum(tally.done.values()) / WATCHED.total_seconds()
    save("up", "mutirao up", board.full(view, rate, WATCHED))
    last = max(view.finished, key=lambda finished: len(finished.trace))
    events = tell(last.trace, await engine.definition(last.instance.flow))
    save("trace", f"mutirao instance trace {last.instance.id}", story_table(events, last.instance.started_at))
    for service in (worker, *actors):
        service.stop()
    await asyncio.gather(*services)


class Order(Flow):
    """One that a person would ask about: some of it is under way, some has not begun, and for a reason."""

    amount: int = 40
    country: str | None = None
    paid: bool = False
    parcels: int = 0
    stage: str = "new"
    final = "stage = 'sent'"

    @task(when="stage = 'new'")
    async def check_stock(self) -> Change:
        return {"stage": "in stock"}

    @task(when="stage = 'in stock' and not paid", backoff=timedelta(minutes=1))
    async def charge_card(self) -> Change:
        raise ConnectionError("the bank does not answer")

    @task(when="stage = 'in stock' and amount > 100 and not (paid or country in ('PT', 'ES'))")
    async def ask_customs(self) -> Change:
        return {}

    @task(when="paid and amount / parcels < 500 or stage = 'urgent'")
    async def pack(self) -> Change:
        return {}

    @task(depends="charge_card")
    async def send_invoice(self) -> Change:
        return {}


async def ask_why(engine: Engine) -> None:
    """Let an order come to where it waits for another try, and ask."""
    await engine.apply(Order)
    number = await engine.start(Order())
    worker = Worker(engine, [Order])
    working = asyncio.create_task(worker.run())
    while not await engine.jobs(number, status="waiting"):  # noqa: ASYNC110 the engine tells nobody else
        await asyncio.sleep(0.01)
    save("why", f"mutirao why {number}", Picture(await engine.why(number)))
    worker.stop()
    await working


MAINTENANCE = Path(__file__).parents[1] / "examples" / "maintenance.pdl"
CUSTOMERS = ("City library", "Bakery", "Museum", "Town hall", "School")


async def read_a_worklist(engine: Engine) -> None:
    """Let a maintenance firm take some calls, one of them a while ago, and look at what the office has to do."""
    for role in ("office", "technician", "store"):
        await engine.roles.add(None, role)
    await engine.classes.put("UpdateCustomerRecord", ["UpdateCustomerRecord"])
    clerk = (await engine.persons.add(None, "clerk_1", roles=["office"])).id
    await engine.library.apply(read_pdl(MAINTENANCE.read_text("utf-8")))
    async with engine.connection() as connection:
        for number, customer in enumerate(CUSTOMERS):
            call = Creation(flow="maintenance", key=f"call-{4711 + number}", priority=25 if number == 1 else 0)
            await engine.charges.create(clerk, call)
            if number in (0, 2):
                page = await engine.worklists.page(clerk, ItemFilter(descending=True))
                job = page.items[0].job
                attempt = await engine.worklists.select(clerk, job)
                await engine.worklists.finish(clerk, job, attempt, {"customer": customer})
            await advance(connection, timedelta(minutes=11))
    await engine.worklists.next(clerk, ItemFilter(sort="deadline"))
    page = await engine.worklists.page(clerk, ItemFilter(sort="deadline"))
    save("worklist", "mutirao worklist list --as clerk_1 --sort deadline", item_table(page.items), width=132)


def save(name: str, title: str, what: RenderableType, *, width: int = 110) -> None:
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(what)
    console.save_svg(str(IMAGES / f"{name}.svg"), title=title)


async def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    async with throwaway_engine() as engine:
        await watch_the_example(engine)
    async with throwaway_engine() as engine:
        await ask_why(engine)
    async with throwaway_engine() as engine:
        await read_a_worklist(engine)


if __name__ == "__main__":
    asyncio.run(main())

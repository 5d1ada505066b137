"""What the screenshots show: an engine where people and programs have been at work since this morning.

Everything is done through the engine, as people and programs would; only time is moved. It is always the same morning.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from mutirao import Change, Creation, Failed, Flow, ItemFilter, Worker, searchable, task
from mutirao.cli.firm import RepairExample, move_in
from mutirao.cli.staff import CALLS, STRANGER, Call, Callers
from mutirao.database.batch import Filter
from mutirao.database.engine import Engine
from mutirao.database.schedule import Schedule
from mutirao.language.pdl import read_pdl
from mutirao.people import set_password
from mutirao.server.options import ServerOptions
from mutirao.server.service import Server
from mutirao.testing import advance, throwaway_database
from mutirao.testing.working import run_until_quiet
from mutirao.worker import Clock, WorkerOptions

MORNING = datetime(2030, 3, 12, 8, 0, tzinfo=UTC)
PASSWORD = "the password of the pictures"  # noqa: S105 it opens nothing else
ADMINISTRATOR = "administrator"

MAINTENANCE = Path(__file__).parents[1] / "examples" / "maintenance.pdl"
_MINUTES = 60


class Delivery(Flow):
    """An order that programs bring to the customer's door."""

    creator = "office"
    customer: Annotated[str, searchable]
    weight: Decimal = Decimal(1)
    shelf: str | None = None
    label: str | None = None
    sent_at: datetime | None = None

    final = "sent_at is not null"

    @task(when="shelf is null")
    async def pick(self) -> Change:
        return {"shelf": f"{self.customer[0]}-{len(self.customer)}"}

    @task(when="shelf is not null and label is null", retries=1)
    async def print_label(self) -> Change:
        if self.weight > 50:  # noqa: PLR2004 what the printer's owner says
            raise Failed("the parcel service takes 50 kg at most")
        return {"label": f"RX {int(self.weight * 100):06}"}

    @task(when="label is not null")
    async def hand_over(self) -> Change:
        return {"sent_at": MORNING}


@dataclass
class Stage:
    """The engine behind the pages, the server that shows them, and what their addresses name."""

    engine: Engine
    server: Server
    known: dict[str, object] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.server.url

    async def person(self, name: str) -> int:
        return await self.engine.persons.number(name)

    async def later(self, minutes: float) -> None:
        """Time passes: for the engine, and for the pages."""
        by = timedelta(minutes=minutes)
        async with self.engine.connection() as connection:
            await advance(connection, by)
        self.server.app.state.ahead += by

    async def work(self) -> None:
        """Programs do all that they can."""
        await run_until_quiet(self.engine, [RepairExample, Delivery])

    async def finish(self, person: str, job: int, change: Change) -> None:
        number = await self.person(person)
        attempt = await self.engine.worklists.select(number, job)
        await self.engine.worklists.finish(number, job, attempt, change)

    async def first_item(self, person: str, **chosen: str) -> int:
        page = await self.engine.worklists.page(await self.person(person), ItemFilter(status="ready", **chosen))  # type: ignore[arg-type]
        return page.items[0].job


@asynccontextmanager
async def set_stage() -> AsyncIterator[Stage]:
    """The stage, with everybody in their places, until the block ends."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(throwaway_database())
        engine = await stack.enter_async_context(Engine(url, upgrade=False, name=ADMINISTRATOR))
        server = Server(engine, ServerOptions(port=0))
        stage = Stage(engine, server)
        await stage.later((MORNING - datetime.now(UTC)).total_seconds() / 60)
        await _gather_people(stage)
        await _put_in_place(stage)
        await _pass_the_morning(stage)
        await _fill_charts(stage)
        workers = [
            Worker(engine, [RepairExample, Delivery], WorkerOptions(name=name, clock=False))
            for name in ("worker-1", "worker-2")
        ]
        services: list[Server | Clock | Worker] = [server, Clock(engine), *workers]
        for service in services:
            await stack.enter_async_context(_running(service))
        yield stage


@asynccontextmanager
async def _running(service: Server | Clock | Worker) -> AsyncIterator[None]:
    running = asyncio.create_task(service.run())
    try:
        yield
    finally:
        service.stop()
        await running


async def _gather_people(stage: Stage) -> None:
    engine = stage.engine
    await engine.persons.add(None, ADMINISTRATOR, roles=("administrator",))
    assert await move_in(engine)  # noqa: S101 the engine is new
    await engine.roles.add(None, "store", description="Has the parts")
    for name, roles in {"clerk_2": ("office",), "storekeeper_1": ("store",), "auditor": ()}.items():
        await engine.persons.add(None, name, roles=roles)
    await set_password(engine, None, ADMINISTRATOR, PASSWORD)
    stage.known |= {"person": ADMINISTRATOR, "name": "repair_example", "role": "office"}


async def _put_in_place(stage: Stage) -> None:
    engine = stage.engine
    await engine.apply(Delivery)
    await engine.classes.put("UpdateCustomerRecord", ["UpdateCustomerRecord"], description="One registry, one pen")
    await engine.library.apply(read_pdl(MAINTENANCE.read_text("utf-8")))
    await engine.sources.put("stock", "postgresql://reader:secret@stock.example.org/stock")
    await engine.sources.put("registry", "postgresql://reader:secret@registry.example.org:5433/registry")
    for schedule in (
        Schedule("papers", "delivery", "0 6 * * 1-5", "America/Recife", {"customer": "City library"}),
        Schedule("lighthouse", "repair_example", "0 9 1 * *", "UTC", {"customer": "Lighthouse", "request": "Look"}),
    ):
        await engine.schedules.put(schedule)
    await engine.schedules.pause("lighthouse")
    await engine.webhooks.add(None, "https://chat.example.org/hooks/office", person=await stage.person(ADMINISTRATOR))


async def _pass_the_morning(stage: Stage) -> None:
    """Calls come in and are dealt with: some wholly, some not yet, and one cannot be."""
    callers = Callers(stage.engine)
    await stage.engine.start(Delivery(customer="Town hall", weight=Decimal(80)))
    for number, call in enumerate((STRANGER, *CALLS, *CALLS, *CALLS), 101):
        await _call(callers, call, number)
        await stage.engine.start(Delivery(customer=call.customer, weight=Decimal(number % 9 + 1)))
        await stage.work()
        await stage.later(4)
        if number % 2 == 0:
            await stage.finish(
                "clerk_1", await stage.first_item("clerk_1", flow="repair_example"), {"visit_on": MORNING.date()}
            )
            await stage.work()
        if number % 3 == 0:
            await _visit(stage, hours=Decimal(number % 7 + 1))
    await stage.later(25)
    await _visit(stage, hours=Decimal("1.5"))
    await _be_in_the_middle(stage)


async def _call(callers: Callers, call: Call, number: int) -> None:
    state: Change = {}
    if call is STRANGER:
        state = {"visit_on": MORNING.date(), "parts": "box 12", "hours": Decimal("1.5"), "report": "New lamp"}
    await callers.take_call(call, state, key=f"{call.word}-{number}")


async def _visit(stage: Stage, hours: Decimal) -> None:
    job = await stage.first_item("technician_1", task="visit")
    await stage.finish("technician_1", job, {"hours": hours, "report": "Repaired and tested"})
    await stage.work()


async def _be_in_the_middle(stage: Stage) -> None:
    """What is under way when the pictures are taken."""
    engine, boss = stage.engine, await stage.person(ADMINISTRATOR)
    await engine.worklists.select(
        await stage.person("technician_2"), await stage.first_item("technician_2", task="visit")
    )
    for _ in range(2):
        job = await stage.first_item("clerk_1", task="plan_visit")
        await stage.finish("clerk_1", job, {"visit_on": MORNING.date(), "urgent": True})
    job = await stage.first_item(ADMINISTRATOR, task="plan_visit")
    await engine.worklists.comment(boss, "They asked for an afternoon.", job=job)
    await engine.worklists.select(boss, job)
    for customer in ("School", "Town hall"):
        await engine.charges.create(boss, Creation(flow="maintenance", state={"customer": customer}))
    clerk, asked = await stage.person("clerk_1"), await stage.first_item("clerk_1", task="plan_visit")
    await engine.worklists.delegate(clerk, asked, ADMINISTRATOR, reason="You know them best")
    for customer in ("Bakery", "Museum"):
        await engine.charges.create(
            await stage.person("clerk_2"), Creation(flow="maintenance", state={"customer": customer})
        )
    stage.known["job"] = job
    found = await engine.instances("repair_example", status="open.exception", limit=1)
    running = (await engine.worklists.show(boss, job)).item.instance
    waiting = (await engine.classes.waits())[0].instance
    batch = await engine.make_batch("suspend", Filter(flow="maintenance"), reason="The registry is being moved")
    stage.known |= {"exception": found[0].id, "instance": running, "waiting": waiting, "batch": batch.id}


async def _fill_charts(stage: Stage) -> None:
    """What workers would have told over an hour: busier and busier, and one minute when the label printer was out."""
    numbers, _ = await stage.engine.task_numbers("delivery", ["pick", "print_label", "hand_over"])
    rows: list[tuple[int, int, int, int]] = []
    for minute in range(1, _MINUTES):
        busy = 20 + 3 * ((minute * 7) % 11) + (_MINUTES - minute) // 2
        for place, number in enumerate(numbers.values()):
            rows += [(minute * 60, number, 10 + place, busy), (minute * 60, number, 16 + (minute % 5), busy // 12 + 1)]
        if minute in (21, 22):
            rows.append((minute * 60, numbers["print_label"], -1, 14))
    columns = [list(column) for column in zip(*rows, strict=True)]
    async with stage.engine.connection() as connection:
        await connection.execute("select mutirao.note_pace(%s, %s, %s, %s)", columns)

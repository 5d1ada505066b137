"""The maintenance firm of the WorkToDo report, section 7.2: a call, a visit without a signal, a bill.

Over HTTP, with a worker that runs the billing system.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from command import running
from people import EXAMPLES, items, read_all, set_up, tasks
from served import Served, site_on
from worker_stage import until

from mutirao.errors import MutiraoError
from mutirao.model.file import File
from mutirao.server.client import Client
from mutirao.testing import advance

PERSONS = {
    "boss": ["administrator"],
    "office_1": ["office"],
    "office_2": ["office"],
    "technician_1": ["technician"],
    "technician_2": ["technician"],
    "store_1": ["store"],
}

BILLING_SYSTEM = """#!/bin/sh
echo "billing customer $IN_CUSTOMER_NUMBER for $IN_HOURS hours"
echo "{\\"bill_number\\": \\"B-$IN_CUSTOMER_NUMBER-$IN_HOURS\\"}" > output.json
"""


@asynccontextmanager
async def firm(url: str, folder: Path) -> AsyncIterator[Served]:
    """The firm on its first day."""
    bill = folder / "bill"
    bill.write_text(BILLING_SYSTEM)
    bill.chmod(0o755)
    async with site_on(url, Served) as site:
        await set_up(site.engine, PERSONS)
        await site.engine.classes.put("UpdateCustomerRecord", ["UpdateCustomerRecord"])
        text = (EXAMPLES / "maintenance.pdl").read_text("utf-8").replace("/opt/maintenance/bill", str(bill))
        await (await site.client("boss")).library.apply(text)
        yield site


async def do(client: Client, task: str, **change: object) -> int:
    """Take the item of this task, which must be the only one, and finish it; answers its instance."""
    [item] = [each for each in await items(client) if each.task == task]
    attempt = item.attempt or await client.worklist.select(item.job)
    await client.worklist.finish(item.job, attempt, change)
    return item.instance


async def order_a_visit(site: Served) -> int:
    """What the office does, from the call to the order."""
    office = await site.client("office_1")
    instance = (await office.instances.create("maintenance", instance_key="call 1")).id
    await do(
        office, "answer_phone", customer="Bakery at the corner", address="1 Main Street", request="the oven is cold"
    )
    await do(office, "register_customer", customer_number="C7")
    form = await office.files.put(b"Bakery at the corner\nThe oven is cold.\n", "service_order.txt", media="text/plain")
    await do(office, "create_service_order", service_order=msgspec.to_builtins(form))
    return instance


async def let_pass(site: Served, time: timedelta) -> None:
    async with site.engine.connection() as connection:
        await advance(connection, time)
        await connection.execute("select mutirao.turn_clock()")


async def the_one_offered(site: Served) -> tuple[str, Client, int]:
    """The technician whom the visit was given to, and the item."""
    names = ["technician_1", "technician_2"]
    clients = [await site.client(name) for name in names]
    lists = [await items(client) for client in clients]
    [place] = [place for place, found in enumerate(lists) if found]
    return names[place], clients[place], lists[place][0].job


async def test_a_repair_from_the_call_to_the_bill(database_url: str, tmp_path: Path) -> None:
    async with firm(database_url, tmp_path) as site:
        instance = await order_a_visit(site)
        # The visit goes to the technician with the least to do, who locks it to take it along.
        _, technician, visit = await the_one_offered(site)
        attempt = await technician.worklist.select(visit, lock=True)
        taken = await technician.worklist.show(visit)
        assert taken.item.locked
        form = await read_all(technician, instance, msgspec.convert(taken.inputs["service_order"], File))
        assert form.endswith(b"The oven is cold.\n")
        # A part is broken: the technician starts another process, which the store sees to.
        part = await technician.instances.create("part_reservation", {"part": "thermostat"})
        store = await site.client("store_1")
        assert await do(store, "reserve_part", shelf="14 B") == part.id
        assert (await technician.instances.get(part.id)).state["shelf"] == "14 B"

    # Later, with a signal again, to whatever server is there: the results of the work are transferred.
    async with site_on(database_url, Served) as site:
        _, technician, visit = await the_one_offered(site)
        filled_in = await technician.files.put(form + b"New thermostat.\n", "service_order.txt", media="text/plain")
        result = {"service_order": msgspec.to_builtins(filled_in), "hours": 2}
        assert await technician.worklist.finish(visit, attempt, result) == "done"
        # The billing system does the rest, on a machine of the firm.
        office = await site.client("office_1")

        async def is_billed() -> bool:
            return (await office.instances.get(instance)).status == "closed.completed"

        with running("worker", "--applications", "--database", database_url):
            await until(is_billed)
        ended = await office.instances.get(instance)
        assert ended.state["bill_number"] == "B-C7-2"
        assert [message.kind async for message in office.messages.all()] == ["instance_ended", "instance_started"]


async def test_what_may_not_leave_the_office_cannot_be_locked(database_url: str, tmp_path: Path) -> None:
    async with firm(database_url, tmp_path) as site:
        office = await site.client("office_1")
        await office.instances.create("maintenance")
        await do(office, "answer_phone", customer="a", address="b", request="c")
        [item] = await items(office)
        with pytest.raises(MutiraoError, match="not_disconnected"):
            await office.worklist.select(item.job, lock=True)
        assert (await office.worklist.show(item.job)).item.status == "ready"


async def test_a_visit_that_nobody_pays_comes_back_and_the_late_form_is_kept(database_url: str, tmp_path: Path) -> None:
    async with firm(database_url, tmp_path) as site:
        instance = await order_a_visit(site)
        name, technician, visit = await the_one_offered(site)
        attempt = await technician.worklist.select(visit, lock=True)
        # Three days are given; a day before they are over, the visit is the business of whoever is in charge.
        await let_pass(site, timedelta(days=2, minutes=1))
        office = await site.client("office_1")
        assert await tasks(office) == ["visit_to_customer"]
        late = await technician.files.put(b"done after all", "service_order.txt")
        with pytest.raises(MutiraoError, match="item_moved"):
            await technician.worklist.finish(visit, attempt, {"service_order": msgspec.to_builtins(late), "hours": 1})
        [kept] = (await office.worklist.show(visit)).attachments
        assert (kept.person, kept.content["change"]["hours"]) == (name, 1)
        assert (await office.instances.get(instance)).state["hours"] == 0
        assert [message.kind async for message in technician.messages.all()] == ["transferred", "offered"]

"""What `mutirao up` shows of people, when it is given no flow: a small firm that repairs what customers call about.

The office plans, a van fetches the parts, a technician goes there, a manager decides about what is dear, and a program
writes the bill. `staff` has those who call and those who work there. It has roles and persons, so it moves only into
an engine where nobody else lives yet: nobody's technicians shall be sent to a lighthouse that does not exist.
"""

import asyncio
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated

from mutirao.cli.door import ADMINISTRATOR, administrators
from mutirao.cli.example import TravelExample
from mutirao.database.engine import Engine
from mutirao.errors import Failed, RequestError
from mutirao.language import Flow, searchable, task, work
from mutirao.model import Change, File

OFFICE, TECHNICIAN, MANAGER = "office", "technician", "manager"
VAN = "van"

STAFF = {"clerk_1": OFFICE, "technician_1": TECHNICIAN, "technician_2": TECHNICIAN, "manager_1": MANAGER}

_ROLES = {
    OFFICE: "Answers customers and plans visits (example)",
    TECHNICIAN: "Goes there and repairs (example)",
    MANAGER: "Decides about what is dear (example)",
}
_FOR_ADMINISTRATORS = (OFFICE, MANAGER)
_HOUR = Decimal(60)
_TRAVEL = Decimal(40)


class RepairExample(Flow):
    """A repair, from the customer's letter to the bill: people and programs take turns."""

    creator = OFFICE
    customer: Annotated[str, searchable]
    request: str
    letter: File | None = None
    account: str | None = None
    visit_on: date | None = None
    urgent: bool | None = None
    parts: str | None = None
    report: str | None = None
    hours: Decimal | None = None
    price: Decimal | None = None
    approved: bool | None = None
    remark: str | None = None
    bill: str | None = None

    final = "bill is not null or coalesce(not approved, false)"

    plan_visit = work(
        OFFICE,
        when="visit_on is null",
        inputs=("customer", "request", "letter"),
        outputs=("visit_on", "urgent"),
        deadline=timedelta(hours=2),
        description="Choose a day for the visit",
    )

    @task(
        when="visit_on is not null and parts is null",
        outputs=("parts",),
        task_class=VAN,
        description="Fetch the parts with the van",
    )
    async def fetch_parts(self) -> Change:
        await asyncio.sleep(0.5)
        return {"parts": f"box {sum(map(ord, self.request)) % 90 + 10}"}

    visit = work(
        TECHNICIAN,
        when="parts is not null and hours is null",
        inputs=("customer", "request", "visit_on", "urgent", "parts"),
        outputs=("hours", "report"),
        deadline=timedelta(days=1),
        task_class=VAN,
        description="Go there with the van, repair it, note the hours",
    )

    @task(when="hours is not null and price is null", outputs=("price",), description="Calculate the price")
    async def calculate_price(self) -> Change:
        return {"price": (self.hours or 0) * _HOUR + _TRAVEL}

    approve = work(
        MANAGER,
        when="price > 200 and approved is null",
        inputs=("customer", "request", "report", "hours", "price"),
        outputs=("approved", "remark"),
        deadline=timedelta(hours=8),
        description="Approve the price, or not",
    )

    @task(
        when="price is not null and bill is null and (price <= 200 or approved)",
        outputs=("bill",),
        description="Write the bill",
    )
    async def write_bill(self) -> Change:
        await asyncio.sleep(0.5)
        if self.account is None:
            raise Failed(f"{self.customer} has no account: give one, such as A-100, and it goes on")
        return {"bill": f"{self.account}: {self.price:.2f}"}


_PEOPLE = ", ".join(f"{name} ({role})" for name, role in STAFF.items())
INTRODUCTION = f"a firm that repairs ({RepairExample.definition.name}), in which {_PEOPLE} work"


async def move_in(engine: Engine, newcomer: str | None = None) -> bool:
    """Put the firm in place, or find it there; answers whether it is. Where others live already, it stays out.

    A newcomer is an administrator who was made just now: they help out, and so find work on their first page.
    """
    known = {each.name for each in await engine.flows()}
    is_new = RepairExample.definition.name not in known
    if is_new and (known - {TravelExample.definition.name} or await _has_roles(engine)):
        return False
    if is_new:
        await _move_in(engine)
    elif newcomer is not None:
        await _welcome(engine, [newcomer])
    await engine.apply(RepairExample, keep=True)
    return True


async def _move_in(engine: Engine) -> None:
    """All or none: half a firm would be taken for somebody else's. Of two who do so at once, the second finds it done."""
    try:
        async with engine.together():
            await _hire(engine)
            await engine.apply(RepairExample)
    except RequestError as error:
        if error.code != "name_taken":
            raise


async def _has_roles(engine: Engine) -> bool:
    return any(name != ADMINISTRATOR for name in await engine.roles.names())


async def _hire(engine: Engine) -> None:
    for role, description in _ROLES.items():
        await engine.roles.add(None, role, description=description)
    for name, role in STAFF.items():
        await engine.persons.add(None, name, roles=(role,))
    await _welcome(engine, await administrators(engine))
    await engine.classes.put(VAN, [VAN], description="There is one van (example)")


async def _welcome(engine: Engine, persons: Sequence[str]) -> None:
    for role in _FOR_ADMINISTRATORS:
        await engine.roles.put(None, role, persons)

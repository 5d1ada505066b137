"""Who calls the example's firm, and who works there: they act as any person would, until stopped.

They leave some items to whoever reads the pages, do nothing for other flows, and stop calling when much is open. Whoever
was stopped in the middle still holds an item, and finishes it the next time. One who is disabled is refused, and rests.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from mutirao.cli.door import administrators
from mutirao.cli.firm import MANAGER, OFFICE, STAFF, TECHNICIAN, RepairExample
from mutirao.cli.service import is_set_within
from mutirao.database.charge import Creation
from mutirao.database.engine import Engine
from mutirao.database.item import Item, ItemFilter
from mutirao.database.protocol import is_lost
from mutirao.errors import MutiraoError, RequestError
from mutirao.model import Change

FLOW = RepairExample.definition.name
MOST_OPEN = 24

_CLERK = "clerk_1"
_LOOK_EVERY = timedelta(seconds=2)
_CALL_EVERY = timedelta(seconds=12)
_STRANGE_EVERY = 8
_DAY = 86_400
_ENOUGH_EXCEPTIONS = 2
_LEFT_FOR_THE_READER = {OFFICE: 5, MANAGER: 2, TECHNICIAN: 0}
_SECONDS_FOR_AN_ITEM = (10.0, 20.0)

# Nobody's secrets depend on it.
_random = random.Random()  # noqa: S311


@dataclass(frozen=True)
class Call:
    """What a customer wants. A customer without an account is a stranger: the bill cannot be written."""

    customer: str
    request: str
    account: str | None

    @property
    def word(self) -> str:
        """For keys, such as fish_market-12."""
        return self.customer.lower().replace(" ", "_")

    @property
    def letter(self) -> bytes:
        return f"Good day,\n\n{self.request}. Could somebody come and have a look?\n\n{self.customer}\n".encode()


CALLS = (
    Call("City library", "A reading lamp in the hall flickers", "A-101"),
    Call("Bakery", "The second oven does not get warm", "A-102"),
    Call("Museum", "Water drips from the ceiling of room 4", "A-103"),
    Call("Town hall", "The lift stops between two floors", "A-104"),
    Call("School", "The gate does not close any more", "A-105"),
    Call("Fish market", "The cold store is at eight degrees", "A-106"),
)
STRANGER = Call("Lighthouse", "The lamp turns, but it gives no light", None)


def _begun() -> list[tuple[Call, Change]]:
    """How far the first ones have come when one looks for the first time: everybody has something to do."""
    ready = {"visit_on": datetime.now(UTC).date(), "parts": "box 12"}
    return [
        (STRANGER, {**ready, "hours": Decimal("1.5"), "report": "New lamp"}),
        (CALLS[2], {**ready, "hours": Decimal(6), "report": "Pipe replaced"}),
        (CALLS[3], {**ready, "hours": Decimal(8), "report": "New motor"}),
        (CALLS[4], ready),
        (CALLS[0], ready),
        (CALLS[1], ready),
        (CALLS[5], {**ready, "urgent": True}),
        *((call, {}) for call in CALLS),
    ]


class Callers:
    """Customers: some have called already, and one more calls every now and then."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stopped = asyncio.Event()
        self._called = 0

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        while not self._stopped.is_set():
            await _bearing(self._call if self._called else self.begin)
            await is_set_within(self._stopped, _CALL_EVERY)

    async def begin(self) -> None:
        """Each has a key, and so is started once, however often we begin."""
        for number, (call, state) in enumerate(_begun(), 1):
            await self.take_call(call, state, key=f"{call.word}-{number}")
        self._called = 1

    async def _call(self) -> None:
        if len(await self._engine.instances(FLOW, status="open", limit=MOST_OPEN)) < MOST_OPEN:
            self._called += 1
            call = await self._next()
            await self.take_call(call, {}, key=f"{call.word}-{int(time.time()) % _DAY}")

    async def _next(self) -> Call:
        if self._called % _STRANGE_EVERY == 0:
            found = await self._engine.instances(FLOW, status="open", where=("customer", STRANGER.customer))
            if len(found) < _ENOUGH_EXCEPTIONS:
                return STRANGER
        return _random.choice(CALLS)

    async def take_call(self, call: Call, state: Change, *, key: str) -> int:
        """The clerk starts the instance. Of strangers an administrator is in charge, who is told what goes wrong."""
        clerk = await self._engine.persons.number(_CLERK)
        letter = await self._engine.files.upload(call.letter, "letter.txt", media="text/plain", actor=clerk)
        known = {"customer": call.customer, "request": call.request, "account": call.account, "letter": letter}
        bosses = await administrators(self._engine) if call is STRANGER else []
        new = Creation(flow=FLOW, state={**known, **state}, key=key, in_charge=bosses[0] if bosses else None)
        return await self._engine.charges.create(clerk, new)


class Staff:
    """Those who work there: each takes an item, is busy with it for some seconds, and finishes it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stopped = asyncio.Event()
        self._done_at: dict[int, datetime] = {}

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        while not await is_set_within(self._stopped, _LOOK_EVERY):
            for name, role in STAFF.items():
                await _bearing(lambda name=name, role=role: self._work(name, role))  # type: ignore[misc]

    async def _work(self, name: str, role: str) -> None:
        worklists = self._engine.worklists
        person = await self._engine.persons.number(name)
        held = (await worklists.page(person, ItemFilter(flow=FLOW, status="running"))).items
        for item in held:
            await self._go_on(person, item)
        if not held and await self._is_wanted(person, role):
            await worklists.next(person, ItemFilter(flow=FLOW, role=role, status="ready"))

    async def _is_wanted(self, person: int, role: str) -> bool:
        counts = await self._engine.worklists.counts(person)
        ready = sum(each.ready for each in counts if (each.role, each.flow) == (role, FLOW))
        return ready > _LEFT_FOR_THE_READER[role]

    async def _go_on(self, person: int, item: Item) -> None:
        now = datetime.now(UTC)
        until = self._done_at.setdefault(item.job, now + timedelta(seconds=_random.uniform(*_SECONDS_FOR_AN_ITEM)))
        if now >= until and item.attempt is not None:
            del self._done_at[item.job]
            await self._engine.worklists.finish(person, item.job, item.attempt, _RESULTS[item.task]())


def _planned() -> Change:
    day = datetime.now(UTC).date() + timedelta(days=_random.randint(1, 5))
    return {"visit_on": day, "urgent": _random.choice((True, False, False))}


def _visited() -> Change:
    hours = Decimal(_random.randint(1, 16)) / 2
    return {"hours": hours, "report": _random.choice(("Repaired", "Part replaced", "Cleaned and tested", "Adjusted"))}


def _decided() -> Change:
    return {"approved": True, "remark": "Fine"}


_RESULTS: dict[str, Callable[[], Change]] = {"plan_visit": _planned, "visit": _visited, "approve": _decided}


async def _bearing(act: Callable[[], Any]) -> None:
    """Do it. What is refused is left: somebody was quicker, the van is out, or a person may not do this any more."""
    try:
        await act()
    except RequestError:
        return
    except MutiraoError as error:
        if not is_lost(error):
            raise

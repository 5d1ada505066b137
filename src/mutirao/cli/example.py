"""What `mutirao up` shows when it is given no flow: journeys that are booked before your eyes.

Now and then an airline does not answer, and the job is tried again. And now and then somebody wants to go where nobody
flies: that instance becomes an exception, for whoever watches to repair.
"""

import asyncio
import random
from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from mutirao.cli.service import is_set_within
from mutirao.database.engine import Engine
from mutirao.database.protocol import is_lost
from mutirao.errors import Failed, MutiraoError
from mutirao.language import Flow, searchable, task
from mutirao.model import Change

UNREACHABLE = "Atlantis"

_DESTINATIONS = ("Lisbon", "Recife", "Maputo", "Luanda", "Praia", "Porto", "Dili", "Salvador")
_HOTELS = ("Seaside", "Old Town", "Station", "Garden", "Lighthouse")

# Something is to be seen soon; then they shall not flood the lists in which a newcomer looks for the work of people.
_FIRST_PAUSE, _PAUSE = timedelta(seconds=0.6), timedelta(seconds=5)
_FIRST = 8
_UNREACHABLE_EVERY = 12
_ENOUGH_EXCEPTIONS = 3
_ENOUGH_WAITING = 50


class TravelExample(Flow):
    """Book a hotel and a flight side by side, then confirm the journey."""

    destination: Annotated[str, searchable]
    stage: str = "requested"
    hotel: str | None = None
    flight: str | None = None
    price: Decimal | None = None

    final = "stage = 'booked'"

    @task(when="stage = 'requested' and hotel is null", timeout=timedelta(minutes=1))
    async def book_hotel(self) -> Change:
        await _some_time(0.3, 1.5)
        return {"hotel": f"{_choice(_HOTELS)} {self.destination}"}

    @task(when="stage = 'requested' and flight is null", timeout=timedelta(minutes=1), retries=5)
    async def book_flight(self) -> Change:
        await _some_time(0.2, 1.2)
        if self.destination == UNREACHABLE:
            raise Failed(f"no airline flies to {UNREACHABLE}")
        if _happens(0.15):
            raise ConnectionError("the airline does not answer")
        return {"flight": f"MU {_between(100, 999)}", "price": Decimal(_between(8_000, 60_000)) / 100}

    @task(when="stage = 'requested' and hotel is not null and flight is not null", timeout=timedelta(minutes=1))
    async def confirm(self) -> Change:
        await _some_time(0.1, 0.4)
        return {"stage": "booked"}


class Travellers:
    """Ask for some journeys at once, and for one more every now and then, until stopped."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stopped = asyncio.Event()
        self._asked = 0

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        while not self._stopped.is_set():
            try:
                await self._ask()
            except MutiraoError as error:
                if not is_lost(error):
                    raise
            await is_set_within(self._stopped, _FIRST_PAUSE if self._asked < _FIRST else _PAUSE)

    async def _ask(self) -> None:
        backlog = await self._engine.backlog()
        if sum(each.ready for each in backlog if each.flow == TravelExample.definition.name) < _ENOUGH_WAITING:
            await self._engine.start(TravelExample(destination=await self._destination()))

    async def _destination(self) -> str:
        self._asked += 1
        if self._asked % _UNREACHABLE_EVERY == _UNREACHABLE_EVERY // 2:
            name = TravelExample.definition.name
            exceptions = await self._engine.instances(name, status="open.exception", limit=_ENOUGH_EXCEPTIONS)
            if len(exceptions) < _ENOUGH_EXCEPTIONS:
                return UNREACHABLE
        return _choice(_DESTINATIONS)


# Nobody's secrets depend on these.
_random = random.Random()  # noqa: S311


async def _some_time(least: float, most: float) -> None:
    await asyncio.sleep(_random.uniform(least, most))


def _happens(probability: float) -> bool:
    return _random.random() < probability


def _between(least: int, most: int) -> int:
    return _random.randint(least, most)


def _choice(among: tuple[str, ...]) -> str:
    return _random.choice(among)

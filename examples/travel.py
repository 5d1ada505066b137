"""A first flow: book a hotel and a flight side by side, then confirm.

mutirao up examples/travel.py
mutirao instance start travel destination=Lisbon
"""

import asyncio

from mutirao import Change, Flow, task


class Travel(Flow):
    """A journey that is booked when its hotel and its flight are."""

    destination: str
    stage: str = "requested"
    hotel: str | None = None
    flight: str | None = None

    final = "stage = 'booked'"

    @task(when="stage = 'requested' and hotel is null")
    async def book_hotel(self) -> Change:
        await asyncio.sleep(1)  # here you would call the hotel
        return {"hotel": f"Seaside {self.destination}"}

    @task(when="stage = 'requested' and flight is null", retries=5)
    async def book_flight(self) -> Change:
        await asyncio.sleep(1)
        return {"flight": "MU 104"}

    @task(when="stage = 'requested' and hotel is not null and flight is not null")
    def confirm(self) -> Change:
        return {"stage": "booked"}

"""Tasks that wait for other tasks, and one for a failure: what is done follows from what was done before.

mutirao up examples/order.py
mutirao instance start order item=lamp
mutirao instance start order item=lamp card=stolen
"""

import time

from mutirao import Change, Failed, Flow, task


class Order(Flow):
    """Charge the card, then pack and invoice side by side, then ship. Over when nothing is left to do."""

    item: str
    card: str = "good"
    parcel: str | None = None
    invoice: int | None = None
    message: str | None = None

    @task(when="message is null", fires="once")
    def charge(self) -> Change:
        time.sleep(0.5)  # a blocking function runs in a thread
        if self.card == "stolen":
            raise Failed("the bank refuses the card")
        return {}

    @task(depends=charge)
    async def pack(self) -> Change:
        return {"parcel": f"a box with a {self.item}"}

    @task(depends=charge)
    async def write_invoice(self) -> Change:
        return {"invoice": 4711}

    @task(depends=pack & write_invoice)
    async def ship(self) -> Change:
        return {"message": f"{self.parcel} is on its way"}

    @task(depends=charge.failed)
    async def apologise(self) -> Change:
        return {"message": "your card was refused"}

"""What somebody ships: an order is packed and paid side by side, then sent."""

from datetime import timedelta

from mutirao import Change, Failed, Flow, Job, task


class Shipment(Flow):
    customer: str
    weight: int = 1
    packed: bool = False
    payment: str | None = None
    tracking: str | None = None
    final = "tracking is not null"

    @task(when="not packed")
    async def pack(self) -> Change:
        return {"packed": True}

    @task(when="payment is null", retries=3, backoff=timedelta(minutes=5), timeout=timedelta(minutes=10))
    async def charge_card(self, job: Job) -> Change:
        if self.customer == "nobody":
            raise Failed("there is no such customer")
        return {"payment": f"receipt {job.instance_id}"}

    @task(when="packed and payment is not null")
    def send(self) -> Change:
        return {"tracking": f"{self.weight} kg for {self.customer}"}

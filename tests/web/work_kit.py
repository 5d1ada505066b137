"""A flow whose work items have something of every type, for tests of the pages where people work."""

from datetime import timedelta
from typing import Any

from page_kit import Place

from mutirao.model import Attribute, Definition, Offer, Task

CLAIM = Definition(
    name="claim",
    creator="clerk",
    description="Somebody has had an accident and wants money.",
    attributes=(
        Attribute("customer", "text", searchable=True),
        Attribute("story", "text"),
        Attribute("happened_at", "timestamp"),
        Attribute("sum", "number"),
        Attribute("photo", "file"),
        Attribute("letter", "file"),
        Attribute("past", "json"),
        Attribute("address", "json"),
        Attribute("granted", "boolean"),
        Attribute("paid", "number"),
        Attribute("visits", "integer"),
        Attribute("seen_on", "date"),
        Attribute("call_at", "timestamp"),
        Attribute("remarks", "text"),
        Attribute("details", "json"),
        Attribute("report", "file"),
    ),
    tasks=(
        Task(
            name="assess",
            when="granted is null",
            description="Assess the damage",
            offer=Offer(role="clerk", deadline=timedelta(days=3), disconnected=True),
            inputs=("customer", "story", "happened_at", "sum", "photo", "letter", "past", "address"),
            outputs=("granted", "paid", "visits", "seen_on", "call_at", "remarks", "details", "report"),
        ),
    ),
    final="granted is not null",
)


async def claim(place: Place, **state: Any) -> tuple[int, int]:
    """An instance of `claim` that clerk_1 is in charge of, and its item."""
    client = await place.site.client("clerk_1")
    instance = await client.instances.create("claim", {"customer": "A. Customer", **state})
    [job] = [job async for job in client.instances.jobs(instance.id)]
    return instance.id, job.id

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


PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c"
    "49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
"""A PNG of one point."""


def pdf(text: str) -> bytes:
    """A PDF of one page."""
    drawn = f"BT /F1 24 Tf 20 100 Td ({text}) Tj ET"
    parts = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        ),
        f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
    )
    body = "".join(f"{number} 0 obj\n{part}\nendobj\n" for number, part in enumerate(parts, 1))
    return f"%PDF-1.4\n{body}trailer << /Root 1 0 R /Size 5 >>\n%%EOF\n".encode()

"""Claims that a clerk approves within a time: who is told when it runs out, and in whose hands they are."""

from datetime import timedelta

from staff import Office, offer

REMINDED = ("deadline", "transferred")
BOTH = [("clerk_1", "deadline"), ("manager", "deadline")]


async def begin(office: Office, **deadline: float) -> tuple[int, int]:
    """An instance with one item for clerks, to be done within that time; and the number of the item."""
    await office.engine.apply(
        "claim",
        {"approved": False},
        {"approve": {"when": "not approved", "offer": offer(timedelta(**deadline)), "outputs": ["approved"]}},
        final="approved",
        creator="manager",
    )
    instance = await office.create("claim")
    await office.heard()
    return instance, await office.engine.job(instance, "approve")


async def pass_until(office: Office, left: float) -> None:
    """Until so many hours are left."""
    ((seconds,),) = await office.engine.rows(
        "select extract(epoch from finish_by - mutirao.now())::float8 from mutirao.job where finish_by is not null"
    )
    await office.engine.advance(seconds=seconds - left * 3600 + 0.01)
    await office.tick()


async def at_each(office: Office, *hours: float) -> dict[float, list[tuple[str, str]]]:
    """Who is told what when so many hours are left, of the deadline that there is."""
    told = {}
    for left in hours:
        await pass_until(office, left)
        told[left] = await office.heard(*REMINDED)
    return told


async def holder(office: Office, job: int) -> tuple[str | None, str | None, bool]:
    """Who holds an item, who alone is offered it, and whether it has moved."""
    ((held, offered, moved),) = await office.engine.rows(
        "select p.name, o.name, coalesce(j.transferred, false) from mutirao.job j left join mutirao.person p on p.id = j.person"
        " left join mutirao.person o on o.id = j.offered_to where j.id = %s",
        job,
    )
    return held, offered, moved

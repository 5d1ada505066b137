"""A journey whose tasks people and workers do, some with a way back: what the pages about instances show."""

from datetime import timedelta

from page_kit import Place

from mutirao.database.charge import Creation
from mutirao.model import Attribute, Definition, Offer, Recovery, Task

TRIP = Definition(
    name="trip",
    creator="clerk",
    attributes=(
        Attribute("city", "text", searchable=True),
        Attribute("days", "integer"),
        Attribute("hotel", "text"),
        Attribute("flight", "text"),
        Attribute("approved", "boolean"),
        Attribute("undone", "text"),
    ),
    tasks=(
        Task(
            name="approve",
            when="approved is null",
            offer=Offer(role="clerk"),
            outputs=("approved",),
            recovery=Recovery(safe_point=True),
        ),
        Task(
            name="book_hotel",
            when="approved and hotel is null",
            outputs=("hotel",),
            recovery=Recovery(compensation="free_hotel"),
        ),
        Task(
            name="book_flight",
            when="approved and hotel is not null and flight is null and days > 1",
            outputs=("flight",),
        ),
        Task(name="free_hotel", outputs=("undone",)),
    ),
    final="flight is not null",
)


async def new_trip(place: Place, **state: object) -> int:
    """One that clerk_1 is in charge of."""
    person = await place.engine.persons.number("clerk_1")
    return await place.engine.charges.create(person, Creation(flow="trip", state=state))


async def finish(place: Place, instance: int, task: str, **change: object) -> None:
    """As if whoever does it had."""
    [job] = [each.id for each in await place.engine.jobs(instance) if each.task == task]
    await place.engine.skip(job, change)


async def fail(place: Place, task: str, error: str = "the hotel does not answer") -> None:
    """As a worker that gives up at once, with the first of these that is ready."""
    async with place.engine.connection() as connection:
        await connection.execute(
            "select mutirao.fail(j.job, j.attempt, %s, true) from mutirao.task t join mutirao.flow f on f.id = t.flow,"
            " lateral mutirao.claim('test', array[t.id], 1) j where f.name = 'trip' and t.name = %s",
            [error, task],
        )


async def trips(place: Place) -> tuple[int, int]:
    """One that goes well, and one whose hotel failed."""
    await place.engine.apply(TRIP)
    well, ill = await new_trip(place, city="Recife", days=3), await new_trip(place, city="Natal", days=1)
    await place.advance(timedelta(minutes=4))
    await finish(place, ill, "approve", approved=True)
    await fail(place, "book_hotel")
    await place.advance(timedelta(minutes=9))
    await finish(place, well, "approve", approved=True)
    return well, ill

"""What waits for workers, how much they did, and how the database is, over HTTP."""

from datetime import timedelta

from site_kit import Site, fresh_site, newest_site, refused  # noqa: F401 gives the fixtures

from mutirao.model import Attribute, Definition, Task

PARCEL = Definition(
    name="parcel",
    attributes=(Attribute("sent", "boolean"),),
    tasks=(Task(name="send", when="sent is null"),),
    final="sent",
)


async def test_administrators_ask_for_the_queue_the_pace_and_the_health(site: Site) -> None:
    boss = await site.client("boss")
    await site.engine.apply(PARCEL)
    await site.engine.start_named("parcel", [{}, {}])
    numbers, _ = await site.engine.task_numbers("parcel", ["send"])
    async with site.engine.connection() as connection:
        await connection.execute(
            "select mutirao.note_pace('{0,0}', array[%(task)s, %(task)s]::int[], '{20,-1}', '{7,2}')",
            {"task": numbers["send"]},
        )
    [queue] = await boss.jobs.queue()
    assert (queue.flow, queue.task, queue.ready, queue.workers) == ("parcel", "send", 2, 0)
    pace = await boss.jobs.pace(timedelta(minutes=5))
    assert len(pace.minutes) == 5
    assert [(each.task, each.done, each.failed) for each in pace.tasks] == [("send", 7, 2)]
    assert 0.7 < (pace.tasks[0].p50 or 0) < 1.1
    health = await boss.jobs.health()
    assert health.facts.server == (await site.engine.health()).facts.server
    assert health.overdue == {}


async def test_a_pace_of_a_month_is_refused_and_others_than_administrators_are(site18: Site) -> None:
    boss, clerk = await site18.client("boss"), await site18.client("clerk_1")
    async with refused("wrong_body", 422, "minutes"):
        await boss.jobs.pace(timedelta(days=30))
    async with refused("wrong_call", 422, "task by task the pace is told of an hour at most"):
        await boss.jobs.pace(timedelta(days=1))
    day = await boss.jobs.pace(timedelta(days=1), by_task=False)
    assert (len(day.minutes), day.tasks) == (1440, [])
    for ask in (clerk.jobs.pace, clerk.jobs.queue, clerk.jobs.health):
        async with refused("forbidden", 403):
            await ask()

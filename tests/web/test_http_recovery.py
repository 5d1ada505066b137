"""Undoing, starting tasks, going back and classes, over HTTP."""

from dataclasses import replace

from site_kit import Site, fresh_site, newest_site, refused  # noqa: F401 gives the fixtures

from mutirao.database.batch import Filter
from mutirao.model import Attribute, Definition, Offer, Recovery, Task

TRIP = Definition(
    name="trip",
    creator="clerk",
    attributes=(Attribute("hotel", "text"),),
    tasks=(
        Task(name="free", offer=Offer(role="clerk"), outputs=("hotel",)),
        Task(
            name="book",
            when="hotel is null",
            fires="once",
            offer=Offer(role="clerk"),
            outputs=("hotel",),
            recovery=Recovery(compensation="free", safe_point=True),
        ),
        Task(name="call", when="hotel = 'nowhere'", offer=Offer(role="clerk"), recovery=Recovery(critical=True)),
    ),
    final="hotel = 'paid'",
)


async def booked(site: Site, hotel: str = "Seaside") -> int:
    """A trip with a hotel, and nothing left to do."""
    await site.engine.apply(TRIP)
    client = await site.client("clerk_1")
    instance = (await client.instances.create("trip")).id
    await _do(site, instance, {"hotel": hotel})
    return instance


async def _do(site: Site, instance: int, change: dict[str, str]) -> None:
    client = await site.client("clerk_1")
    [job] = [job async for job in client.instances.jobs(instance) if job.task != "_EXCPT"]
    held = await client.worklist.select(job.id)
    await client.worklist.finish(job.id, held, change)


async def test_a_cancel_may_undo(site: Site) -> None:
    instance = await booked(site)
    client = await site.client("clerk_1")
    undoing = await client.instances.cancel(instance, undo=True, reason="withdrawn")
    assert (undoing.status, undoing.hold) == ("open.running", "undoing")
    async with refused("instance_undoing", 409):
        await client.instances.start_task(instance, "book")
    await _do(site, instance, {"hotel": "none"})
    assert (await client.instances.get(instance)).status == "closed.terminated"
    states = {each.task: each.state for each in await client.instances.tasks(instance)}
    assert states == {"free": "succeeded", "book": "compensated", "call": "not_ready"}


async def test_a_task_is_started_and_gone_back_to(site18: Site) -> None:
    instance = await booked(site18)
    client = await site18.client("clerk_1")
    assert (await client.instances.get(instance)).status == "open.exception"
    assert (await client.instances.start_task(instance, "call")).status == "open.running"
    async with refused("job_pending", 409):
        await client.instances.start_task(instance, "call")
    await client.instances.go_back(instance, "book", reason="the wrong one")
    assert [job.task async for job in client.instances.jobs(instance)] == ["book"]
    async with refused("unknown_safe_point", 409):
        await client.instances.roll_back(instance, "call")


async def test_two_who_repair_one_instance(site18: Site) -> None:
    """The second has seen what the first has changed already."""
    instance = await booked(site18)
    client, boss = await site18.client("clerk_1"), await site18.client("boss")
    seen = (await client.instances.get(instance)).revision
    await client.instances.go_back(instance, "book", seen=seen)
    async with refused("changed_meanwhile", 412):
        await boss.instances.roll_back(instance, seen=seen)


async def test_nothing_critical_is_rolled_back(site18: Site) -> None:
    instance = await booked(site18, "nowhere")
    await _do(site18, instance, {})
    client = await site18.client("clerk_1")
    async with refused("critical_task", 409, 'task "call"'):
        await client.instances.roll_back(instance)


async def test_many_are_undone_at_once(site18: Site) -> None:
    instances = [await booked(site18) for _ in range(3)]
    boss = await site18.client("boss")
    batch = await boss.batches.make("roll_back", Filter(flow="trip"), reason="the hotel burnt down")
    await site18.engine.drive_batch(batch.id)
    assert {(await boss.instances.get(each)).hold for each in instances} == {"undoing"}
    async with refused("wrong_call", 422, "the name of a task"):
        await boss.batches.make("go_back", Filter(flow="trip"))


async def test_all_that_a_filter_says_is_sent(site18: Site) -> None:
    for _ in range(2):
        await booked(site18)
    boss = await site18.client("boss")
    assert await boss.batches.count("cancel", Filter(flow="trip")) == 2
    assert await boss.batches.count("cancel", Filter(flow="trip", exception="task_failed")) == 0
    assert await boss.batches.count("roll_back", Filter(flow="trip"), safe_point="book") == 2


async def test_administrators_make_classes_and_everybody_sees_who_of_theirs_waits(site18: Site) -> None:
    boss, clerk = await site18.client("boss"), await site18.client("clerk_1")
    async with refused("forbidden", 403):
        await clerk.classes.put("crane")
    async with refused("unknown_class", 422, '"ship"'):
        await boss.classes.put("crane", ["ship"])
    async with refused("unknown_class", 404, '"crane"'):
        await boss.classes.drop("crane")
    await boss.classes.put("crane")
    await boss.classes.put("crane", ["crane"], description="one load at a time")
    lift = Definition(
        name="lift",
        attributes=(Attribute("done", "boolean", default=False),),
        tasks=(Task(name="up", when="not done", task_class="crane"),),
        final="done",
    )
    await site18.engine.apply(lift)
    one, two = await site18.engine.start_named("lift", [{}, {}])
    await boss.instances.hand_over(two, "clerk_1")
    [found] = await boss.classes.all()
    assert (found.name, found.conflicts, found.holding, found.waiting, found.flows) == (
        "crane",
        ["crane"],
        1,
        1,
        ["lift"],
    )
    [wait] = await boss.classes.waits()
    assert (wait.instance, wait.kind, wait.holder_instance) == (two, "class", one)
    [seen] = await clerk.classes.waits()
    assert seen == replace(wait, held_by=None, holder_instance=None, holder_task=None)
    assert (await clerk.classes.all())[0].flows == []
    assert await (await site18.client("outsider")).classes.waits() == []
    await boss.classes.drop("crane")
    assert await clerk.classes.waits() == []


async def test_administrators_see_what_is_wrong_and_see_to_all_of_it(site18: Site) -> None:
    instances = [await booked(site18) for _ in range(3)]
    boss, clerk = await site18.client("boss"), await site18.client("clerk_1")
    async with refused("forbidden", 403):
        await clerk.exceptions.kinds()
    async with refused("unknown_flow", 404):
        await boss.exceptions.kinds("journey")
    [kind] = await boss.exceptions.kinds("trip")
    assert (kind.code, kind.instances, kind.example, kind.repair) == ("nothing_fires", 3, instances[0], "repair")
    found = [each async for each in boss.exceptions.instances("trip", code="nothing_fires", limit=2)]
    assert [each.id for each in found] == instances[::-1]
    assert (found[-1].since, found[-1].may_steer) == (kind.since, True)
    batch = await boss.batches.make(kind.repair, kind.filter(), change={"hotel": "paid"}, reason="by telephone")
    ended = await site18.engine.drive_batch(batch.id)
    assert (ended.done, ended.refused, ended.made_by, ended.reason) == (3, 0, "boss", "by telephone")
    assert await boss.exceptions.kinds() == []
    assert [each async for each in boss.exceptions.instances()] == []
    for instance in instances:
        *_, last = [row async for row in boss.instances.trace(instance)]
        assert (last.kind, last.writer, last.note) == ("repair", "boss", {"reason": "by telephone"})


async def test_what_cannot_be_gone_back_to_or_started(site18: Site) -> None:
    instance = await booked(site18)
    client = await site18.client("clerk_1")
    before = await client.instances.get(instance)
    async with refused("task_not_done", 409, 'task "call"'):
        await client.instances.go_back(instance, "call")
    async with refused("unknown_task", 422, 'no task "free" to start; it has book, call'):
        await client.instances.start_task(instance, "free")
    assert await client.instances.get(instance) == before


async def test_everybody_is_told_which_exceptions_are_theirs_to_see_to(site18: Site) -> None:
    mine, other = await booked(site18), await booked(site18)
    await (await site18.client("boss")).instances.hand_over(other, "clerk_2")
    clerk, second = await site18.client("clerk_1"), await site18.client("clerk_2")
    assert [each.id async for each in clerk.exceptions.instances()] == [
        mine
    ]  # the other one they have only done work for
    assert [each.id async for each in second.exceptions.instances(code="nothing_fires")] == [other]
    assert [each.id async for each in second.exceptions.instances(code="runaway")] == []
    assert [each.id async for each in second.exceptions.instances("request")] == []
    assert [each async for each in (await site18.client("outsider")).exceptions.instances()] == []
    counts = [
        await site18.engine.seen_by(await _number(site18, name)).exception_count() for name in ("boss", "clerk_1")
    ]
    assert counts == [2, 1]


async def _number(site: Site, person: str) -> int:
    return await site.engine.persons.number(person)

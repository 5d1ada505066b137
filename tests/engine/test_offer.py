"""To whom items are offered: everyone, the least loaded, each in turn, whoever did an earlier task, anybody but them."""

from collections import Counter

import pytest
from desk import HOUR, Desk, fresh_desk  # noqa: F401 gives the fixture `desk`
from office import move, one, rows

from mutirao.model import Offer, Policy, Task, Term


def offered(policy: Policy) -> Task:
    return Task(name="answer", when="answer is null", offer=Offer(role="clerk", policy=policy), outputs=("answer",))


async def whose(desk: Desk) -> list[int | None]:
    """To whom alone each open item is offered, in the order of their numbers."""
    return [person for (person,) in await rows(desk.engine, "select offered_to from mutirao.job order by id")]


async def test_each_in_turn_also_across_batches(desk: Desk) -> None:
    await desk.put_letters(offered(Policy("round_robin")))
    first, second, third = desk.clerks
    await desk.engine.start_named("letter", [{}] * 4)
    await desk.engine.start_named("letter", [{}] * 2)
    assert await whose(desk) == [first, second, third, first, second, third]
    await desk.away(second, None)
    await rows(desk.engine, "update mutirao.person set away_from = mutirao.now() where id = %s returning id", second)
    await desk.engine.start_named("letter", [{}] * 3)
    assert (await whose(desk))[6:] == [first, third, first]


async def test_the_least_loaded_gets_the_next_and_a_batch_is_levelled(desk: Desk) -> None:
    first, second, third = desk.clerks
    await desk.put_letters(name="plain")
    for job in [await desk.item("plain") for _ in range(4)]:
        await desk.engine.worklists.select(first, job)
    for job in [await desk.item("plain") for _ in range(1)]:
        await desk.engine.worklists.select(second, job)
    await desk.put_letters(offered(Policy("least_loaded")))
    await desk.engine.start_named("letter", [{}])
    assert await one(desk.engine, "select offered_to from mutirao.job where offered_to is not null") == third
    await desk.engine.start_named("letter", [{}] * 9)
    load = "select count(*) from mutirao.job where %s in (person, offered_to)"
    assert [await one(desk.engine, load, clerk) for clerk in desk.clerks] == [5, 5, 5]


async def test_who_is_here_gets_work_before_who_is_not(desk: Desk) -> None:
    await desk.put_letters(offered(Policy("least_loaded")))
    second = desk.clerks[1]
    await rows(desk.engine, "update mutirao.person set seen_at = mutirao.now() where id = %s returning id", second)
    await desk.engine.start_named("letter", [{}] * 3)
    assert await whose(desk) == [second] * 3
    await move(desk.engine, HOUR)
    await desk.engine.start_named("letter", [{}])
    assert (await whose(desk))[3] == desk.clerks[0]


async def test_where_nobody_can_be_picked_the_whole_role_is_offered_it(desk: Desk) -> None:
    for name, kind in (("turns", "round_robin"), ("loads", "least_loaded")):
        await desk.put_letters(offered(Policy(kind)), name=name)  # type: ignore[arg-type]
    await rows(
        desk.engine,
        "update mutirao.person set disabled_at = mutirao.now() where id = any (%s) returning id",
        list(desk.clerks),
    )
    await desk.engine.start_named("turns", [{}])
    await desk.engine.start_named("loads", [{}])
    assert await whose(desk) == [None, None]


def two_steps(policy: Policy) -> tuple[Task, Task]:
    first = Task(name="read", when="true", fires="once", offer=Offer(role="clerk"))
    second = Task(name="answer", depends=Term("read", "succeeded"), offer=Offer(role="clerk", policy=policy))
    return first, second


async def do(desk: Desk, person: int, job: int) -> None:
    await desk.engine.worklists.finish(person, job, await desk.engine.worklists.select(person, job))


@pytest.mark.parametrize("kind", ["same_as", "not_as"])
async def test_whoever_did_the_earlier_task_does_it_or_does_not(desk: Desk, kind: str) -> None:
    await desk.put_letters(*two_steps(Policy(kind, "read")), final=None, ends="quiet")  # type: ignore[arg-type]
    _, second, third = desk.clerks
    instances = [await desk.letter() for _ in range(2)]
    for person, instance in zip((second, third), instances, strict=True):
        await do(desk, person, await desk.item_of(instance))
    jobs = [await desk.item_of(instance) for instance in instances]
    seen = [await desk.seen(clerk) for clerk in desk.clerks]
    assert seen == ([[], [jobs[0]], [jobs[1]]] if kind == "same_as" else [jobs, [jobs[1]], [jobs[0]]])


async def test_the_same_as_somebody_who_is_away_is_their_substitute(desk: Desk) -> None:
    await desk.put_letters(*two_steps(Policy("same_as", "read")), final=None, ends="quiet")
    first, second, third = desk.clerks
    instance = await desk.letter()
    job = await desk.item_of(instance)
    attempt = await desk.engine.worklists.select(second, job)
    await desk.away(second, third)
    await desk.engine.worklists.finish(second, job, attempt)
    assert await whose(desk) == [third]
    assert await desk.seen(first) == []


@pytest.mark.parametrize("loads", [[0, 0, 0], [3, 0, 1], [9, 9, 2]])
async def test_levelling_does_what_one_after_another_would(desk: Desk, loads: list[int]) -> None:
    """The least loaded of each moment, the lowest number first, as a plain loop has it."""
    await desk.put_letters(name="plain")
    for clerk, load in zip(desk.clerks, loads, strict=True):
        for _ in range(load):
            await desk.engine.worklists.select(clerk, await desk.item("plain"))
    role = await one(desk.engine, "select id from mutirao.role where name = 'clerk'")
    for items in (1, 2, 5, 13):
        have = Counter(dict(zip(desk.clerks, loads, strict=True)))
        expected = []
        for _ in range(items):
            chosen = min(desk.clerks, key=lambda clerk: (have[clerk], clerk))
            have[chosen] += 1
            expected.append(chosen)
        found = [who for (who,) in await rows(desk.engine, "select mutirao.least_loaded(%s, %s)", role, items)]
        assert found == expected


async def test_what_is_on_offer_is_told_as_load(desk: Desk) -> None:
    await desk.put_letters()
    jobs = [await desk.item() for _ in range(3)]
    await desk.engine.worklists.select(desk.clerks[0], jobs[0])
    told = {(each.task, each.status): each.count for each in await desk.engine.load() if each.kind == "jobs"}
    assert told == {("answer", "offered"): 2, ("answer", "running"): 1}

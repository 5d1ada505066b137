"""People in users' tests: they do what they are offered, and nobody has to set up roles."""

from datetime import timedelta

import pytest

from mutirao.database.engine import Engine
from mutirao.errors import RequestError
from mutirao.model import Attribute, Definition, Offer, Task
from mutirao.testing import StoryError, expect, make_roles, move_clock, person, run_until_quiet

LEAVE = Definition(
    name="leave",
    creator="staff",
    attributes=(Attribute("days", "integer"), Attribute("approved", "boolean")),
    tasks=(
        Task(
            name="approve",
            when="approved is null",
            offer=Offer(role="managers", deadline=timedelta(hours=48)),
            outputs=("approved",),
        ),
    ),
    final="approved is not null",
)


@pytest.fixture
async def engine(mutirao_engine: Engine) -> Engine:
    await make_roles(mutirao_engine, LEAVE)
    await mutirao_engine.apply(LEAVE)
    return mutirao_engine


async def test_persons_start_instances_and_do_items(engine: Engine) -> None:
    clerk = await person(engine, "clerk_1", "staff")
    manager = await person(engine, "manager", "managers")
    leave = await clerk.start("leave", days=3)
    assert [item.task for item in await manager.items()] == ["approve"]
    assert await clerk.items() == []
    await manager.do("approve", approved=True)
    await expect(engine, leave).completed().ran("approve").state(approved=True)


async def test_what_nobody_has_done_is_no_unrest(engine: Engine) -> None:
    await (await person(engine, "clerk_1", "staff")).start("leave", days=3)
    await run_until_quiet(engine, [])
    manager = await person(engine, "manager", "managers")
    [item] = await manager.items()
    await engine.worklists.select(manager.number, item.job)
    await run_until_quiet(engine, [])


async def test_an_item_that_fails_leaves_an_exception_with_what_they_said(engine: Engine) -> None:
    leave = await (await person(engine, "clerk_1", "staff")).start("leave", days=3)
    await (await person(engine, "manager", "managers")).fail("approve", "nobody is left to stand in")
    [job] = [job for job in await engine.jobs(leave) if job.task == "approve"]
    assert (job.status, job.error and job.error["error"]) == ("failed", "nobody is left to stand in")


async def test_who_is_not_offered_the_item_is_told_what_they_are(engine: Engine) -> None:
    clerk = await person(engine, "clerk_1", "staff")
    await clerk.start("leave", days=3)
    with pytest.raises(StoryError, match='"clerk_1" is offered no approve, but nothing'):
        await clerk.do("approve", approved=True)
    with pytest.raises(RequestError, match="forbidden"):
        await (await person(engine, "manager", "managers")).start("leave", days=3)


async def test_deadlines_pass_when_the_clock_is_moved(engine: Engine) -> None:
    clerk = await person(engine, "clerk_1", "staff")
    await clerk.start("leave", days=3)
    await move_clock(engine, timedelta(hours=25))
    await run_until_quiet(engine, [])
    assert [item.task for item in await clerk.items()] == ["approve"], "it is the business of whoever is in charge"

"""Clocks and children: many at once, several clocks, and one that is killed."""

import asyncio

from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from family import TICK, begin, family
from psycopg import AsyncConnection


async def test_a_hundred_parents_are_done_in_few_turns(engine: Engine) -> None:
    await family(engine)
    parents = await engine.start_many("order", [{}] * 100)
    assert [await engine.one(TICK) for _ in range(3)] == [50, 50, 0]
    jobs = await engine.claim("shipping", "pack", room=100)
    assert len(jobs) == 100
    await engine.turn([(job, {"parcel": "p"}) for job in jobs])
    assert [await engine.one(TICK) for _ in range(3)] == [50, 50, 0]
    assert {await engine.status(parent) for parent in parents} == {"closed.completed"}


async def test_a_clock_that_is_killed_before_it_commits_has_done_nothing(engine: Engine) -> None:
    """At each of the three steps: starting, cancelling, ending."""
    await family(engine)

    async def killed() -> None:
        before = await engine.everything()
        session = await AsyncConnection.connect(engine.url)
        await session.execute("select mutirao.turn_clock(duty => 'children')")
        await engine.rows("select pg_terminate_backend(%s)", session.info.backend_pid)
        await session.close()
        assert await engine.everything() == before

    parent = await engine.start("order")
    await killed()
    await engine.one(TICK)
    await engine.do("shipping", "pack", parcel="p")
    await killed()
    await engine.one(TICK)
    assert await engine.status(parent) == "closed.completed"
    other = await engine.start("order")
    await engine.one(TICK)
    await engine.cancel(other)
    await killed()
    for _ in range(2):
        await engine.one(TICK)
    assert await engine.status(other) == "closed.aborted"
    assert await engine.one("select count(*) from mutirao.child") == 2


async def test_clocks_at_once_start_each_child_once_and_wait_for_nobody(engine: Engine) -> None:
    await family(engine)
    await engine.start_many("order", [{}] * 60)
    async with await AsyncConnection.connect(engine.url) as first:
        await first.execute("select mutirao.turn_clock(20, 'children')")
        done = await asyncio.wait_for(
            engine.one("select (done ->> 'children')::int from mutirao.turn_clock(50, 'children')"), 10
        )
        assert done == 30
        await first.commit()
    await engine.one(TICK)
    assert (
        await engine.one(
            "select count(*) from mutirao.instance i join mutirao.flow f on f.id = i.flow where f.name = 'shipping'"
        )
        == 60
    )


async def test_a_parent_that_somebody_writes_is_left_for_the_next_turn(engine: Engine) -> None:
    await family(engine)
    parent, other = await engine.start_many("order", [{}, {}])
    async with await AsyncConnection.connect(engine.url) as session:
        await session.execute("select from mutirao.instance where id = %s for no key update", [parent])
        assert await engine.one(TICK) == 1
        assert await engine.jobs(other) == {"ship": "running"}
    assert await engine.one(TICK) == 1
    assert await engine.jobs(parent) == {"ship": "running"}


async def test_an_ended_child_is_kept_until_its_parent_has_what_it_gives(engine: Engine) -> None:
    await family(engine)
    parent, child = await begin(engine)
    await engine.rows("select mutirao.keep('shipping', '0')")
    await engine.do("shipping", "pack", parcel="p")
    await engine.rows("select mutirao.turn_clock(duty => 'retention')")
    assert await engine.status(child) == "closed.completed"
    await engine.one(TICK)
    assert await engine.state(parent) == {"address": "here", "parcel": "p", "other": 0}
    await engine.advance(minutes=1)
    await engine.rows("select mutirao.turn_clock(duty => 'retention')")
    assert await engine.rows("select from mutirao.closed where id = %s", child) == []

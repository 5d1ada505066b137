"""How many instances there are: exact while they are few, a bounded look where they are many."""

from desk import Desk, fresh_desk  # noqa: F401 gives the fixture `desk`
from office import rows

from mutirao.database.record import InstanceCounts


async def test_few_instances_are_counted(desk: Desk) -> None:
    await desk.put_letters()
    await desk.put_letters(name="memo")
    first, second, _ = [await desk.letter() for _ in range(3)]
    await desk.engine.cancel(first)
    await desk.engine.suspend(second)
    statuses = {"open.running": 1, "open.notrunning.suspended": 1, "closed.aborted": 1}
    assert await desk.engine.instance_counts() == [
        InstanceCounts("letter", 2, 0, 1, statuses, True),
        InstanceCounts("memo", 0, 0, 0, {}, True),
    ]
    assert [each.flow for each in await desk.engine.instance_counts("memo")] == ["memo"]
    [letters, memos] = await desk.engine.flows()
    assert (letters.open, letters.exceptions, letters.closed, letters.is_exact) == (2, 0, 1, True)
    assert (memos.open, memos.closed) == (0, 0)


async def test_of_many_closed_ones_only_the_few_of_a_kind_are_counted(desk: Desk) -> None:
    """10,000 completed and 7 terminated ones, with room for a sample of some pages."""
    await desk.put_letters()
    async with desk.engine.connection() as connection:
        await connection.execute(
            "insert into mutirao.closed (id, flow, version, status, state, fired, reached, firings, priority, started_at, closed_at)"
            " select 1000 + i, f.id, f.version, s.status, '{}', '{}', '{}', 1, 0, now(), now()"
            " from mutirao.flow f, generate_series(1, 10007) i, lateral (select ("
            "   case when i <= 7 then 'closed.terminated' else 'closed.completed' end)::mutirao.instance_status) s(status)"
        )
    tally = await rows(
        desk.engine, "select status::text, count, is_exact from mutirao.instance_tally(100000, 50) order by 1"
    )
    [(completed, about, is_exact), few] = tally
    assert (completed, is_exact) == ("closed.completed", False)
    assert 8_000 < about < 12_000
    assert few == ("closed.terminated", 7, True)

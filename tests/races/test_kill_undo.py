"""Workers killed in the middle of rollbacks: what was undone stays undone, and the rest is undone once."""

from collections.abc import AsyncIterator
from signal import SIGKILL

import pytest
from test_kill_worker import leases_end
from worker_flows import Tour
from worker_process import make_payments, worker_process
from worker_stage import Stage, stage_on

TOURS = 5
KILLED = -SIGKILL

TOLD = """
select array_agg(n.name order by t.id) from mutirao.trace t join mutirao.task n on n.id = t.task
where t.kind in ('finish', 'compensate') group by t.instance"""
DONE = ["book", "pack", "undo_pack", "undo_book"]


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with stage_on(database_url) as made:
        await make_payments(made)
        await made.engine.apply(Tour)
        await made.engine.start_many([Tour() for _ in range(TOURS)])
        yield made


async def all_tours_are_undone(stage: Stage) -> None:
    """Another worker comes when the leases have ended, and then everything has been undone exactly once, in order."""
    await leases_end(stage)
    async with stage.working(Tour):
        await stage.all_close("tour", TOURS)
    assert await stage.rows(TOLD) == [(DONE,)] * TOURS
    assert await stage.rows("select distinct status::text, state from mutirao.closed") == [
        ("closed.terminated", {"step": 0})
    ]
    assert await stage.rows("select count(*), count(distinct instance) from payment") == [(TOURS, TOURS)]
    assert not await stage.rows("select from mutirao.undoing")


# The first three turns take, do and fail; the later ones undo.
AT = [
    *(("turn", number, moment) for number in range(3, 8) for moment in ("before", "after")),
    *(("complete_here", number, moment) for number in (1, 3) for moment in ("before", "after")),
    ("finished", 2, "after"),
]


@pytest.mark.parametrize("crash", AT, ids=lambda crash: " ".join(map(str, crash)))
async def test_worker_killed_while_it_undoes(stage: Stage, database_url: str, crash: tuple[str, int, str]) -> None:
    async with worker_process(database_url, crash=crash, concurrency=2) as child:
        assert await child.ends() == KILLED
    await all_tours_are_undone(stage)


async def test_one_worker_after_another_is_killed_while_it_undoes(stage: Stage, database_url: str) -> None:
    for _ in range(4):
        async with worker_process(database_url, crash=("turn", 4, "before"), concurrency=1) as child:
            assert await child.ends() == KILLED
        await leases_end(stage)
    await all_tours_are_undone(stage)

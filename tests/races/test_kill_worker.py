"""A worker is killed at any moment: nothing is lost, and nothing is done twice."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM

import pytest
from worker_flows import Order, Waiting
from worker_process import make_payments, nothing_was_done_twice, worker_process
from worker_stage import Stage, stage_on, until

ORDERS = 6
STEPS = ["take", "pay", "send"]
KILLED = -SIGKILL


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with stage_on(database_url) as made:
        await make_payments(made)
        yield made


async def all_orders_end(stage: Stage) -> None:
    """Another worker comes when the leases have ended, and then every job has been done exactly once."""
    await leases_end(stage)
    async with stage.working(Order):
        await stage.all_close("order", ORDERS)
    assert await nothing_was_done_twice(stage)
    done = await stage.rows(
        "select array_agg(t.name order by x.id) from mutirao.trace x join mutirao.task t on t.id = x.task "
        "where x.kind = 'finish' group by x.instance"
    )
    assert done == [(STEPS,)] * ORDERS
    assert await stage.rows("select count(*) from payment") == [(ORDERS,)]


async def leases_end(stage: Stage) -> None:
    """Those of a killed worker: the server may still give it some, for what it was asked before."""
    await until(lambda: nobody_works(stage))
    await stage.advance(minutes=5)


async def nobody_works(stage: Stage) -> bool:
    return not await stage.rows(_LANES)


_LANES = "select from pg_stat_activity where datname = current_database() and application_name like 'child%%'"

AT = [
    *(("turn", number, moment) for number in (1, 2, 3, 5) for moment in ("before", "after")),
    *(("complete_here", number, moment) for number in (1, 3) for moment in ("before", "after")),
    ("finished", 2, "after"),
]


@pytest.mark.parametrize("crash", AT, ids=lambda crash: " ".join(map(str, crash)))
async def test_worker_killed_around_a_statement(stage: Stage, database_url: str, crash: tuple[str, int, str]) -> None:
    await stage.engine.apply(Order)
    await stage.engine.start_many([Order() for _ in range(ORDERS)])
    async with worker_process(database_url, crash=crash, concurrency=2) as child:
        assert await child.ends() == KILLED
    await all_orders_end(stage)


async def test_worker_killed_while_the_server_works_on_its_turn(stage: Stage, database_url: str) -> None:
    """The server finishes what it was asked to do, and nobody hears of it."""
    await stage.engine.apply(Order)
    await stage.engine.start_many([Order() for _ in range(ORDERS)])
    async with stage.engine.connection() as other:
        async with other.transaction():
            await other.execute("lock table mutirao.trace in exclusive mode")
            async with worker_process(database_url) as child:
                await until(lambda: a_turn_waits(stage))
                child.signal(SIGKILL)
                assert await child.ends() == KILLED
        await until(lambda: nobody_works(stage))
    assert await stage.rows("select count(*) from mutirao.trace where kind = 'finish'") == [(ORDERS,)]
    await all_orders_end(stage)


async def a_turn_waits(stage: Stage) -> bool:
    return bool(await stage.rows(f"{_LANES} and wait_event_type = 'Lock'"))


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_worker_killed_around_a_renewal(stage: Stage, database_url: str, moment: str, tmp_path: Path) -> None:
    await stage.engine.apply(Waiting)
    started = await stage.engine.start(Waiting())
    never = tmp_path / "never"
    crash = ("renew", 2, moment)
    async with worker_process(database_url, crash=crash, lease=0.3, gate=str(never), clock=False) as child:
        assert await child.ends() == KILLED
    await leases_end(stage)
    async with stage.working(Waiting):
        await stage.comes_to(started)
    assert await stage.kinds(started) == ["start", "finish"]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_worker_killed_while_it_gives_jobs_back(
    stage: Stage, database_url: str, moment: str, tmp_path: Path
) -> None:
    await stage.engine.apply(Waiting)
    started = await stage.engine.start(Waiting())
    never = tmp_path / "never"
    async with worker_process(database_url, crash=("release", 1, moment), gate=str(never)) as child:
        await child.says("reached")
        await child.is_told_to_stop()
        child.signal(SIGTERM)
        assert await child.ends() == KILLED
    await leases_end(stage)
    async with stage.working(Waiting):
        await stage.comes_to(started)
    assert await stage.kinds(started) == ["start", "finish"]


@pytest.mark.parametrize("kind", ["async", "transactional"])
async def test_worker_thought_dead_that_comes_back_writes_nothing(
    stage: Stage, database_url: str, kind: str, tmp_path: Path
) -> None:
    await stage.engine.apply(Waiting)
    gate = tmp_path / "gate"
    started = await stage.engine.start(Waiting(kind=kind))
    async with worker_process(database_url, gate=str(gate), clock=False) as child:
        await child.says("reached")
        child.signal(SIGSTOP)
        async with stage.working(Waiting, lease=timedelta(minutes=30)):
            await stage.advance(minutes=5)
            await stage.comes_to(started)
        before = await everything_about(stage, started)
        gate.touch()
        child.signal(SIGCONT)
        # Its result is refused; and it goes on as a worker.
        after_all = await stage.engine.start(Waiting(kind=kind))
        await stage.comes_to(after_all)
        child.signal(SIGTERM)
        assert await child.ends() == 0
    assert await everything_about(stage, started) == before
    assert await stage.kinds(started) == ["start", "finish"]
    assert await nothing_was_done_twice(stage)


async def everything_about(stage: Stage, instance: int) -> list[object]:
    return await stage.rows(
        "select t, c from mutirao.trace t join mutirao.closed c on c.id = t.instance where c.id = %s", instance
    )

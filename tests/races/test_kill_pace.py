"""A worker is killed with counts that it has not handed in: they are lost, and nothing else is."""

from signal import SIGKILL

from worker_flows import Order
from worker_process import make_payments, worker_process
from worker_stage import Stage, fresh_stage  # noqa: F401 gives the fixture `stage`


async def test_what_a_killed_worker_had_not_handed_in_is_in_no_count(stage: Stage, database_url: str) -> None:
    await make_payments(stage)
    await stage.engine.apply(Order)
    await stage.engine.start_many([Order() for _ in range(6)])
    # One job at a time: another one could be committed by its session after the worker is dead.
    async with worker_process(database_url, crash=("complete_here", 3, "after"), concurrency=1) as child:
        assert await child.ends() == -SIGKILL
    assert [each.done for each in (await stage.engine.pace()).tasks] == []
    [(before,)] = await stage.rows("select count(*) from mutirao.trace where kind = 'finish'")
    await stage.advance(minutes=5)
    async with stage.working(Order):
        await stage.all_close("order", 6)
    [(all_of_them,)] = await stage.rows("select count(*) from mutirao.trace where kind = 'finish'")
    assert before > 0
    assert sum(each.done for each in (await stage.engine.pace()).tasks) == all_of_them - before

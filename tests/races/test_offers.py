"""Batches that offer items by turns at the same time: none waits for another, and each item goes to somebody."""

import asyncio

from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import session
from psycopg.types.json import Jsonb

TURNS = {"role": "clerk", "policy": {"kind": "round_robin"}}
TASKS = {
    "first": "a is null",
    "second": "b is null",
    "answer": {"when": "a is not null and x is null", "offer": TURNS},
    "file": {"when": "b is not null and y is null", "offer": TURNS},
}


async def test_two_batches_that_take_turns_in_two_tasks_do_not_wait_for_each_other(engine: Engine) -> None:
    await engine.rows("select mutirao.add_role(null, 'clerk')")
    for name in ("clerk_1", "clerk_2"):
        await engine.rows("select mutirao.add_person(null, %s, roles => '{clerk}')", name)
    await engine.apply("f", dict.fromkeys("abxy"), TASKS, final="x is not null and y is not null")
    pairs = 10
    instances = await engine.start_many("f", [{}] * pairs * 2)
    jobs = {(job.instance, job.task): job for job in await engine.claim("f", "first", "second", room=pairs * 4)}

    async def finish(together: asyncio.Barrier, instance: int, *tasks: str) -> None:
        """Both jobs in one transaction, in this order: each fires an item that goes by turns."""
        async with session(engine) as one, one.transaction():
            for task in tasks:
                job, change = jobs[instance, task], {"a" if task == "first" else "b": "done"}
                await one.execute("select mutirao.complete(%s, %s, %s)", [job.id, job.attempt, Jsonb(change)])
                await together.wait()

    for one, other in zip(instances[::2], instances[1::2], strict=True):
        together = asyncio.Barrier(2)
        await asyncio.gather(finish(together, one, "first", "second"), finish(together, other, "second", "first"))
    offered = await engine.rows(
        "select t.name, count(*), count(j.offered_to) from mutirao.job j join mutirao.task t on t.id = j.task group by 1"
    )
    assert sorted(offered) == [("answer", pairs * 2, pairs * 2), ("file", pairs * 2, pairs * 2)]

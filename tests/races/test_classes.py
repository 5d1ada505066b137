"""Eight workers and random classes: no two jobs of conflicting classes overlap, and every job runs in the end."""

import asyncio
import random
import time

import psycopg
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb

CLASSES = 6
INSTANCES = 120
WORKERS = 8

CLAIM = "select job, attempt from mutirao.claim(%s, %s::int[], 2)"
COMPLETE = "select mutirao.complete(%s, %s, %s)"

# Each finish with when its work began and ended, and its class: from the trace alone.
OVERLAPS = """
with done as (
  select t.instance, c.id as class, c.conflicts, (t.state -> 'began')::bigint as began, (t.state -> 'ended')::bigint as ended
  from mutirao.trace t join mutirao.rule r on r.version = t.version and r.task = t.task join mutirao.class c on c.id = r.class_id
  where t.kind = 'finish')
select a.instance, b.instance from done a join done b on b.class = any (a.conflicts) and a.instance < b.instance
where a.began < b.ended and b.began < a.ended
"""


async def conflicting(engine: Engine, dice: random.Random) -> None:
    names = [f"class_{n}" for n in range(CLASSES)]
    for name in names:
        await engine.rows("select mutirao.put_class(%s, '{}')", name)
    for name in names:
        await engine.rows("select mutirao.put_class(%s, %s)", name, dice.sample(names, dice.randint(0, 3)))
    for name in names:
        tasks = {"go": {"when": "ended is null", "task_class": name}}
        attributes = {"began": {"type": "integer"}, "ended": {"type": "integer"}}
        await engine.apply(f"flow_{name}", attributes, tasks, final="ended is not null")


async def work(engine: Engine, tasks: list[int], dice: random.Random) -> int:
    done = 0
    async with await psycopg.AsyncConnection.connect(engine.url, autocommit=True) as session:
        while await is_open(session):
            claimed = await (await session.execute(CLAIM, ["w", tasks])).fetchall()
            began = time.monotonic_ns()
            for _ in range(dice.randint(0, 5)):
                await session.execute("select")  # the others go on meanwhile
            for job, attempt in claimed:
                change = Jsonb({"began": began, "ended": time.monotonic_ns()})
                await session.execute(COMPLETE, [job, attempt, change])
                done += 1
    return done


async def is_open(session: psycopg.AsyncConnection[tuple[bool]]) -> bool:
    row = await (await session.execute("select exists (select from mutirao.instance)")).fetchone()
    return bool(row and row[0])


async def test_conflicting_jobs_never_overlap_and_all_of_them_run(engine: Engine) -> None:
    dice = random.Random(7)
    await conflicting(engine, dice)
    for n in range(INSTANCES):
        await engine.start(f"flow_class_{dice.randrange(CLASSES)}", priority=dice.randint(0, 3) if n % 2 else 0)
    tasks = [task for (task,) in await engine.rows("select id from mutirao.task where name = 'go'")]
    async with asyncio.timeout(100):
        done = await asyncio.gather(*(work(engine, tasks, random.Random(n)) for n in range(WORKERS)))
    assert sum(done) == INSTANCES
    assert await engine.rows(OVERLAPS) == []
    assert await engine.rows("select from mutirao.job") == []


async def test_the_question_about_overlaps_would_find_one(engine: Engine) -> None:
    """The same, without the classes' conflicts until afterwards: then there must be overlaps."""
    dice = random.Random(7)
    await conflicting(engine, dice)
    await engine.rows("create table kept as select id, conflicts from mutirao.class")
    await engine.rows("update mutirao.class set conflicts = '{}'")
    for _ in range(INSTANCES):
        await engine.start(f"flow_class_{dice.randrange(CLASSES)}")
    tasks = [task for (task,) in await engine.rows("select id from mutirao.task where name = 'go'")]
    async with asyncio.timeout(100):
        await asyncio.gather(*(work(engine, tasks, random.Random(n)) for n in range(WORKERS)))
    await engine.rows("update mutirao.class c set conflicts = k.conflicts from kept k where k.id = c.id")
    assert await engine.rows(OVERLAPS) != []

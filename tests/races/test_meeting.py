"""Workers, people and operators at once, over classes and orderings: nothing overlaps, nobody is forgotten, and no two sessions wait for each other."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import at_once, run, session
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

CLASSES = [f"class_{n}" for n in range(5)]
PEOPLE = ["clerk_1", "clerk_2"]
WORKERS = 8
INSTANCES = 120
SECONDS = 4.0

ATTRIBUTES = {"site": "a", "began": {"type": "integer"}, "ended": {"type": "integer"}}

DUTIES = ("retries", "leases", "limits", "batches", "retention", "deadlines", "gates")

CLAIM = "select job, attempt from mutirao.claim('w', %s::int[], 4)"
TURN = "select kind, job from mutirao.turn('w', %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], '{}', 0)"
ITEM = "select id from mutirao.job where role is not null and status = 'ready' order by random() limit 1"
BLANK = "select mutirao.erase(array(select id from mutirao.closed where state ->> 'site' = 'b' order by random() limit 1), attributes => '{site}')"
# They come and go. By the second, who has gone before another one may have to wait for it: a circle.
SPARE = [
    {"first": "desk", "second": "p", "pairs": [["sign", "last"], ["file", "two"]]},
    {"first": "q", "second": "p", "pairs": [["eins", "two"], ["zwei", "two"]], "on": "site"},
]
FINISH = "select mutirao.finish_item(%s, %s, %s, %s, null)"

# Each attempt that ended, well or not, with when its work began and ended, and its class: from the trace alone.
OVERLAPS = """
with done as (
  select t.job, t.id, c.id as class, c.conflicts, (x.told -> 'began')::bigint as began, (x.told -> 'ended')::bigint as ended
  from mutirao.trace t join mutirao.rule r on r.version = t.version and r.task = t.task join mutirao.class c on c.name = r.class and c.name <> 'spare'
  cross join lateral (select case when t.kind in ('finish', 'compensate') then t.state else t.note end as told) x
  where t.kind in ('finish', 'compensate', 'retry', 'fail') and t.attempt is not null and x.told ? 'began')
select a.job, b.job from done a join done b on b.class = any (a.conflicts) and a.id < b.id and a.began < b.ended and b.began < a.ended"""

# Of two instances that an ordering ordered, and that both came to their good end, one went first with either pair.
CROSSED = """
with done as (
  select t.instance, n.name, (t.state -> 'began')::bigint as began, t.state ->> 'site' as site from mutirao.trace t join mutirao.task n on n.id = t.task
  join mutirao.closed c on c.id = t.instance and c.status = 'closed.completed' where t.kind = 'finish')
select a.instance, b.instance from done a join done b on a.name = 'one' and b.name = 'eins' and a.site = b.site
join done c on c.instance = a.instance and c.name = 'two' join done d on d.instance = b.instance and d.name = 'zwei'
where (a.began < b.began) <> (c.began < d.began)"""


# What goes wrong here: compensations that failed too often, and instances that wait for each other. Both are for a person.
EXPECTED = {"compensation_failed", "wait_circle"}
EXCEPTIONS = "select id, array(select r ->> 'code' from jsonb_array_elements(reasons) r) from mutirao.instance where reasons is not null"
LOOK_AGAIN = "select mutirao.look_at_circle((r -> 'job')::bigint, 200) from mutirao.instance i, jsonb_array_elements(i.reasons) r where i.id = %s and r ->> 'code' = 'wait_circle'"

# Who waits for whom: a class is held there, or a listed task is owed by an earlier stamp. And whether that leads back to where it began.
CIRCLE = """
with recursive waiting as (
  select j.* from mutirao.job j where j.gate = 'waits'),
edge(one, other) as materialized (
  select j.instance, h.instance from waiting j join mutirao.class c on c.id = j.class join mutirao.job h on h.class = any (c.conflicts) and h.gate = 'holds'
  union
  select j.instance, x.id from waiting j join mutirao.ordering_task t on t.task = j.task join mutirao.ordering o on o.id = t.ordering
  join mutirao.ordering_task u on u.ordering = t.ordering and u.pair = t.pair and u.side <> t.side join mutirao.task n on n.id = u.task
  join mutirao.stamp e on e.ordering = o.id left join mutirao.stamp s on s.ordering = o.id and s.instance = j.instance
  join mutirao.instance x on x.id = e.instance and x.flow = n.flow
  join mutirao.instance i on i.id = j.instance and (o.attribute is null or i.state -> o.attribute = x.state -> o.attribute)
  where (s.stamp is null or e.stamp < s.stamp) and not exists (select from mutirao.trace d where d.instance = x.id and d.task = u.task and d.kind = 'finish')),
reached(id) as (
  select e.other from edge e where e.one = %s union select e.other from reached r join edge e on e.one = r.id)
select id from reached where id = %s"""


class Site:
    """Whoever does something here does it over and over, in a session of their own, until it is over."""

    def __init__(self, engine: Engine, dice: random.Random) -> None:
        self.engine = engine
        self.dice = dice
        self.people: list[int] = []
        self.tasks: list[int] = []
        self.conflicts: dict[str, list[str]] = {}
        self.until = time.monotonic() + SECONDS

    async def build(self) -> None:
        await self.engine.rows("select mutirao.add_role(null, 'clerk')")
        for name in PEOPLE:
            self.people.append(await self.engine.one("select mutirao.add_person(null, %s, roles => '{clerk}')", name))
        for name in (*CLASSES, "spare"):
            await self.engine.rows("select mutirao.put_class(%s, '{}')", name)
        for name in CLASSES:
            await self.engine.rows(
                "select mutirao.put_class(%s, %s)", name, self.dice.sample(CLASSES, self.dice.randint(1, 2))
            )
        found = await self.engine.rows("select name, conflicts from mutirao.classes() where name <> 'spare'")
        self.conflicts = dict(found)
        more: dict[str, Any] = {"retries": 9, "backoff": 0, "compensation": "undo"}
        for name, first, second in (("p", "one", "two"), ("q", "eins", "zwei")):
            tasks = {
                first: {"when": "true", "fires": "once", **more, **self.draw()},
                second: after(first, **more, **self.draw()),
                "last": after(second, **more, task_class="spare", limit={"at_once": 3}),
                "undo": {"retries": 9, "backoff": 0, **self.draw()},
            }
            await self.engine.apply(name, ATTRIBUTES, tasks, ends="quiet")
        offered = {"when": "true", "fires": "once", "offer": {"role": "clerk"}, **self.draw()}
        await self.engine.apply(
            "desk", ATTRIBUTES, {"sign": offered, "file": after("sign", **self.draw())}, ends="quiet"
        )
        await self.put_ordering()
        self.tasks = [task for (task,) in await self.engine.rows("select id from mutirao.task where name !~ '^_'")]

    def draw(self) -> dict[str, str]:
        return {"task_class": self.dice.choice(CLASSES)}

    async def put_ordering(self) -> None:
        order = {"first": "p", "second": "q", "pairs": [["one", "eins"], ["two", "zwei"]], "on": "site"}
        await self.engine.rows("select mutirao.put_ordering(%s)", Jsonb(order))

    async def start(self) -> None:
        for _ in range(INSTANCES):
            flow = self.dice.choice(["p", "q", "desk"])
            await self.engine.start(flow, priority=self.dice.randint(0, 2), site=self.dice.choice("ab"))

    async def repeat(self, part: Callable[[AsyncConnection[Any]], Awaitable[None]]) -> None:
        """What the engine refuses is no fault; whatever else goes wrong, a deadlock above all, is one."""
        async with await AsyncConnection.connect(self.engine.url, autocommit=True) as mine:
            while not await self.is_over(mine):
                try:
                    await part(mine)
                except psycopg.DatabaseError as error:
                    if not (error.sqlstate or "").startswith("MU"):
                        raise

    async def is_over(self, mine: AsyncConnection[Any]) -> bool:
        return not await rows(mine, "select from mutirao.instance limit 1")

    # ---------------------------------------------------------------------------------------------------------- parts

    async def work(self, mine: AsyncConnection[Any]) -> None:
        jobs = await rows(mine, CLAIM, self.tasks)
        began = time.monotonic_ns()
        for _ in range(self.dice.randint(0, 3)):
            await mine.execute("select")  # the others go on meanwhile
        while jobs:
            times = {"began": began, "ended": time.monotonic_ns()}
            bad = [self.dice.random() < 0.1 for _ in jobs]
            told = await rows(
                mine, TURN, [job for job, _ in jobs], [attempt for _, attempt in jobs],
                [None if wrong else Jsonb(times) for wrong in bad], [Jsonb({"error": "no", **times}) if wrong else None for wrong in bad],
            )  # fmt: skip
            busy = {job for kind, job in told if kind == "busy"}
            jobs = [job for job in jobs if job[0] in busy]

    async def sign(self, mine: AsyncConnection[Any]) -> None:
        person = self.dice.choice(self.people)
        for (job,) in await rows(mine, ITEM):
            [(attempt,)] = await rows(mine, "select mutirao.select_item(%s, %s)", person, job)
            began = time.monotonic_ns()
            await mine.execute("select")
            if self.dice.random() < 0.5:
                await rows(mine, "select mutirao.return_item(%s, %s)", person, job)
            else:
                times = Jsonb({"began": began, "ended": time.monotonic_ns()})
                await rows(mine, FINISH, person, job, attempt, times)
        await asyncio.sleep(0.01)

    async def disturb(self, mine: AsyncConnection[Any]) -> None:
        act = self.dice.choice(["suspend", "resume", "resume", "roll_back", "cancel", "batch"])
        if time.monotonic() > self.until:
            act = "resume"
        chosen = "hold = 'suspended'" if act == "resume" else "hold is null"
        found = await rows(mine, f"select id from mutirao.instance where {chosen} order by random() limit 1")
        for (instance,) in found:
            if act == "batch":
                ids = [n for (n,) in await rows(mine, "select id from mutirao.instance order by random() limit 9")]
                kind = self.dice.choice(["suspend", "resume"])
                await rows(mine, "select mutirao.make_batch(%s, %s)", kind, Jsonb({"ids": ids}))
            else:
                await rows(mine, f"select mutirao.{act}(%s)", instance)
        await asyncio.sleep(0.02 if time.monotonic() < self.until else 0.001)

    async def keep_house(self, mine: AsyncConnection[Any]) -> None:
        """A class and an ordering come and go, others are put anew; limits change; what has ended is dropped or blanked."""
        name = self.dice.choice(CLASSES)
        await rows(mine, "select mutirao.put_class(%s, %s)", name, self.conflicts[name])
        await rows(mine, "select mutirao.put_class('spare', %s)", self.dice.sample(["spare", *CLASSES], 2))
        spare = self.dice.choice(SPARE)
        await rows(mine, "select mutirao.put_ordering(%s)", Jsonb(spare))
        await rows(mine, "select mutirao.limit_task('p', 'last', %s)", self.dice.choice([1, 5]))
        await rows(mine, BLANK)
        await rows(mine, 'select mutirao.drop_instances(\'{"status": "closed.aborted"}\')')
        await asyncio.sleep(0.05)
        await rows(mine, "select mutirao.drop_class('spare')")
        await rows(mine, "select mutirao.put_class('spare', '{}')")
        await rows(mine, "select mutirao.drop_ordering(%s, %s)", spare["first"], spare["second"])
        await asyncio.sleep(0.02)

    async def keep_time(self, mine: AsyncConnection[Any]) -> None:
        for duty in DUTIES:
            await rows(mine, "select * from mutirao.turn_clock(500, %s)", duty)
        for instance, codes in await rows(mine, EXCEPTIONS):
            assert set(codes) <= EXPECTED, (instance, codes)
            if "wait_circle" not in codes or await self.is_in_circle(mine, instance):
                await rows(mine, "select mutirao.cancel(%s)", instance)
        await asyncio.sleep(0.02)

    async def is_in_circle(self, mine: AsyncConnection[Any], instance: int) -> bool:
        """What was told may be over; what is still told now that the engine has looked again, while nobody goes on, is true."""
        async with mine.transaction():
            await rows(mine, "select from mutirao.instance where id = %s for no key update", instance)
            await rows(mine, "select mutirao.lock_gate()")
            await rows(mine, LOOK_AGAIN, instance)
            is_told = any(
                "wait_circle" in codes for _, codes in await rows(mine, f"{EXCEPTIONS} and id = %s", instance)
            )
            assert not is_told or await rows(mine, CIRCLE, instance, instance), await standing(self.engine)
            return is_told


async def rows(mine: AsyncConnection[Any], query: str, *values: Any) -> list[Any]:
    found = await mine.execute(query.encode(), values)
    return await found.fetchall() if found.description is not None else []


async def standing(engine: Engine) -> list[Any]:
    return await engine.rows(
        "select j.id, j.instance, t.name, j.status::text, j.gate, j.class, j.waits_for, j.role, i.hold, i.status::text from mutirao.job j join mutirao.task t on t.id = j.task"
        " join mutirao.instance i on i.id = j.instance"
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_all_that_meets_goes_on_and_nothing_overlaps(engine: Engine, seed: int) -> None:
    site = Site(engine, random.Random(seed))
    await site.build()
    await site.start()
    parts = [site.work] * WORKERS + [site.sign] * 2 + [site.disturb] * 2 + [site.keep_house] + [site.keep_time] * 2
    try:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(site.repeat(part))
    except TimeoutError:
        raise AssertionError(await standing(engine)) from None
    assert await engine.rows(OVERLAPS) == []
    assert await engine.rows(CROSSED) == []
    assert await engine.rows("select from mutirao.job") == []
    for table in ("stamp", "owed", "order_wait", "undoing"):
        assert await engine.rows(f"select from mutirao.{table}") == [], table
    assert await engine.one("select deadlocks from pg_stat_database where datname = current_database()") == 0
    assert await engine.one("select count(*) from mutirao.trace where kind = 'finish'") > INSTANCES


async def test_a_job_that_is_made_while_its_class_is_dropped_waits_for_nobody(engine: Engine) -> None:
    await engine.rows("select mutirao.put_class('spare', '{}')")
    await engine.rows("select mutirao.put_class('spare', '{spare}')")
    await engine.apply("f", {"n": 0}, {"go": {"when": "n = 0", "task_class": "spare"}}, final="n = 1")
    await engine.start("f")
    async with session(engine) as slow:
        await run(slow, "select mutirao.start('f')")
        await at_once(engine, "select mutirao.drop_class('spare')")
        await slow.commit()
    assert await engine.rows("select status::text, gate from mutirao.job") == [("ready", "holds")] * 2

"""Schedules across changes of the clocks, with clocks that are killed at every statement, and several at once."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import at_once, run, session

TICK = "select (done ->> 'schedules')::int from mutirao.turn_clock(duty => 'schedules')"

# On 25 October 2026 the clocks of Berlin show every time from two to three twice; on 29 March they show none of them.
SPRING = datetime(2026, 3, 28, 22, 30, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 24, 22, 30, tzinfo=UTC)

EXPECTED = {
    SPRING: {
        "nightly": ["2026-03-29T01:00:00Z"],
        "hourly": [
            f"2026-03-{day}T{hour:02}:15:00Z" for day, hour in [(28, 23), (29, 0), (29, 1), (29, 2), (29, 3), (29, 4)]
        ],
        "later": [],
    },
    AUTUMN: {
        "nightly": ["2026-10-25T00:30:00Z"],
        "hourly": [
            f"2026-10-{day}T{hour:02}:15:00Z" for day, hour in [(24, 23), (25, 0), (25, 1), (25, 2), (25, 3), (25, 4)]
        ],
        "later": ["2026-10-25T03:45:00Z"],
    },
}

# Every statement that writes one of the tables is counted, and the backend ends itself at the one whose turn it is.
KILLER = """
    create sequence public.statements;
    create table public.killing (at bigint);
    insert into public.killing values (0);
    create function public.count_statement() returns trigger language plpgsql as $$
    begin
      if nextval('public.statements') = (select at from public.killing) then
        perform pg_terminate_backend(pg_backend_pid());
      end if;
      return null;
    end $$;
"""


async def set_clock(engine: Engine, at: datetime) -> None:
    now = await engine.one("select mutirao.now()")
    await engine.advance(seconds=(at - now).total_seconds())


async def schedules(engine: Engine, at: datetime) -> None:
    await engine.apply("report", {"due": {"type": "timestamp"}, "done": False}, {"make": "not done"}, final="done")
    await set_clock(engine, at)
    for name, cron in (("nightly", "30 2 * * *"), ("hourly", "15 * * * *"), ("later", "45 4 25 10 *")):
        await engine.rows(
            "select mutirao.put_schedule(%s, 'report', %s, zone => 'Europe/Berlin', missed => 'all', time_to => 'due')",
            name,
            cron,
        )


async def fired(engine: Engine, name: str) -> list[str]:
    rows = await engine.rows(
        "select note ->> 'due_at' from mutirao.trace where note ->> 'schedule' = %s order by 1", name
    )
    return [due_at for (due_at,) in rows]


async def each_fired_once(engine: Engine, at: datetime) -> None:
    for name, times in EXPECTED[at].items():
        assert await fired(engine, name) == times
        assert await engine.one("select runs from mutirao.schedule where name = %s", name) == len(times)
    started = sum(map(len, EXPECTED[at].values()))
    assert await engine.one("select count(*) from mutirao.instance") == started
    assert await engine.one("select count(*) from mutirao.job") == started
    assert await engine.one("select count(*) from mutirao.key") == started


@pytest.mark.parametrize("at", [SPRING, AUTUMN], ids=["spring", "autumn"])
async def test_each_time_is_started_once_though_its_clock_is_killed_at_every_statement(
    engine: Engine, at: datetime
) -> None:
    await schedules(engine, at)
    await engine.rows(KILLER)
    for table in ("schedule", "key", "instance", "trace", "job"):
        for moment in ("before", "after"):
            await engine.rows(
                f"create trigger {moment}_all {moment} insert or update or delete on mutirao.{table} execute function public.count_statement()"
            )
    kills = 0
    for step in range(1, 20):
        await set_clock(engine, at + step * timedelta(minutes=20))
        for statement in range(1, 1000):
            await engine.rows("update public.killing set at = %s", statement)
            await engine.rows("select setval('public.statements', 1, false)")
            try:
                await engine.one(TICK)
                break
            except psycopg.OperationalError:
                kills += 1
        assert await engine.one(TICK) == 0
    assert kills > 30
    await each_fired_once(engine, at)


@pytest.mark.parametrize("at", [SPRING, AUTUMN], ids=["spring", "autumn"])
async def test_several_clocks_at_once_start_each_time_once(engine: Engine, at: datetime) -> None:
    await schedules(engine, at)
    for step in range(1, 10):
        await set_clock(engine, at + step * timedelta(minutes=40) + timedelta(seconds=30))
        await asyncio.gather(*(engine.one(TICK) for _ in range(4)))
    await set_clock(engine, at + timedelta(minutes=19 * 20))
    await engine.one(TICK)
    await each_fired_once(engine, at)


async def test_a_clock_passes_by_the_schedules_that_another_one_fires(engine: Engine) -> None:
    await schedules(engine, AUTUMN)
    await set_clock(engine, AUTUMN + timedelta(hours=1))
    async with session(engine) as first:
        assert await run(first, TICK) == [(1,)]
        assert await at_once(engine, TICK) == [(0,)]
        await first.rollback()  # and where that one is gone, this one does it
    assert await engine.one(TICK) == 1

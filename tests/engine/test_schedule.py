"""Schedules: put in place, fired by a clock, paused, dropped; and what becomes of missed and overlapping times."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb

TICK = "select (done ->> 'schedules')::int from mutirao.turn_clock(duty => 'schedules')"
NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)


async def set_clock(engine: Engine, at: datetime) -> None:
    now = await engine.one("select mutirao.now()")
    await engine.advance(seconds=(at - now).total_seconds())


async def report(engine: Engine, at: datetime = NOON) -> None:
    """A flow, and a clock that stands at a known time."""
    await engine.apply(
        "report",
        {"day": {"type": "date"}, "due": {"type": "timestamp"}, "region": "all", "done": False},
        {"make": "not done"},
        final="done",
    )
    await set_clock(engine, at)


async def put(engine: Engine, name: str, cron: str, **more: Any) -> dict[str, Any]:
    named = "".join(f", {key} => %s" for key in more)
    values = [Jsonb(value) if isinstance(value, dict) else value for value in more.values()]
    row = await engine.one(
        f"select to_jsonb(s) from mutirao.put_schedule(%s, 'report', %s{named}) s", name, cron, *values
    )
    return dict(row)


async def fired(engine: Engine, name: str = "daily") -> list[str]:
    """The times that were started, by their keys."""
    rows = await engine.rows("select key from mutirao.key where key like %s order by 1", f"schedule/{name}/%")
    return [key.removeprefix(f"schedule/{name}/") for (key,) in rows]


async def test_it_starts_an_instance_when_its_time_comes(engine: Engine) -> None:
    await report(engine)
    made = await put(engine, "daily", "30 6 * * *", zone="Europe/Berlin", state={"region": "north"}, time_to="due")
    assert made["next_at"] == "2026-03-29T04:30:00+00:00"
    assert await engine.one(TICK) == 0
    await set_clock(engine, datetime(2026, 3, 29, 4, 30, 1, tzinfo=UTC))
    assert await engine.one(TICK) == 1
    assert await engine.one(TICK) == 0
    ((number, state, writer, note),) = await engine.rows(
        "select i.id, i.state, t.writer, t.note from mutirao.instance i join mutirao.trace t on t.instance = i.id"
    )
    assert state == {"day": None, "due": "2026-03-29T04:30:00Z", "region": "north", "done": False}
    assert (writer, note) == ("clock", {"schedule": "daily", "due_at": "2026-03-29T04:30:00Z"})
    ((next_at, last_at, last_instance, runs, problem),) = await engine.rows(
        "select next_at::text, last_at::text, last_instance, runs, problem from mutirao.schedule"
    )
    assert (next_at, last_at) == ("2026-03-30 04:30:00+00", "2026-03-29 04:30:00+00")
    assert (last_instance, runs, problem) == (number, 1, None)


async def test_a_day_is_that_of_its_zone(engine: Engine) -> None:
    await report(engine)
    await put(engine, "daily", "30 0 * * *", zone="Asia/Kathmandu", time_to="day")
    await engine.advance(hours=7)
    await engine.one(TICK)
    assert await engine.one("select state ->> 'day' from mutirao.instance") == "2026-03-29"
    assert await fired(engine) == ["2026-03-28T18:45:00Z"]


@pytest.mark.parametrize(
    ("missed", "started"),
    [
        ("skip", []),
        ("once", ["2026-03-31T06:00:00Z"]),
        ("all", ["2026-03-29T06:00:00Z", "2026-03-30T06:00:00Z", "2026-03-31T06:00:00Z"]),
    ],
)
async def test_times_that_no_clock_came_to(engine: Engine, missed: str, started: list[str]) -> None:
    await report(engine)
    await put(engine, "daily", "0 6 * * *", missed=missed)
    await engine.advance(days=3)
    assert await engine.one(TICK) == len(started)
    assert await fired(engine) == started
    assert await engine.one("select next_at::text from mutirao.schedule") == "2026-04-01 06:00:00+00"
    assert await engine.one(TICK) == 0


async def test_a_time_less_than_a_minute_ago_is_not_missed(engine: Engine) -> None:
    await report(engine)
    await put(engine, "daily", "*/10 * * * *", missed="skip")
    await engine.advance(minutes=30, seconds=59)
    assert await engine.one(TICK) == 1
    assert await fired(engine) == ["2026-03-28T12:30:00Z"]


async def test_all_missed_times_come_in_portions_oldest_first(engine: Engine) -> None:
    await report(engine)
    await put(engine, "daily", "*/10 * * * *", missed="all")
    await engine.advance(hours=6, minutes=5)
    portions: list[int] = []
    while portions[-1:] != [0]:
        portions.append(await engine.one(TICK))
    assert portions == [20, 16, 0]
    assert len(await fired(engine)) == 36
    order = await engine.rows("select note ->> 'due_at' from mutirao.trace where kind = 'start' order by instance")
    assert order == sorted(order)


async def test_nothing_is_started_while_the_last_one_is_open(engine: Engine) -> None:
    await report(engine)
    await put(engine, "daily", "0 * * * *", overlap="skip")
    for _ in range(3):
        await engine.advance(hours=1)
        await engine.one(TICK)
    assert await fired(engine) == ["2026-03-28T13:00:00Z"]
    await engine.do("report", "make", done=True)
    await engine.advance(hours=1)
    assert await engine.one(TICK) == 1
    assert await fired(engine) == ["2026-03-28T13:00:00Z", "2026-03-28T16:00:00Z"]


async def test_overlapping_is_allowed_unless_said_otherwise(engine: Engine) -> None:
    await report(engine)
    await put(engine, "daily", "0 * * * *")
    for _ in range(3):
        await engine.advance(hours=1)
        await engine.one(TICK)
    assert await engine.one("select count(*) from mutirao.instance") == 3


async def test_the_same_again_changes_nothing(engine: Engine) -> None:
    await report(engine)
    await put(engine, "daily", "0 6 * * *", zone="utc")
    await engine.advance(days=1)
    before = await engine.everything()
    await put(engine, "daily", "0 6 * * *", zone="UTC")
    assert await engine.everything() == before
    changed = await put(engine, "daily", "0 6 * * *", state={"region": "south"})
    assert changed["next_at"] == "2026-03-29T06:00:00+00:00"  # it is due, and stays so
    changed = await put(engine, "daily", "0 7 * * *", state={"region": "south"})
    assert changed["next_at"] == "2026-03-30T07:00:00+00:00"


async def test_paused_it_starts_nothing_and_misses_nothing(engine: Engine) -> None:
    await report(engine)
    await put(engine, "daily", "0 6 * * *", missed="all")
    for _ in range(2):
        await engine.rows("select mutirao.pause_schedule('daily')")
    assert (await put(engine, "daily", "0 8 * * *", missed="all"))["paused"]
    await engine.advance(days=3)
    assert await engine.one(TICK) == 0
    for _ in range(2):
        await engine.rows("select mutirao.resume_schedule('daily')")
    assert await engine.one("select next_at::text from mutirao.schedule") == "2026-04-01 08:00:00+00"
    assert await engine.one(TICK) == 0


async def test_dropped_it_is_gone_and_what_it_started_goes_on(engine: Engine) -> None:
    await report(engine)
    await put(engine, "daily", "0 6 * * *")
    await engine.advance(days=1)
    await engine.one(TICK)
    await engine.rows("select mutirao.drop_schedule('daily')")
    await engine.advance(days=1)
    assert await engine.one(TICK) == 0
    assert await engine.one("select count(*) from mutirao.instance") == 1
    # Put in place again, it does not start what it has started before.
    await put(engine, "daily", "0 6 * * *")
    await engine.rows("update mutirao.schedule set next_at = '2026-03-29 06:00+00'")
    await engine.one(TICK)
    assert await fired(engine) == ["2026-03-29T06:00:00Z", "2026-03-30T06:00:00Z"]


@pytest.mark.parametrize("call", ["pause_schedule", "resume_schedule", "drop_schedule"])
async def test_an_unknown_schedule_is_refused_with_what_was_meant(engine: Engine, call: str) -> None:
    await report(engine)
    await put(engine, "daily", "0 6 * * *")
    async with engine.refused("unknown_schedule", 'did you mean "daily"?'):
        await engine.rows(f"select mutirao.{call}('dayly')")


@pytest.mark.parametrize(
    ("name", "more", "code", "says"),
    [
        ("daily", {"cron": "0 0 30 2 *"}, "wrong_cron", "never fires"),
        ("daily", {"zone": "Europe/Berlim"}, "unknown_zone", "did you mean Europe/Berlin?"),
        ("daily", {"flow": "raport"}, "unknown_flow", "raport"),
        ("daily", {"state": {"region": 7}}, "wrong_type", "region"),
        ("daily", {"state": {"done": None}}, "nothing_fires", "nothing would ever happen"),
        ("daily", {"missed": "never"}, "wrong_call", "skip, once or all"),
        ("daily", {"overlap": "cancel"}, "wrong_call", "allow or skip"),
        ("daily", {"time_to": "done"}, "wrong_call", '"done" is none'),
        ("daily", {"priority": 2_000_000}, "wrong_call", "a million"),
        ("a b", {}, "wrong_call", 'cannot be called "a b"'),
    ],
)
async def test_what_could_start_nothing_is_refused(
    engine: Engine, name: str, more: dict[str, Any], code: str, says: str
) -> None:
    await report(engine)
    given = {"flow": "report", "cron": "0 6 * * *", **more}
    values = [Jsonb(value) if isinstance(value, dict) else value for value in given.values()]
    async with engine.refused(code, says):
        named = ", ".join(f"{key} => %s" for key in given)
        await engine.rows(f"select mutirao.put_schedule(%s, {named})", name, *values)


async def test_a_start_that_is_refused_is_told_and_others_go_on(engine: Engine) -> None:
    await report(engine)
    for name, state in (("daily", {}), ("poison", {"region": "north"}), ("third", {})):
        await put(engine, name, "0 6 * * *", state=state)
    await engine.apply("report", {"done": False}, {"make": "not done"}, final="done")  # without regions
    await engine.advance(days=1)
    await engine.one(TICK)
    assert [len(await fired(engine, name)) for name in ("daily", "poison", "third")] == [1, 0, 1]
    rows = await engine.rows(
        "select name, problem ->> 'code', problem ->> 'due_at', next_at::text from mutirao.schedule order by 1"
    )
    assert rows == [
        ("daily", None, None, "2026-03-30 06:00:00+00"),
        ("poison", "unknown_attribute", "2026-03-29T06:00:00+00:00", "2026-03-30 06:00:00+00"),
        ("third", None, None, "2026-03-30 06:00:00+00"),
    ]
    await put(engine, "poison", "0 6 * * *")
    assert await engine.rows("select from mutirao.schedule where problem is not null") == []


async def test_the_clock_knows_when_the_next_one_fires(engine: Engine) -> None:
    await report(engine)
    await put(engine, "daily", "0 6 * * *")
    await put(engine, "hourly", "0 * * * *")
    next_at = await engine.one("select next_at from mutirao.turn_clock(duty => 'schedules')")
    assert next_at == NOON + timedelta(hours=1)


async def test_hundreds_of_schedules_fire_in_one_turn(engine: Engine) -> None:
    await report(engine)
    await engine.rows("select mutirao.put_schedule('s-' || n, 'report', '0 13 * * *') from generate_series(1, 3) n")
    await engine.rows(
        """insert into mutirao.schedule
           select 's-' || n, flow, cron, zone, state, priority, missed, overlap, time_to, pattern, paused,
             next_at + mod(n, 7) * interval '1 day', last_at, last_instance, runs, problem, made_by, made_at
           from mutirao.schedule, generate_series(10, 3009) n where name = 's-1'"""
    )
    await engine.advance(hours=1)
    assert await engine.one(TICK) == 431
    assert await engine.one(TICK) == 0
    assert await engine.one("select count(*) from mutirao.instance") == 431

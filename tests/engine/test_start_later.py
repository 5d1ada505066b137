"""Instances that start later, by a clock."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb

from mutirao import Change, Flow, RequestError, Schedule, task
from mutirao import Engine as PythonEngine
from mutirao.testing import move_clock, run_until_quiet

TICK = "select (done ->> 'starts')::int from mutirao.turn_clock(duty => 'starts')"


async def trips(engine: Engine, number: int = 1, hours: float = 1, **state: Any) -> list[int]:
    await engine.apply("trip", {"city": None, "booked": False}, {"book": "not booked"}, final="booked")
    return await later(engine, number, hours, **state)


async def later(engine: Engine, number: int = 1, hours: float = 1, **state: Any) -> list[int]:
    rows = await engine.rows(
        "select * from mutirao.start_many('trip', %s::jsonb[], at => mutirao.now() + %s)",
        [Jsonb(state)] * number, timedelta(hours=hours),
    )  # fmt: skip
    return [instance for (instance,) in rows]


async def test_it_waits_until_it_is_due_and_then_starts_once(engine: Engine) -> None:
    (trip,) = await trips(engine, city="Recife")
    assert await engine.status(trip) == "open.notrunning"
    assert await engine.jobs(trip) == {}
    assert await engine.one(TICK) == 0
    await engine.advance(minutes=61)
    assert await engine.one(TICK) == 1
    assert await engine.one(TICK) == 0
    assert await engine.status(trip) == "open.running"
    assert await engine.jobs(trip) == {"book": "ready"}
    assert [(step.kind, step.status, step.fired) for step in await engine.trace(trip)] == [
        ("start", "open.notrunning", []),
        ("due", "open.running", ["book"]),
    ]
    await engine.do("trip", "book", booked=True)
    assert await engine.status(trip) == "closed.completed"
    assert await engine.one("select started_at - mutirao.now() > '-1 minute' from mutirao.closed")


async def test_the_clock_knows_when_the_next_is_due(engine: Engine) -> None:
    await trips(engine, hours=1)
    await later(engine, hours=2)
    ask = "select extract(epoch from next_at - mutirao.now())::float8 from mutirao.turn_clock(duty => 'starts')"
    assert 3500 < await engine.one(ask) <= 3600
    await engine.advance(hours=1, seconds=1)
    assert 3500 < await engine.one(ask) <= 3600


async def test_a_time_that_has_passed_is_now(engine: Engine) -> None:
    (trip,) = await trips(engine, hours=-1)
    assert await engine.status(trip) == "open.running"
    assert await engine.rows("select from mutirao.delayed") == []


@pytest.mark.parametrize(("state", "code"), [({"booked": 7}, "wrong_type"), ({"booked": None}, "nothing_fires")])
async def test_the_state_is_checked_when_the_call_is_made(engine: Engine, state: dict[str, Any], code: str) -> None:
    await trips(engine)
    async with engine.refused(code):
        await later(engine, **state)


async def test_never_is_no_time(engine: Engine) -> None:
    await trips(engine)
    async with engine.refused("wrong_call", "infinity"):
        await engine.rows("select mutirao.start('trip', at => 'infinity')")


async def test_a_key_holds_from_the_call_on(engine: Engine) -> None:
    await trips(engine)
    first = await engine.one("select mutirao.start('trip', key => 'A', at => mutirao.now() + '1 day')")
    assert await engine.one("select mutirao.start('trip', key => 'A')") == first
    assert await engine.status(first) == "open.notrunning"


@pytest.mark.parametrize("has_followed", [True, False])
async def test_a_definition_that_has_changed_meanwhile_makes_an_exception(engine: Engine, has_followed: bool) -> None:
    await engine.create("trip", {"city": "Recife"}, {"book": "city = 'Recife'"}, "city = 'home'")
    number = await engine.one("select mutirao.start('trip', at => mutirao.now() + '1 hour')")
    await engine.rows("update trip.wed_trig set cpred = 'city = ''Olinda''' where trname = 'book'")
    if has_followed:
        await engine.until_caught_up()
    assert await engine.status(number) == "open.notrunning"
    await engine.advance(hours=2)
    assert await engine.one(TICK) == 1
    assert await engine.status(number) == "open.exception"
    assert await engine.codes(number) == ["nothing_fires"]
    await engine.repair(number, city="Olinda")
    assert await engine.jobs(number) == {"book": "ready"}


async def test_a_state_that_is_final_when_due_ends_at_once(engine: Engine) -> None:
    (trip,) = await trips(engine)
    await engine.set(trip, booked=True)
    assert await engine.status(trip) == "open.notrunning"
    await engine.advance(hours=2)
    await engine.one(TICK)
    assert await engine.status(trip) == "closed.completed"


async def test_set_before_it_is_due_changes_the_state_and_fires_nothing(engine: Engine) -> None:
    (trip,) = await trips(engine)
    await engine.set(trip, city="Olinda")
    assert (await engine.status(trip), await engine.jobs(trip)) == ("open.notrunning", {})
    await engine.advance(hours=2)
    await engine.one(TICK)
    assert (await engine.state(trip))["city"] == "Olinda"


async def test_an_event_before_it_is_due_changes_the_state_and_fires_nothing(engine: Engine) -> None:
    await trips(engine)
    number = await engine.one("select mutirao.start('trip', key => 'A', at => mutirao.now() + '1 day')")
    outcome = await engine.one(
        "select outcome from mutirao.send('trip', 'A', '{\"city\": \"Olinda\"}', only_if => 'city is null')"
    )
    assert outcome == "done"
    assert (await engine.status(number), await engine.jobs(number)) == ("open.notrunning", {})


async def test_cancelled_before_it_is_due_it_never_starts(engine: Engine) -> None:
    (trip,) = await trips(engine)
    await engine.cancel(trip)
    assert await engine.status(trip) == "closed.aborted"
    await engine.advance(hours=2)
    assert await engine.one(TICK) == 0
    assert await engine.rows("select from mutirao.delayed") == []


async def test_resumed_too_early_it_still_waits(engine: Engine) -> None:
    (trip,) = await trips(engine)
    await engine.suspend(trip)
    assert await engine.status(trip) == "open.notrunning.suspended"
    await engine.resume(trip)
    assert (await engine.status(trip), await engine.jobs(trip)) == ("open.notrunning", {})
    await engine.advance(hours=2)
    assert await engine.one(TICK) == 1
    assert await engine.jobs(trip) == {"book": "ready"}


async def test_due_while_it_is_suspended_it_starts_when_it_is_resumed(engine: Engine) -> None:
    (trip,) = await trips(engine)
    await engine.suspend(trip)
    await engine.advance(hours=2)
    assert await engine.one(TICK) == 0
    assert (await engine.status(trip), await engine.jobs(trip)) == ("open.notrunning.suspended", {})
    await engine.resume(trip)
    assert (await engine.status(trip), await engine.jobs(trip)) == ("open.running", {"book": "ready"})


async def test_what_only_waits_for_its_time_is_not_resumed(engine: Engine) -> None:
    (trip,) = await trips(engine)
    async with engine.refused("not_suspended", "open.notrunning"):
        await engine.resume(trip)


async def test_a_turn_starts_no_more_than_its_room_and_the_oldest_first(engine: Engine) -> None:
    (second,) = await trips(engine, hours=2)
    (first,) = await later(engine, hours=1)
    await engine.advance(hours=3)
    assert await engine.one("select (done ->> 'starts')::int from mutirao.turn_clock(1, 'starts')") == 1
    assert [await engine.status(each) for each in (first, second)] == ["open.running", "open.notrunning"]


async def test_versions_of_one_turn_are_each_looked_at_by_their_own(engine: Engine) -> None:
    (old,) = await trips(engine)
    await engine.apply("trip", {"city": None, "stage": 0}, {"plan": "stage = 0"}, final="stage = 1")
    (new,) = await later(engine)
    await engine.advance(hours=2)
    assert await engine.one(TICK) == 2
    assert [await engine.jobs(each) for each in (old, new)] == [{"book": "ready"}, {"plan": "ready"}]


class Trip(Flow):
    booked: bool = False
    final = "booked"

    @task(when="not booked")
    async def book(self) -> Change:
        return {"booked": True}


async def test_a_running_clock_starts_it(database_url: str) -> None:
    async with PythonEngine(database_url) as engine:
        await engine.apply(Trip)
        number = await engine.start(Trip(), at=datetime.now(UTC) + timedelta(hours=1))
        await engine.schedules.put(Schedule("weekly", "trip", "@weekly"))
        await run_until_quiet(engine, [Trip])
        assert (await engine.instance(number)).status == "open.notrunning"
        await move_clock(engine, timedelta(days=8))
        await run_until_quiet(engine, [Trip])
        assert (await engine.instance(number)).status == "closed.completed"
        assert (await engine.schedules.get("weekly")).runs == 1
        assert len(await engine.instances("trip", status="closed.completed")) == 2


async def test_a_naive_time_is_refused(database_url: str) -> None:
    async with PythonEngine(database_url) as engine:
        await engine.apply(Trip)
        with pytest.raises(RequestError, match="a time needs its zone"):
            await engine.start(Trip(), at=datetime(2031, 1, 1))  # noqa: DTZ001 that is the point
        number = await engine.start(Trip(), at=datetime(2031, 1, 1, tzinfo=UTC))
        assert (await engine.instance(number)).due_at == datetime(2031, 1, 1, tzinfo=UTC)

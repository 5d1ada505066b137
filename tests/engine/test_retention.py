"""How long finished instances are kept: what is due goes, in chunks, and nothing else does."""

from datetime import timedelta
from typing import Any

import pytest
from driver import Engine, fresh_engine

__all__ = ["fresh_engine"]

NOTE = {"stage": {"type": "text", "searchable": True}}


@pytest.fixture
async def notes(engine: Engine) -> Engine:
    """A flow that is final from the start where its stage is done, and waits for a job otherwise."""
    await engine.apply("note", NOTE, {"write": "stage = 'new'"}, final="stage = 'done'")
    return engine


async def keep(engine: Engine, *values: Any) -> None:
    places = ", ".join(["%s"] * len(values))
    await engine.rows(f"select mutirao.keep({places})", *values)


async def drop(engine: Engine, room: int = 500) -> int:
    """One turn of a clock, when those before have rested."""
    await engine.advance(seconds=2)
    return int((await engine.one("select done from mutirao.turn_clock(%s, 'retention')", room))["retention"])


async def left(engine: Engine) -> dict[str, int]:
    tables = ("instance", "closed", "trace", "search")
    return {table: await engine.one(f"select count(*) from mutirao.{table}") for table in tables}


async def test_a_finished_instance_is_dropped_when_its_time_is_over(notes: Engine) -> None:
    await notes.start("note", stage="done")
    open_one = await notes.start("note", stage="new")
    await keep(notes, "note", timedelta(days=30))
    assert await drop(notes) == 0
    await notes.advance(days=29)
    assert await drop(notes) == 0
    await notes.advance(days=1)
    assert await drop(notes) == 1
    assert await left(notes) == {"instance": 1, "closed": 0, "trace": 1, "search": 1}
    assert await notes.status(open_one) == "open.running"


async def test_without_a_rule_everything_is_kept(notes: Engine) -> None:
    await notes.start("note", stage="done")
    await notes.advance(days=36_500)
    assert await drop(notes) == 0
    assert (await left(notes))["closed"] == 1


async def test_each_way_to_end_may_be_kept_for_another_time(notes: Engine) -> None:
    await notes.start("note", stage="done")
    stopped = await notes.start("note", stage="new")
    await notes.cancel(stopped)
    await keep(notes, "note", timedelta(days=1), "completed")
    await keep(notes, "note", timedelta(days=100), "closed.aborted")
    await notes.advance(days=2)
    assert await drop(notes) == 1
    assert await notes.status(stopped) == "closed.aborted"
    await notes.advance(days=100)
    assert await drop(notes) == 1
    assert (await left(notes))["trace"] == 0


async def test_a_rule_taken_back_keeps_what_is_there(notes: Engine) -> None:
    await notes.start("note", stage="done")
    await keep(notes, "note", timedelta(0))
    await keep(notes, "note", None)
    assert await drop(notes) == 0
    assert (await left(notes))["closed"] == 1


async def test_dropping_goes_in_chunks_and_rests_between_them(notes: Engine) -> None:
    await notes.start_many("note", [{"stage": "done"}] * 25)
    await keep(notes, "note", timedelta(0))
    assert [await drop(notes, room=10) for _ in range(4)] == [10, 10, 5, 0]


async def test_after_a_chunk_nobody_drops_more_until_all_have_rested(notes: Engine) -> None:
    await notes.start_many("note", [{"stage": "done"}] * 20)
    await keep(notes, "note", timedelta(0))
    assert await drop(notes, room=10) == 10
    assert await notes.one("select isfinite(rest_until) from mutirao.pace")
    await notes.rows("update mutirao.pace set rest_until = mutirao.now() + interval '3 seconds'")
    assert await drop(notes, room=10) == 0
    assert await drop(notes, room=10) == 10


async def test_instances_with_a_long_story_go_a_few_at_a_time(notes: Engine) -> None:
    await notes.start_many("note", [{"stage": "done"}] * 6)
    await notes.rows("update mutirao.closed set firings = 60")
    await keep(notes, "note", timedelta(0))
    assert [await drop(notes, room=10) for _ in range(4)] == [2, 2, 2, 0]


async def test_flows_that_are_due_take_turns(notes: Engine) -> None:
    await notes.apply("other", NOTE, {"write": "stage = 'new'"}, final="stage = 'done'")
    for flow in ("note", "other"):
        await notes.start_many(flow, [{"stage": "done"}] * 4)
        await keep(notes, flow, timedelta(0), "completed")
    for _ in range(2):
        assert await drop(notes, room=2) == 2
    counts = await notes.rows("select count(*) from mutirao.closed group by flow")
    assert counts == [(2,), (2,)]


async def test_a_clock_is_told_when_the_next_one_falls_due(notes: Engine) -> None:
    await notes.start("note", stage="done")
    await keep(notes, "note", timedelta(days=3))
    await drop(notes)
    due_in = "select next_at - mutirao.now() from mutirao.turn_clock(10, 'retention')"
    assert timedelta(days=2, hours=23) < await notes.one(due_in) <= timedelta(days=3)


async def test_a_period_with_months_has_a_fixed_length(notes: Engine) -> None:
    await keep(notes, "note", timedelta(days=1.5))
    assert await notes.one("select distinct period from mutirao.retention") == timedelta(days=1, hours=12)
    await notes.rows("select mutirao.keep('note', interval '2 months 1 second')")
    assert await notes.one("select distinct period::text from mutirao.retention") == "60 days 00:00:01"


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        ("keep('nowhere', '1 day')", "unknown_flow", "nowhere"),
        ("keep('note', '-1 day')", "wrong_call", "-1 day"),
        ("keep('note', '1 day', 'open.running')", "wrong_call", "completed, terminated and aborted"),
        ("keep('note', '1 day', null, 'burn')", "wrong_call", "burn"),
        ("limit_size('nowhere', 5)", "unknown_flow", "nowhere"),
        ("limit_size('note', 0)", "wrong_call", "1 byte"),
        ("limit_size('note', trace => 0)", "wrong_call", "at least one row"),
    ],
)
async def test_a_rule_that_makes_no_sense_is_refused(notes: Engine, call: str, code: str, says: str) -> None:
    async with notes.refused(code, says):
        await notes.rows(f"select mutirao.{call}")

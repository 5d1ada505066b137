"""`mutirao schedule`: add, list, show, pause, resume, drop; and clocks that are killed while they fire."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from signal import SIGKILL

import pytest
from command import answer, assert_refused, mutirao, running
from command_flows import Order

from mutirao import Change, File, Flow, task
from mutirao.database.engine import Engine
from mutirao.database.schedule import Schedule
from mutirao.testing import move_clock
from mutirao.testing.database import TestServer


@pytest.fixture
async def orders(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """A database that knows the flow `order`; on one PostgreSQL, since the functions are tested on all."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.apply(Order)
        yield url


class Plan(Flow):
    plan: File | None = None
    drawn: bool = False
    final = "drawn"

    @task(when="not drawn")
    def draw(self) -> Change:
        return {"drawn": True}


async def test_a_schedule_gives_no_files(orders: str) -> None:
    async with Engine(orders) as engine:
        await engine.apply(Plan)
    said = mutirao("schedule", "add", "nightly", "plan", "30 2 * * *", "plan=@plan.pdf", "--database", orders)
    assert_refused(said, "wrong_call")
    assert '"plan=@plan.pdf": a schedule gives no files' in said.stderr


def test_a_schedule_lives_and_goes(orders: str) -> None:
    words = ["schedule", "add", "nightly", "order", "30 2 * * *", "pieces=3", "--zone", "Europe/Berlin"]
    made = answer(*words, "--overlap", "skip", "--database", orders)
    assert (made["schedule"]["state"], made["schedule"]["overlap"]) == ({"pieces": 3}, "skip")
    assert len(made["times"]) == 5
    shown = mutirao("schedule", "show", "nightly", "--database", orders).stdout
    assert shown.count("02:30 CE") == 5
    mutirao("schedule", "pause", "nightly", "--database", orders)
    assert "paused" in mutirao("schedule", "list", "--database", orders).stdout
    mutirao("schedule", "resume", "nightly", "--database", orders)
    [listed] = answer("schedule", "list", "--database", orders)
    assert listed["next_at"] == made["times"][0]
    mutirao("schedule", "drop", "nightly", "--database", orders)
    assert answer("schedule", "list", "--database", orders) == []


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["add", "x", "order", "0 0 30 2 *"], "wrong_cron", "never fires"),
        (["add", "x", "order", "@daily", "--zone", "Berlin"], "unknown_zone", "did you mean Europe/Berlin?"),
        (["add", "x", "order", "@daily", "--missed", "some"], "wrong_call", "skip, once or all"),
        (["show", "x"], "unknown_schedule", 'there is no schedule "x"'),
        (["drop", "x"], "unknown_schedule", 'there is no schedule "x"'),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(orders: str, words: list[str], code: str, says: str) -> None:
    refused = mutirao("schedule", *words, "--database", orders)
    assert_refused(refused, code)
    assert says in refused.stderr


async def test_clock_processes_that_are_killed_start_each_time_once(orders: str) -> None:
    async with Engine(orders, upgrade=False) as engine:
        made = await engine.schedules.put(Schedule("minutely", "order", "* * * * *", missed="all"))
        first = made.next_at
        assert first is not None
        for _ in range(3):
            with running("clock", "--database", orders) as one, running("clock", "--database", orders) as other:
                for clock in (one, other):
                    await asyncio.to_thread(clock.wait_for, "ready")
                await move_clock(engine, timedelta(minutes=30))
                one.signal(SIGKILL)  # whatever it is doing
                while await _is_due(engine):
                    pass
                other.signal(SIGKILL)
        runs = (await engine.schedules.get("minutely")).runs
        started = [each.key for each in await engine.instances("order", limit=1000)]
        times = [(first + n * timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ") for n in range(runs)]
        assert runs >= 90
        assert sorted(map(str, started)) == [f"schedule/minutely/{time}" for time in times]


async def _is_due(engine: Engine) -> bool:
    async with engine.connection() as connection:
        found = await connection.execute("select from mutirao.schedule where next_at <= mutirao.now()")
        return await found.fetchone() is not None

"""The pace: what workers did, minute by minute and task by task, and how long it took them."""

import asyncio
import itertools
import time
from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection
from worker_stage import Stage, fresh_stage, until  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Failed, Flow, task
from mutirao.errors import RequestError
from mutirao.worker import worker as worker_module
from mutirao.worker.pace import Pace


class Errand(Flow):
    step: int = 0
    fails: bool = False
    final = "step = 3"

    @task(when="step = 0 and not fails")
    async def go(self) -> Change:
        return {"step": 1}

    @task(when="step = 1")
    def bring(self) -> Change:
        return {"step": 2}

    @task(when="step = 2", transactional=True)
    async def pay(self, connection: AsyncConnection[Any]) -> Change:
        await connection.execute("select 1")
        return {"step": 3}

    @task(when="step = 0 and fails")
    async def fall(self) -> Change:
        raise Failed("it rains")


async def by_minute(stage: Stage) -> list[tuple[int, int]]:
    """Done and failed, of the minutes in which there was something."""
    return [(each.done, each.failed) for each in (await stage.engine.pace()).minutes if each.done or each.failed]


async def by_task(stage: Stage) -> dict[str, tuple[int, int]]:
    return {each.task: (each.done, each.failed) for each in (await stage.engine.pace()).tasks}


async def minute_begins(stage: Stage) -> None:
    """So that what follows is done in one minute of the engine's clock. A worker counts by whole seconds."""
    [(left,)] = await stage.rows("select 62 - extract(second from mutirao.now())::float8")
    await stage.advance(seconds=left)


async def test_what_workers_did_is_known_by_minute_and_by_task_when_they_have_left(stage: Stage) -> None:
    await minute_begins(stage)
    async with stage.working(Errand, name="ann"), stage.working(Errand, name="bob"):
        await stage.engine.start_many([Errand() for _ in range(20)])
        broken = await stage.engine.start(Errand(fails=True))
        await stage.all_close("errand", 20)
        await stage.comes_to(broken, "open.exception")
    assert await by_minute(stage) == [(60, 1)]
    assert await by_task(stage) == {"go": (20, 0), "bring": (20, 0), "pay": (20, 0), "fall": (0, 1)}
    [slow, fast] = [each for each in (await stage.engine.pace()).tasks if each.task in ("fall", "go")]
    assert (slow.p50, slow.p95) == (None, None)
    assert fast.p50 is not None
    assert fast.p95 is not None
    assert 0 < fast.p50 <= fast.p95 < 60


async def test_it_is_handed_in_while_they_work(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_ANNOUNCE_EVERY", 0.01)

    async def all_counted() -> bool:
        return sum(done for done, _ in await by_minute(stage)) == 3

    async with stage.working(Errand):
        await stage.engine.start(Errand())
        await until(all_counted)


async def test_a_minute_is_one_of_the_engine_and_the_hour_moves_on(stage: Stage) -> None:
    await minute_begins(stage)
    for _ in range(2):
        async with stage.working(Errand):
            await stage.comes_to(await stage.engine.start(Errand()))
        await stage.advance(minutes=1)
    minutes = (await stage.engine.pace()).minutes
    assert [each.done for each in minutes] == [*[0] * 57, 3, 3, 0]
    assert {later.minute - each.minute for each, later in itertools.pairwise(minutes)} == {timedelta(minutes=1)}
    await stage.advance(minutes=58)
    assert await by_minute(stage) == [(3, 0)]
    await stage.advance(minutes=1)
    assert await by_minute(stage) == []
    assert await by_task(stage) == {}


async def tell(stage: Stage, *rows: tuple[int, int, int, int]) -> None:
    """As a worker does: how many seconds ago, of which task, how long it took, how many."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    await stage.rows("select mutirao.note_pace(%s::int[], %s::int[], %s::int[], %s::int[])", *columns)


async def number_of(stage: Stage, name: str) -> int:
    await stage.engine.apply(Errand)
    numbers, _ = await stage.engine.task_numbers("errand", [name])
    return numbers[name]


async def test_what_was_done_before_the_minute_began_is_of_the_minute_before(stage: Stage) -> None:
    go = await number_of(stage, "go")
    await minute_begins(stage)
    await stage.advance(seconds=3)
    await tell(stage, (1, go, 0, 1), (7, go, 0, 20), (8, go, -1, 4), (64, go, 0, 300), (66, go, 0, 4000))
    assert [(each.done, each.failed) for each in (await stage.engine.pace()).minutes[-3:]] == [
        (4000, 0),
        (320, 4),
        (1, 0),
    ]


async def test_half_of_all_took_no_longer_than_is_said(stage: Stage) -> None:
    go = await number_of(stage, "go")
    # 90 of 64 to 91 ms, in two accounts, and ten of 2 to 2.9 s
    await tell(stage, (0, go, 13, 40), (0, go, 23, 4))
    await tell(stage, (0, go, 13, 50), (0, go, 23, 6))
    now = (await stage.engine.pace()).minutes[-1]
    assert now.done == 100
    assert now.p50 == pytest.approx(0.064 + 0.0265 * 5 / 9, rel=0.01)
    assert now.p95 == pytest.approx(2.048 + 0.848 * 0.5, rel=0.01)


async def test_tales_that_cannot_be_are_left_out_or_refused(stage: Stage) -> None:
    go = await number_of(stage, "go")
    await tell(
        stage, (-1, go, 0, 1), (4000, go, 0, 1), (0, 10**6, 0, 1), (0, go, 64, 1), (0, go, -2, 1), (0, go, 0, -5)
    )
    assert await by_minute(stage) == []
    with pytest.raises(RequestError, match="must be of one length"):
        await stage.rows("select mutirao.note_pace('{1}', '{1}', '{1}', '{}')")
    with pytest.raises(RequestError, match="for a minute to a day"):
        await stage.engine.pace(timedelta(days=2))
    with pytest.raises(RequestError, match="task by task the pace is told of an hour at most, not of 01:01:00"):
        await stage.engine.pace(timedelta(minutes=61))


async def test_workers_that_hand_in_at_once_do_not_stop_each_other(stage: Stage) -> None:
    await stage.engine.apply(Errand)
    numbers, _ = await stage.engine.task_numbers("errand", ["go", "bring", "pay"])
    rows = [(age, number, 3, 1) for age in (0, 60, 120) for number in numbers.values()]
    await asyncio.gather(*(tell(stage, *rows[turn:], *rows[:turn]) for turn in range(9) for _ in range(3)))
    assert await by_task(stage) == dict.fromkeys(numbers, (27 * 3, 0))


async def test_after_a_day_a_clock_forgets_it(stage: Stage) -> None:
    go = await number_of(stage, "go")
    await tell(stage, (0, go, 0, 1))
    await stage.advance(hours=23)
    await tell(stage, (0, go, 0, 1))
    day = await stage.engine.pace(timedelta(days=1), by_task=False)
    assert len([each for each in day.minutes if each.done]) == 2
    await stage.advance(hours=1, minutes=1)
    await stage.rows("select mutirao.turn_clock(500, 'workers')")
    assert await stage.rows("select count(*) from mutirao.minute_pace where task = %s", go) == [(1,)]


def test_times_are_counted_by_how_long_they_are() -> None:
    pace = Pace()
    for seconds in (0.0, 0.0005, 0.5, 3600.0, 1e9):
        pace.count(7, taken_at=time.monotonic() - seconds)
    found = pace.take()
    assert sorted((rank, count) for _, _, rank, count in found) == [(0, 2), (18, 1), (44, 1), (63, 1)]
    assert pace.take() == []

"""Workers say that they are there: when they start, now and then, and when they stop."""

from datetime import timedelta

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from worker_stage import Stage, fresh_stage, until  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, task
from mutirao.database.record import WorkerRecord
from mutirao.testing import move_clock
from mutirao.worker import worker as worker_module


class Errand(Flow):
    done: bool = False
    final = "done"

    @task(when="not done")
    async def run(self) -> Change:
        return {"done": True}


async def test_a_worker_is_announced_before_it_is_ready_and_says_when_it_stops(stage: Stage) -> None:
    async with stage.working(Errand, name="ann"):
        [ann] = await stage.engine.workers()
        assert (ann.name, ann.alive, ann.tasks, ann.stopped_at) == ("ann", True, ["errand.run"], None)
        assert ann.host
        assert ann.program
    [ann] = await stage.engine.workers()
    assert (ann.alive, ann.stopped_at is not None) == (False, True)


async def test_it_says_so_again_and_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_ANNOUNCE_EVERY", 0.01)

    async def seen_again() -> WorkerRecord | None:
        [ann] = await stage.engine.workers()
        return ann if ann.seen_at > first.seen_at and ann.started_at == first.started_at else None

    async with stage.working(Errand):
        [first] = await stage.engine.workers()
        assert (await until(seen_again)).alive


async def test_a_silent_worker_is_taken_for_dead_and_a_day_later_forgotten(engine: Engine) -> None:
    await engine.rows("select mutirao.announce('ann', '{1}'), mutirao.announce('bob', '{1}')")
    alive = "select name from mutirao.worker w where mutirao.is_alive(w) order by 1"
    assert await engine.rows(alive) == [("ann",), ("bob",)]
    await engine.advance(seconds=31)
    await engine.rows("select mutirao.announce('bob', '{1}')")
    assert await engine.rows(alive) == [("bob",)]
    await engine.advance(hours=23, minutes=59, seconds=30)
    assert await engine.one("select done -> 'workers' from mutirao.turn_clock()") == 1
    assert await engine.rows("select name from mutirao.worker") == [("bob",)]


async def test_an_announcement_without_a_name_or_tasks_is_refused(engine: Engine) -> None:
    async with engine.refused("wrong_call", "a worker announces its name and the numbers of its tasks"):
        await engine.rows("select mutirao.announce('ann', null)")


async def test_why_tells_that_the_last_worker_of_a_task_has_gone(stage: Stage) -> None:
    async with stage.working(Errand, name="ann"):
        pass
    number = await stage.engine.start(Errand())
    await move_clock(stage.engine, timedelta(minutes=5))
    [run] = await stage.engine.why(number, "run")
    assert run.answer.endswith("no worker that does it is alive; the last one, ann, stopped 5 min ago")
    assert run.condition is not None
    assert (run.stands, run.condition.text, run.condition.values) == ("ready", "not done", {"done": False})
    assert run.fired is not None
    assert (run.fired.changes, run.fired.times) == ({"done": {"before": None, "after": False}}, 1)

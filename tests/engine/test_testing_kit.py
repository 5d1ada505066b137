"""The kit for users' tests: a throw-away engine, a clock to move, and running until all is quiet."""

import time
from datetime import timedelta
from pathlib import Path

import pytest
from worker_stage import Stage, fresh_stage  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, FlowBuilder, FlowError, Job, RequestError, task
from mutirao.testing import move_clock, run_until_quiet, throwaway_engine
from mutirao.testing.database import throwaway_server


class Trip(Flow):
    hotel: str | None = None
    flight: str | None = None
    final = "hotel is not null and flight is not null"

    @task(when="hotel is null")
    async def book_hotel(self) -> Change:
        return {"hotel": "Ritz"}

    @task(when="flight is null and hotel is not null")
    def book_flight(self) -> Change:
        return {"flight": "LH 500"}


async def test_throwaway_engine_is_whole_and_quick(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    with throwaway_server():
        async with throwaway_engine():
            pass  # the first one makes the template
        quickest = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            async with throwaway_engine() as engine:
                quickest = min(quickest, time.perf_counter() - began)
                await engine.apply(Trip)
                trip = await engine.start(Trip())
                await run_until_quiet(engine, [Trip])
                assert (await engine.instance(trip)).status == "closed.completed"
    assert quickest < 1


async def test_it_runs_until_everything_is_done(stage: Stage) -> None:
    await stage.engine.apply(Trip)
    await stage.engine.start_many([Trip() for _ in range(50)])
    await run_until_quiet(stage.engine, [Trip])
    [flow] = await stage.engine.flows("trip")
    assert (flow.open, flow.closed) == (0, 50)


async def test_quiet_engine_is_left_at_once(stage: Stage) -> None:
    await run_until_quiet(stage.engine, [Trip])
    await run_until_quiet(stage.engine, [Trip])


class Shaky(Flow):
    result: int | None = None
    tries: int = 3
    final = "result is not null"

    @task(when="result is null", retries=3, backoff=timedelta(minutes=2))
    async def work(self, job: Job) -> Change:
        if job.retries_used < self.tries:
            raise RuntimeError(f"try {job.retries_used + 1} failed")
        return {"result": job.retries_used}


async def test_retry_that_waits_is_quiet(stage: Stage) -> None:
    await stage.engine.apply(Shaky)
    started = await stage.engine.start(Shaky())
    await run_until_quiet(stage.engine, [Shaky])
    [job] = await stage.engine.jobs(started)
    assert (job.status, job.failures) == ("waiting", 1)
    await move_clock(stage.engine, timedelta(minutes=5))
    await run_until_quiet(stage.engine, [Shaky])
    [job] = await stage.engine.jobs(started)
    assert (job.status, job.failures) == ("waiting", 2)


async def test_clock_is_moved_through_retries_on_request(stage: Stage) -> None:
    await stage.engine.apply(Shaky)
    started = await stage.engine.start(Shaky())
    await run_until_quiet(stage.engine, [Shaky], through_retries=True)
    assert (await stage.engine.instance(started)).state["result"] == 3


async def test_exception_is_quiet(stage: Stage) -> None:
    await stage.engine.apply(Shaky)
    started = await stage.engine.start(Shaky(tries=9))
    await run_until_quiet(stage.engine, [Shaky], through_retries=True)
    assert (await stage.engine.instance(started)).status == "open.exception"


async def test_what_is_stuck_is_told(stage: Stage) -> None:
    building = FlowBuilder("manual").attribute("done", "boolean", default=False).task("sign", when="not done")
    manual = building.final("done").build()
    await stage.engine.apply(manual)
    started = await stage.engine.start_many([manual() for _ in range(12)])
    with pytest.raises(RequestError) as refusal:
        await run_until_quiet(stage.engine, [manual, Trip], patience=timedelta(milliseconds=300))
    said = str(refusal.value).splitlines()
    assert refusal.value.code == "not_quiet"
    assert said[0].startswith("not_quiet: not quiet after 0.3 s")
    assert f"of instance {started[0]}, task sign of flow manual: ready, and none of the flows given" in said[1]
    assert said[-1].strip() == "and so on: 12 jobs in all"


async def test_what_still_runs_is_told(stage: Stage) -> None:
    class Endless(Flow):
        n: int = 0
        final = "n < 0"

        @task(when="n >= 0")
        async def again(self) -> Change:
            return {"n": self.n + 1}

    await stage.engine.apply(Endless)
    await stage.engine.start(Endless())
    with pytest.raises(RequestError, match="attempts went well and 0 failed; what is left:\n  job"):
        await run_until_quiet(stage.engine, [Endless], patience=timedelta(milliseconds=300))


async def test_flow_that_is_refused_says_so(stage: Stage) -> None:
    class Wrong(Flow):
        n: int = 0
        final = "m > 0"

        @task(when="n = 0")
        async def work(self) -> Change:
            return {"n": 1}

    with pytest.raises(FlowError, match='"m"'):
        await run_until_quiet(stage.engine, [Wrong])


async def test_live_flow_is_not_quiet_before_its_instances_follow(stage: Stage) -> None:
    await stage.do("select mutirao.create_flow('live')")
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("insert into live.wed_attr (aname) values ('a'), ('b')")
        await connection.execute("insert into live.wed_trig (trname, cpred) values ('ta', 'a is null')")
        await connection.execute("insert into live.wed_trig (cpred, cfinal) values ('a = b', true)")
    [(wid,)] = await stage.rows("insert into live.wed_flow default values returning wid")
    await stage.do("insert into live.wed_trig (trname, cpred) values ('tb', 'b is null')")
    with pytest.raises(RequestError, match="not_quiet"):
        await run_until_quiet(stage.engine, [Trip], patience=timedelta(seconds=2))
    assert {job.task for job in await stage.engine.jobs(wid)} == {"ta", "tb"}

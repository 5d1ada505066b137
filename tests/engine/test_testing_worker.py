"""The kit for users' tests: a worker that runs in the test, and fails, waits and dies on demand."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection, Connection
from worker_stage import Stage, stage_on, until

from mutirao import Change, Flow, Job, RequestError, handles, task
from mutirao.testing import (
    crashes,
    expect,
    fails,
    fails_for_good,
    pauses,
    replaced,
    run_until_quiet,
    times_out,
    working,
)
from mutirao.testing.stand_in import Moment

SHORT = timedelta(milliseconds=300)
charged: list[int] = []


class Order(Flow):
    item: str = "book"
    reserved: bool = False
    paid: bool = False
    note: str | None = None
    final = "paid"

    @task(when="not reserved", backoff=timedelta(minutes=2))
    async def reserve(self) -> Change:
        return {"reserved": True}

    @task(when="reserved and not paid", timeout=timedelta(hours=1))
    async def charge(self, job: Job) -> Change:
        charged.append(job.instance_id)
        return {"paid": True}


class Blocking(Flow):
    """The same with functions that block."""

    reserved: bool = False
    paid: bool = False
    final = "paid"

    @task(when="not reserved")
    def reserve(self) -> Change:
        return {"reserved": True}

    @task(when="reserved and not paid", timeout=timedelta(hours=1))
    def charge(self) -> Change:
        charged.append(0)
        return {"paid": True}


class Transactional(Flow):
    reserved: bool = False
    paid: bool = False
    final = "paid"

    @task(when="not reserved", transactional=True)
    def reserve(self, connection: Connection[Any]) -> Change:
        connection.execute("insert into reservation default values")
        return {"reserved": True}

    @task(when="reserved and not paid", transactional=True, timeout=timedelta(hours=1))
    async def charge(self, connection: AsyncConnection[Any]) -> Change:
        await connection.execute("insert into payment default values")
        charged.append(0)
        return {"paid": True}


FLOWS: list[type[Flow]] = [Order, Blocking, Transactional]
each_kind = pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    charged.clear()
    async with stage_on(database_url) as made:
        await made.do("create table reservation (at timestamptz default now())")
        await made.do("create table payment (at timestamptz default now())")
        for flow in FLOWS:
            await made.engine.apply(flow)
        yield made


async def test_worker_works_beside_the_test(stage: Stage) -> None:
    async with working(stage.engine, [Order]) as worker:
        order = await stage.engine.start(Order())
        found = await worker.until(order)
        assert (found.status, found.state["paid"]) == ("closed.completed", True)
        late = await stage.engine.start(Order(item="pen"))
        await worker.until(late, "closed", item="pen", paid=True)
    assert {row.writer for row in await stage.engine.trace(order) if row.kind == "finish"} == {"worker"}


@each_kind
async def test_failures_use_up_retries(stage: Stage, flow: type[Flow]) -> None:
    order = await stage.engine.start(flow())
    failing = fails("charge", times=2, error=ValueError("card unknown"))
    await run_until_quiet(stage.engine, [flow], failing, through_retries=True)
    await expect(stage.engine, order).completed().tried("charge", 3).ran_once("charge")
    assert len(charged) == 1
    notes = [row.note for row in await stage.engine.trace(order) if row.kind == "retry"]
    assert [(note or {})["error"] for note in notes] == ["ValueError: card unknown"] * 2


async def test_failure_for_good_is_an_exception_at_once(stage: Stage) -> None:
    order = await stage.engine.start(Order())
    await run_until_quiet(stage.engine, [Order], fails_for_good(Order.charge, "card stolen"))
    await expect(stage.engine, order).is_exception("task_failed").failed(Order.charge).tried("charge", 1)
    assert not charged


@each_kind
async def test_timeout_takes_no_time(stage: Stage, flow: type[Flow]) -> None:
    order = await stage.engine.start(flow())
    await run_until_quiet(stage.engine, [flow], times_out("charge"), through_retries=True)
    await expect(stage.engine, order).completed().tried("charge", 2)
    [note] = [row.note for row in await stage.engine.trace(order) if row.kind == "retry"]
    assert note is not None
    assert (note["code"], note["error"]) == ("timeout", "did not end within its timeout of 3600 s")


async def test_task_without_a_timeout_cannot_time_out(stage: Stage) -> None:
    order = await stage.engine.start(Order())
    await run_until_quiet(stage.engine, [Order], times_out("reserve"))
    [note] = [row.note for row in await stage.engine.trace(order) if row.kind == "retry"]
    assert 'times_out("reserve"): the task has no timeout' in (note or {})["error"]


# How often the function runs, and how often its transaction is committed.
DEATHS: list[tuple[Moment, int]] = [("before", 1), ("after", 2), ("reported", 1)]


@each_kind
@pytest.mark.parametrize(("when", "runs"), DEATHS)
async def test_dead_worker_is_followed_by_another_when_its_lease_ends(
    stage: Stage, flow: type[Flow], when: Moment, runs: int
) -> None:
    crash = crashes("charge", when)
    async with working(stage.engine, [flow], crash) as worker:
        order = await stage.engine.start(flow())
        await crash.happened()
        if when == "reported":
            await expect(stage.engine, order).completed()
        else:
            [job] = await stage.engine.jobs(order)
            assert (job.task, job.status, job.worker) == ("charge", "running", "worker")
            await expect(stage.engine, order).waits_for("charge").never_ran("charge")
            await stage.advance(minutes=2)
        await worker.until(order, "closed.completed")
        assert worker.deaths == 1
        later = await stage.engine.start(flow())
        await worker.until(later, "closed.completed")
    await expect(stage.engine, order).ran_once("charge")
    if flow is not Transactional:
        assert {row.writer for row in await stage.engine.trace(later) if row.kind == "finish"} == {"worker 2"}
    assert len(charged) == runs + 1
    if flow is Transactional:
        assert await stage.rows("select count(*) from payment") == [(2,)]


async def test_quiet_comes_after_the_leases_of_the_dead(stage: Stage) -> None:
    orders = await stage.engine.start_many([Order() for _ in range(20)])
    await run_until_quiet(stage.engine, [Order], crashes("charge", "after", times=3))
    for order in orders:
        await expect(stage.engine, order).completed().ran_once("charge")
    assert len(charged) >= 23


async def test_connections_of_the_dead_are_gone(stage: Stage) -> None:
    crash = crashes("charge")
    query = """select count(*) = 0 from pg_stat_activity
        where datname = current_database() and application_name in ('worker lane 0', 'worker lane 1', 'worker listens')"""

    async def all_gone() -> bool:
        return bool((await stage.rows(query))[0][0])

    async with working(stage.engine, [Order], crash):
        await stage.engine.start(Order())
        await crash.happened()
        await until(all_gone)


@each_kind
async def test_paused_task_waits_at_its_gate(stage: Stage, flow: type[Flow]) -> None:
    gate = pauses("charge")
    async with working(stage.engine, [flow], gate) as worker:
        order = await stage.engine.start(flow())
        await gate.reached()
        assert not charged
        await expect(stage.engine, order).waits_for("charge")
        gate.open()
        await worker.until(order, "closed.completed")


async def test_job_left_at_a_gate_is_given_back(stage: Stage) -> None:
    gate = pauses("charge")
    async with working(stage.engine, [Blocking], gate):
        order = await stage.engine.start(Blocking())
        await gate.reached()
    [job] = await stage.engine.jobs(order)
    assert (job.task, job.status, charged) == ("charge", "ready", [])


async def test_function_can_be_replaced(stage: Stage) -> None:
    charge = replaced(Order.charge, returns={"paid": True, "note": "by the test"})
    order = await stage.engine.start(Order(item="pen"))
    await run_until_quiet(stage.engine, [Order], charge)
    await expect(stage.engine, order).completed().state(note="by the test").wrote("charge", paid=True)
    assert [call.item for call in charge.calls] == ["pen"]
    assert not charged


async def test_replacement_may_look_at_the_state(stage: Stage) -> None:
    charge = replaced("charge", lambda state: {"paid": True, "note": f"for {state.item}"})
    order = await stage.engine.start(Order(item="pen"))
    await run_until_quiet(stage.engine, [Order], charge)
    await expect(stage.engine, order).state(note="for pen")


async def test_stand_ins_of_one_task_act_in_order(stage: Stage) -> None:
    order = await stage.engine.start(Order())
    gate, failing, charge = pauses("charge"), fails("charge"), replaced("charge", returns={"paid": True})
    async with working(stage.engine, [Order], gate, failing, charge) as worker:
        await gate.reached()
        assert not failing.acted
        gate.open()
        await worker.quiet(through_retries=True)
    await expect(stage.engine, order).completed().tried("charge", 2)
    assert (len(charge.calls), charged) == (1, [])


async def test_function_of_a_flow_in_sql_can_be_stood_in_for(stage: Stage) -> None:
    @handles("live", "ta")
    def work(_: Any) -> Change:
        return {"a": "1"}

    await stage.do("select mutirao.create_flow('live')")
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("insert into live.wed_attr (aname) values ('a')")
        await connection.execute("insert into live.wed_trig (trname, cpred) values ('ta', 'a is null')")
        await connection.execute("insert into live.wed_trig (cpred, cfinal) values ('a is not null', true)")
    [number] = await stage.engine.start_named("live", [{}])
    await run_until_quiet(stage.engine, [work], fails("live.ta"), through_retries=True)
    await expect(stage.engine, number).completed().tried("ta", 2)


# By hand


@each_kind
async def test_jobs_are_done_one_by_one_by_hand(stage: Stage, flow: type[Flow]) -> None:
    async with working(stage.engine, [flow], by_hand=True) as worker:
        one, other = await stage.engine.start_many([flow(), flow()])
        first = await worker.do("reserve")
        assert (first.instance_id, first.task) == (one, "reserve")
        await expect(stage.engine, one).ran_exactly("reserve").waits_for("charge")
        await expect(stage.engine, other).ran_exactly().waits_for("reserve")
        await worker.do("charge")
        await expect(stage.engine, one).completed()
        await worker.do("reserve")
        await worker.do("charge")
        await expect(stage.engine, other).completed()


async def test_hand_that_finds_nothing_to_do_tells_the_story(stage: Stage) -> None:
    async with working(stage.engine, [Order], by_hand=True) as worker:
        await stage.engine.start(Order())
        with pytest.raises(
            AssertionError, match='do\\("charge"\\): no job of this task is ready\n\ninstance 1 of order'
        ):
            await worker.do("charge")


async def test_hands_may_interleave(stage: Stage) -> None:
    gate = pauses("reserve")
    async with working(stage.engine, [Order], gate, by_hand=True) as worker:
        one, _ = await stage.engine.start_many([Order(), Order()])
        doing = asyncio.create_task(worker.do("reserve"))
        await gate.reached()
        await stage.engine.set(one, {"note": "while it runs"})
        gate.open()
        await doing
        await expect(stage.engine, one).state(reserved=True, note="while it runs")


async def test_hand_that_dies_is_followed_by_another(stage: Stage) -> None:
    crash = crashes("charge", "after")
    async with working(stage.engine, [Order], crash, by_hand=True) as worker:
        order = await stage.engine.start(Order())
        await worker.do("reserve")
        await worker.do("charge")
        await crash.happened()
        await expect(stage.engine, order).waits_for("charge")
        await stage.advance(minutes=2)
        await worker.do("charge")
        await expect(stage.engine, order).completed()
    assert len(charged) == 2


# Misuse


async def test_unknown_task_is_refused_with_what_was_meant(stage: Stage) -> None:
    with pytest.raises(RequestError, match='has a task "chrage"; did you mean "charge"'):
        await run_until_quiet(stage.engine, [Order], fails("chrage"))


async def test_task_of_several_flows_must_be_named_with_its_flow(stage: Stage) -> None:
    with pytest.raises(RequestError, match=r'say "order.charge" or "blocking.charge"'):
        await run_until_quiet(stage.engine, [Order, Blocking], fails("charge"))


@pytest.mark.parametrize("times", [0, -1])
async def test_stand_in_acts_at_least_once(times: int) -> None:
    with pytest.raises(RequestError, match="times is 1 or more"):
        fails("charge", times=times)


async def test_worker_dies_at_a_moment_that_there_is() -> None:
    with pytest.raises(RequestError, match='when is "before", "after" or "reported"'):
        crashes("charge", "during")  # type: ignore[arg-type]


async def test_stand_in_that_never_acted_fails_the_test(stage: Stage) -> None:
    await stage.engine.start(Order(reserved=True))
    with pytest.raises(AssertionError, match=r'crashes\("reserve"\) never acted.*\n\ninstance 1 of order is closed'):
        await run_until_quiet(stage.engine, [Order], crashes("reserve"))
    await stage.engine.start(Order())
    with pytest.raises(AssertionError, match=r'fails\("reserve", times=9\) acted only 4 times'):
        await run_until_quiet(stage.engine, [Order], fails("reserve", times=9), through_retries=True)


async def test_error_of_the_test_goes_before_that_of_a_stand_in(stage: Stage) -> None:
    with pytest.raises(ZeroDivisionError):
        async with working(stage.engine, [Order], crashes("reserve")):
            raise ZeroDivisionError


async def test_what_cannot_come_any_more_is_not_waited_for(stage: Stage) -> None:
    async with working(stage.engine, [Order], fails("reserve")) as worker:
        order = await stage.engine.start(Order())
        with pytest.raises(AssertionError, match="waited in vain for paid = True: nothing is left to do\n"):
            await worker.until(order, paid=True)
        await stage.advance(minutes=9)
        await worker.until(order)
        with pytest.raises(AssertionError, match=r"waited in vain for closed.aborted: it has ended otherwise\n"):
            await worker.until(order, "closed.aborted")


async def test_patience_ends(stage: Stage) -> None:
    gate = pauses("charge")
    async with working(stage.engine, [Order], gate) as worker:
        order = await stage.engine.start(Order())
        await gate.reached()
        with pytest.raises(AssertionError, match=r"waited in vain for an end: 0.3 s are over\n") as told:
            await worker.until(order, patience=SHORT)
        assert "now  charge is running at worker" in str(told.value)


async def test_waiting_for_what_there_is_not_is_refused(stage: Stage) -> None:
    async with working(stage.engine, [Order]) as worker:
        order = await stage.engine.start(Order())
        with pytest.raises(RequestError, match='no attribute "payd"; did you mean "paid"'):
            await worker.until(order, payd=True)
        with pytest.raises(RequestError, match='no status "completed"'):
            await worker.until(order, "completed")
        with pytest.raises(RequestError, match="by_hand=True"):
            await worker.do("charge")


async def test_gate_and_crash_that_nobody_reaches_say_so() -> None:
    with pytest.raises(AssertionError, match=r'pauses\("charge"\): nobody came to the gate in 0.3 s'):
        await pauses("charge").reached(SHORT)
    with pytest.raises(AssertionError, match=r'crashes\("charge"\): no worker has died of it in 0.3 s'):
        await crashes("charge").happened(SHORT)

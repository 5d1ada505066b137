"""The kit for users' tests: what is expected of an instance, and the story that is told when it is not so."""

import gc
import re
from collections.abc import AsyncIterator
from datetime import date, timedelta
from decimal import Decimal

import pytest
from worker_stage import Stage, stage_on

from mutirao import Change, Flow, RequestError, task
from mutirao.testing import expect, fails, fails_for_good, run_until_quiet
from mutirao.testing.expectation import Expectation


class Purchase(Flow):
    item: str = "book"
    price: Decimal = Decimal("12.50")
    due: date = date(2030, 1, 31)
    approved: bool | None = None
    paid: bool = False
    final = "paid"

    @task(when="approved is null", retries=1, backoff=timedelta(minutes=1))
    async def approve(self) -> Change:
        return {"approved": True}

    @task(when="approved and not paid")
    async def pay(self) -> Change:
        return {"paid": True}

    @task(when="not approved")
    async def send_back(self) -> Change:
        return {"paid": True}


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with stage_on(database_url) as made:
        await made.engine.apply(Purchase)
        yield made


@pytest.fixture
async def done(stage: Stage) -> Expectation:
    """Of a purchase that went well, after one failure."""
    purchase = await stage.engine.start(Purchase())
    await run_until_quiet(stage.engine, [Purchase], fails("approve"), through_retries=True)
    return expect(stage.engine, purchase)


@pytest.fixture
async def stuck(stage: Stage) -> Expectation:
    """Of one whose payment failed for good."""
    purchase = await stage.engine.start(Purchase(item="pen"))
    await run_until_quiet(stage.engine, [Purchase], fails_for_good("pay", "no money"))
    return expect(stage.engine, purchase)


async def test_what_is_so_passes(done: Expectation) -> None:
    await (
        done.completed()
        .has_status("closed")
        .ran("approve", Purchase.pay)
        .ran("pay")
        .ran_exactly("approve", "pay")
        .ran_once("approve", "pay")
        .never_ran("send_back")
        .tried("approve", 2)
        .state(paid=True, price=Decimal("12.5"), due=date(2030, 1, 31))
        .wrote("approve", approved=True, paid=False)
    )


async def test_exception_passes(stuck: Expectation) -> None:
    await stuck.is_exception().is_exception("task_failed").failed("pay").ran_exactly("approve").tried("pay", 1)


async def test_what_waits_passes(stage: Stage) -> None:
    await expect(stage.engine, await stage.engine.start(Purchase())).waits_for("approve").has_status("open.running")


STUCK = """\
instance 1 of purchase is open.exception, not closed.completed
  and did not run pay; it ran approve

instance 1 of purchase is open.exception
      0 ms  started, by test
              item = pen
              price = 12.50
              due = 2030-01-31
              paid = false
              sets off approve
      0 ms  approve done, by worker
              approved = true
              sets off pay
      0 ms  pay failed for good, by worker
              Failed: no money
              is open.exception
   because  task_failed: pay, job 2: Failed: no money
       why  send_back has not fired: not approved is false (approved = true)
       why  the final condition does not hold: paid is false (paid = false)
     state  item = pen, price = 12.50, due = 2030-01-31, approved = true, paid = false"""


async def said(expectation: Expectation) -> str:
    with pytest.raises(AssertionError) as told:
        await expectation
    return str(told.value).partition("\n\n")[0]


async def test_what_is_not_so_is_said(done: Expectation, stage: Stage) -> None:
    number = 1

    def again() -> Expectation:
        return expect(stage.engine, number)

    await done.completed()
    of = "instance 1 of purchase"
    assert await said(again().has_status("open")) == f"{of} is closed.completed, not open"
    assert await said(again().is_exception()) == f"{of} is closed.completed, not an exception"
    assert await said(again().ran("send_back")) == f"{of} did not run send_back; it ran approve, pay"
    assert await said(again().ran("pay", "approve")) == f"{of} did not run approve after pay; it ran approve, pay"
    assert await said(again().ran_exactly("pay")) == f"{of} ran approve, pay, not exactly pay"
    assert await said(again().ran_once("pay", "send_back")) == f"{of} ran send_back never, not once"
    assert await said(again().never_ran("pay", "approve")) == f"{of} tried pay once, approve twice, not never"
    assert await said(again().tried("approve", 3)) == f"{of} tried approve twice, not 3 times"
    assert await said(again().failed("pay")) == f"{of} pay did not fail for good"
    assert await said(again().waits_for("pay")) == f"{of} does not wait for pay; it waits for nothing"
    assert await said(again().state(paid=False, item="pen")) == f"{of} has paid = true, not false; item = book, not pen"
    assert await said(again().wrote("pay", item="pen")) == f"{of} had after pay item = book, not pen"
    assert await said(again().wrote("send_back", paid=True)) == f"{of} did not run send_back"


async def test_other_reason_is_said(stuck: Expectation) -> None:
    assert (
        await said(stuck.is_exception("runaway"))
        == "instance 1 of purchase is an exception for task_failed, not for runaway"
    )


async def test_all_that_is_not_so_is_told_with_the_story(stuck: Expectation) -> None:
    with pytest.raises(AssertionError) as told:
        await stuck.completed().ran("pay").state(item="pen").ran_once("approve")
    assert re.sub(r"  +\d+ ms", "      0 ms", str(told.value)).splitlines() == STUCK.splitlines()


async def test_waiting_retry_is_told(stage: Stage) -> None:
    purchase = await stage.engine.start(Purchase())
    await run_until_quiet(stage.engine, [Purchase], fails("approve"))
    with pytest.raises(
        AssertionError, match=r"now  approve is tried again in [\d.]+ \w+, try 2 of 2, after: RuntimeError"
    ):
        await expect(stage.engine, purchase).completed()


async def test_long_story_is_cut(stage: Stage) -> None:
    purchase = await stage.engine.start(Purchase())
    for number in range(60):
        await stage.engine.set(purchase, {"item": f"item {number}"})
    with pytest.raises(AssertionError, match="…  21 steps before these\n"):
        await expect(stage.engine, purchase).completed()


async def test_unknown_words_are_refused(stage: Stage) -> None:
    purchase = await stage.engine.start(Purchase())
    with pytest.raises(RequestError, match='no task "aprove"; did you mean "approve"'):
        await expect(stage.engine, purchase).never_ran("aprove")
    with pytest.raises(RequestError, match='no attribute "payd"; did you mean "paid"'):
        await expect(stage.engine, purchase).state(payd=False)
    with pytest.raises(RequestError, match='no status "completed"'):
        expect(stage.engine, purchase).has_status("completed")
    with pytest.raises(RequestError, match="there is no instance 99"):
        await expect(stage.engine, 99).completed()


async def test_expectation_that_is_not_awaited_warns(stage: Stage) -> None:
    def forget() -> None:
        expect(stage.engine, 1).completed()
        gc.collect()

    with pytest.warns(RuntimeWarning, match="was never awaited: nothing was checked"):
        forget()

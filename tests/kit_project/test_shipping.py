"""Async tests, without a word to any plugin that runs them."""

import asyncio
from datetime import timedelta

import pytest
from shipping import Shipment

from mutirao import Engine
from mutirao.testing import (
    crashes,
    expect,
    fails,
    fails_for_good,
    move_clock,
    pauses,
    replaced,
    run_until_quiet,
    times_out,
    working,
)

pytestmark = pytest.mark.mutirao(flows=[Shipment])


def test_packing_says_so() -> None:
    assert asyncio.run(Shipment(customer="a library").pack()) == {"packed": True}


async def test_shipment_is_sent(mutirao_engine: Engine) -> None:
    shipment = await mutirao_engine.start(Shipment(customer="a library", weight=3))
    await run_until_quiet(mutirao_engine, [Shipment])
    await expect(mutirao_engine, shipment).completed().ran("pack", "send").state(tracking="3 kg for a library")


async def test_card_is_charged_again_after_five_minutes(mutirao_engine: Engine) -> None:
    async with working(mutirao_engine, [Shipment], fails("charge_card", error="no connection")) as worker:
        shipment = await mutirao_engine.start(Shipment(customer="a library"))
        await worker.quiet()
        await expect(mutirao_engine, shipment).waits_for("charge_card").ran_exactly("pack")
        await move_clock(
            mutirao_engine, timedelta(minutes=8)
        )  # a wait is drawn from half to one and a half of its length
        await worker.until(shipment, "closed.completed")


async def test_slow_bank_is_asked_again(mutirao_engine: Engine) -> None:
    shipment = await mutirao_engine.start(Shipment(customer="a library"))
    await run_until_quiet(mutirao_engine, [Shipment], times_out("charge_card", times=2), through_retries=True)
    await expect(mutirao_engine, shipment).completed().tried("charge_card", 3)


async def test_refused_card_needs_a_person(mutirao_engine: Engine) -> None:
    shipment = await mutirao_engine.start(Shipment(customer="a library"))
    await run_until_quiet(mutirao_engine, [Shipment], fails_for_good("charge_card", "card refused"))
    await expect(mutirao_engine, shipment).is_exception("task_failed").never_ran("send")


async def test_card_is_charged_once_more_when_the_worker_dies_in_between(mutirao_engine: Engine) -> None:
    crash, card = crashes("charge_card", "after"), replaced("charge_card", returns={"payment": "by the test"})
    async with working(mutirao_engine, [Shipment], crash, card) as worker:
        shipment = await mutirao_engine.start(Shipment(customer="a library"))
        await crash.happened()
        await move_clock(mutirao_engine, timedelta(minutes=2))
        await worker.until(shipment, "closed.completed")
    await expect(mutirao_engine, shipment).ran_once("charge_card")
    assert len(card.calls) == 2


async def test_weight_may_change_while_the_card_is_charged(mutirao_engine: Engine) -> None:
    bank = pauses("charge_card")
    async with working(mutirao_engine, [Shipment], bank) as worker:
        shipment = await mutirao_engine.start(Shipment(customer="a library"))
        await bank.reached()
        await mutirao_engine.set(shipment, {"weight": 5})
        bank.open()
        await worker.until(shipment, "closed.completed", tracking="5 kg for a library")


async def test_packing_and_charging_go_in_any_order(mutirao_engine: Engine) -> None:
    async with working(mutirao_engine, [Shipment], by_hand=True) as worker:
        shipment = await mutirao_engine.start(Shipment(customer="a library"))
        await worker.do("charge_card")
        await worker.do("pack")
        await worker.do("send")
    await expect(mutirao_engine, shipment).ran_exactly("charge_card", "pack", "send")

"""Tests that fail, on purpose: what they print is compared with what somebody needs who reads it."""

import pytest
from shipping import Shipment

from mutirao import Engine
from mutirao.testing import crashes, expect, run_until_quiet, working

pytestmark = pytest.mark.mutirao(flows=[Shipment])


async def test_expected_otherwise(mutirao_engine: Engine) -> None:
    shipment = await mutirao_engine.start(Shipment(customer="nobody", packed=True))
    await run_until_quiet(mutirao_engine, [Shipment])
    await expect(mutirao_engine, shipment).completed().ran("charge_card", "send")


async def test_plain_assertion(mutirao_engine: Engine) -> None:
    shipment = await mutirao_engine.start(Shipment(customer="a library", packed=True))
    await run_until_quiet(mutirao_engine, [Shipment])
    assert (await mutirao_engine.instance(shipment)).state["tracking"] == "by air"


async def test_crash_that_never_came(mutirao_engine: Engine) -> None:
    await mutirao_engine.start(Shipment(customer="a library", packed=True, payment="cash"))
    async with working(mutirao_engine, [Shipment], crashes("pack")) as worker:
        await worker.quiet()


async def test_wrong_name(mutirao_engine: Engine) -> None:
    await run_until_quiet(mutirao_engine, [Shipment], crashes("charge_cart"))

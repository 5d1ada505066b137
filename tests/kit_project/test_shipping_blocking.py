"""The same for somebody who writes no async tests."""

from datetime import timedelta

import pytest
from shipping import Shipment

from mutirao import Engine
from mutirao.database.bridge import Wait
from mutirao.testing import crashes, expect, move_clock, run_until_quiet, working


@pytest.mark.mutirao(flows=[Shipment])
def test_shipment_is_sent(mutirao_engine: Engine, mutirao_wait: Wait) -> None:
    shipment = mutirao_wait(mutirao_engine.start(Shipment(customer="a library")))
    mutirao_wait(run_until_quiet(mutirao_engine, [Shipment]))
    mutirao_wait(expect(mutirao_engine, shipment).completed())


def test_another_worker_takes_over(mutirao_engine: Engine, mutirao_wait: Wait) -> None:
    crash = crashes("send")
    with mutirao_wait.inside(working(mutirao_engine, [Shipment], crash)) as worker:
        shipment = mutirao_wait(mutirao_engine.start(Shipment(customer="a library")))
        mutirao_wait(crash.happened())
        mutirao_wait(move_clock(mutirao_engine, timedelta(minutes=2)))
        mutirao_wait(worker.until(shipment, "closed.completed"))

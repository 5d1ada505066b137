"""Starting many instances by one call of the Python engine, which makes several of it."""

from collections.abc import AsyncIterator

import pytest

from mutirao import Change, Engine, Flow, RequestError, task
from mutirao.database import engine as module


class Counted(Flow):
    n: int
    final = "n > 100"

    @task(when="n >= 0")
    async def count(self) -> Change:
        return {"n": 101}


@pytest.fixture
async def engine(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setattr(module, "START_BATCH", 3)
    async with Engine(database_url) as made:
        await made.apply(Counted)
        yield made


async def test_numbers_come_back_in_the_order_of_the_states(engine: Engine) -> None:
    started = await engine.start_many(Counted(n=n) for n in range(20))
    assert [(await engine.instance(number)).state["n"] for number in started] == list(range(20))
    named = await engine.start_named("counted", ({"n": n} for n in range(20)))
    assert [(await engine.instance(number)).state["n"] for number in named] == list(range(20))


async def test_a_state_that_is_refused_takes_its_batch_with_it_and_stops_the_rest(engine: Engine) -> None:
    with pytest.raises(RequestError) as refusal:
        await engine.start_many(Counted(n=-1 if n == 4 else n) for n in range(90))
    assert refusal.value.code == "nothing_fires"
    there = {instance.state["n"] for instance in await engine.instances(limit=100)}
    assert there.isdisjoint({3, 4, 5})
    assert len(there) < 80
    assert all({n, n + 1, n + 2} <= there or there.isdisjoint({n, n + 1, n + 2}) for n in range(0, 90, 3))


async def test_states_of_two_flows_in_one_call_are_refused(engine: Engine) -> None:
    class Other(Counted):
        pass

    with pytest.raises(RequestError, match='one flow: got "counted" and "other"'):
        await engine.start_many([Counted(n=1), Other(n=1)])


async def test_a_version_that_is_not_there_is_named(engine: Engine) -> None:
    with pytest.raises(RequestError, match='flow "counted" has no version 7; its newest is 1') as refusal:
        await engine.definition("counted", 7)
    assert refusal.value.code == "unknown_version"

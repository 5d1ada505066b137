"""Starting many instances by one call of the Python engine, which makes several of it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mutirao import Change, Engine, Event, Flow, RequestError, task
from mutirao.database import start as module


class Counted(Flow):
    n: int
    final = "n > 100"

    @task(when="n >= 0")
    async def count(self) -> Change:
        return {"n": 101}


@pytest.fixture
async def engine(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setattr(module, "BATCH", 3)
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


async def test_each_state_of_several_batches_has_its_key(engine: Engine) -> None:
    keys = [f"K-{n}" for n in range(20)]
    started = await engine.start_many((Counted(n=n) for n in range(20)), keys=iter(keys))
    assert [(await engine.instance(number)).key for number in started] == keys
    again = await engine.start_named("counted", ({"n": n} for n in range(20)), keys=keys)
    assert again == started
    assert await engine.start(Counted(n=1), key="K-7") == started[7]


@pytest.mark.parametrize("keys", [["a"] * 19, ["a"] * 21])
async def test_states_and_keys_of_different_number_are_refused(engine: Engine, keys: list[str]) -> None:
    with pytest.raises(RequestError, match="keys than states"):
        await engine.start_many((Counted(n=n) for n in range(20)), keys=keys)


async def test_a_note_of_the_starter_is_in_the_trace(engine: Engine) -> None:
    token = module.note.set({"traceparent": "00-ab"})
    started = await engine.start_many(Counted(n=n) for n in range(7))
    module.note.reset(token)
    assert [(await engine.trace(number))[0].note for number in started] == [{"traceparent": "00-ab"}] * 7


async def test_events_of_several_batches_are_answered_in_order(engine: Engine) -> None:
    keys = [f"K-{n}" for n in range(10)]
    await engine.start_many((Counted(n=n) for n in range(10)), keys=keys)
    answers = await engine.send_many(Counted, (Event(key, {"n": 50}, id=f"e{key}") for key in [*keys, "K-99"]))
    assert [answer.key for answer in answers] == [*keys, "K-99"]
    assert [answer.outcome for answer in answers] == ["done"] * 10 + ["refused"]
    assert answers[10].code == "unknown_instance"
    assert (await engine.send("counted", Event("K-1", {"n": 51}, id="eK-1"))).outcome == "repeated"
    with pytest.raises(RequestError, match='no instance has the key "K-99"'):
        await engine.send(Counted, Event("K-99", {"n": 51}))


async def test_an_event_of_a_batch_waits_for_whoever_is_writing_its_instance(engine: Engine) -> None:
    first, second = await engine.start_many([Counted(n=1), Counted(n=2)], keys=["A", "B"])
    async with engine.connection() as other, other.transaction():
        await other.execute("select from mutirao.instance where id = %s for no key update", [first])
        sending = asyncio.create_task(engine.send_many(Counted, [Event("A", {"n": 7}), Event("B", {"n": 8})]))
        while (await engine.instance(second)).state["n"] != 8:  # the batch has gone through, without the first
            assert not sending.done()
        assert (await engine.instance(first)).state["n"] == 1
    assert [answer.outcome for answer in await sending] == ["done", "done"]
    assert (await engine.instance(first)).state["n"] == 7

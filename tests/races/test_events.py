"""Keys, events and starts put off, with several sessions at once: each is written once."""

import asyncio
import random
from collections import Counter

from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import at_once, run, running, session, until_it_waits
from psycopg.types.json import Jsonb

START = "select * from mutirao.start_many('sale', %s::jsonb[], keys => %s::text[])"
SEND = "select n, instance, outcome, code from mutirao.send_many('sale', %s::text[], %s::jsonb[], %s::text[])"
SEND_ONE = "select outcome from mutirao.send('sale', %s, %s, %s)"


async def sale(engine: Engine) -> None:
    await engine.apply("sale", {"amount": 0, "done": False}, {"go": "not done"}, final="done")


async def started(engine: Engine, *keys: str) -> list[int]:
    await sale(engine)
    return [number for (number,) in await engine.rows(START, [Jsonb({})] * len(keys), list(keys))]


async def test_two_starts_of_one_key_at_once_start_one(engine: Engine) -> None:
    await sale(engine)
    async with session(engine) as first, session(engine) as second:
        [(number,)] = await run(first, START, [Jsonb({"amount": 1})], ["A"])
        waiting = running(second, START, [Jsonb({"amount": 2})], ["A"])
        await until_it_waits(engine, second)
        await first.commit()
        assert await waiting == [(number,)]
    assert await engine.state(number) == {"amount": 1, "done": False}
    assert await engine.one("select count(*) from mutirao.instance") == 1


async def test_when_the_first_start_is_undone_the_second_starts(engine: Engine) -> None:
    await sale(engine)
    async with session(engine) as first, session(engine) as second:
        await run(first, START, [Jsonb({"amount": 1})], ["A"])
        waiting = running(second, START, [Jsonb({"amount": 2})], ["A"])
        await until_it_waits(engine, second)
        await first.rollback()
        [(number,)] = await waiting
        await second.commit()
    assert await engine.state(number) == {"amount": 2, "done": False}


async def test_batches_of_the_same_keys_in_any_order_never_wait_for_each_other(engine: Engine) -> None:
    await sale(engine)
    keys = [f"K-{n}" for n in range(200)]

    async def start(seed: int) -> dict[str, int]:
        mixed = random.Random(seed).sample(keys, len(keys))
        numbers = await engine.rows(START, [Jsonb({})] * len(keys), mixed)
        return dict(zip(mixed, (number for (number,) in numbers), strict=True))

    answers = await asyncio.gather(*(start(seed) for seed in range(12)))
    assert all(answer == answers[0] for answer in answers)
    assert await engine.one("select count(*) from mutirao.instance") == 200
    assert await engine.one("select count(*) from mutirao.trace") == 200


async def test_one_event_sent_by_many_at_once_is_written_once(engine: Engine) -> None:
    keys = [f"K-{n}" for n in range(50)]
    await started(engine, *keys)
    answers: Counter[tuple[str, str]] = Counter()

    async def deliver(seed: int) -> None:
        left = random.Random(seed).sample(keys, len(keys))
        while left:
            rows = await engine.rows(SEND, left, [Jsonb({"amount": seed})] * len(left), [f"e-{key}" for key in left])
            answers.update((left[n - 1], outcome) for n, _, outcome, _ in rows)
            left = [left[n - 1] for n, _, _, code in rows if code == "instance_busy"]

    await asyncio.gather(*(deliver(seed) for seed in range(1, 9)))
    assert all(answers[key, "done"] == 1 and answers[key, "repeated"] == 7 for key in keys)
    assert await engine.one("select count(*) from mutirao.trace where kind = 'set'") == 50


async def test_the_second_delivery_waits_for_the_first_and_is_repeated(engine: Engine) -> None:
    await started(engine, "A")
    async with session(engine) as first, session(engine) as second:
        assert await run(first, SEND_ONE, "A", Jsonb({"amount": 1}), "e1") == [("done",)]
        waiting = running(second, SEND_ONE, "A", Jsonb({"amount": 1}), "e1")
        await until_it_waits(engine, second)
        await first.commit()
        assert await waiting == [("repeated",)]


async def test_an_event_that_ends_its_instance_meanwhile_is_repeated_too(engine: Engine) -> None:
    await started(engine, "A")
    job = await engine.take("sale", "go")
    await engine.fail_for_good(job)
    number = job.instance
    await engine.skip(await engine.job(number, "go"), amount=1)
    async with session(engine) as first, session(engine) as second:
        await run(first, "delete from mutirao.job where instance = %s", number)
        await run(first, "update mutirao.instance set pending = '{}' where id = %s", number)
        assert await run(first, SEND_ONE, "A", Jsonb({"done": True}), "e1") == [("done",)]
        waiting = running(second, SEND_ONE, "A", Jsonb({"done": True}), "e1")
        await until_it_waits(engine, second)
        await first.commit()
        assert await waiting == [("repeated",)]
    assert await engine.status(number) == "closed.completed"


async def test_one_id_for_two_instances_at_once_is_written_for_one(engine: Engine) -> None:
    first_number, second_number = await started(engine, "A", "B")
    async with session(engine) as first, session(engine) as second:
        assert await run(first, SEND_ONE, "A", Jsonb({"amount": 1}), "e1") == [("done",)]
        waiting = running(second, SEND_ONE, "B", Jsonb({"amount": 1}), "e1")
        await until_it_waits(engine, second)
        await first.commit()
        assert await waiting == [("repeated",)]
        await second.commit()
    assert [(await engine.state(each))["amount"] for each in (first_number, second_number)] == [1, 0]


async def test_a_batch_does_not_wait_for_an_instance_that_somebody_writes(engine: Engine) -> None:
    first_number, second_number = await started(engine, "A", "B")
    async with session(engine) as writer:
        await run(writer, "select mutirao.set(%s, '{\"amount\": 5}')", first_number)
        rows = await at_once(engine, SEND, ["A", "B"], [Jsonb({"amount": 1})] * 2, ["e1", "e2"])
        assert [(outcome, code) for _, _, outcome, code in rows] == [("refused", "instance_busy"), ("done", None)]
    assert await engine.rows("select event from mutirao.event") == [("e2",)]
    assert (await engine.state(second_number))["amount"] == 1


async def test_two_clocks_start_each_instance_once(engine: Engine) -> None:
    await sale(engine)
    many = [Jsonb({})] * 300
    await engine.rows("select mutirao.start_many('sale', %s::jsonb[], at => mutirao.now() + '1 hour')", many)
    await engine.advance(hours=2)
    done: list[int] = []

    async def tick() -> None:
        while await engine.rows("select from mutirao.delayed"):
            done.append(await engine.one("select (done ->> 'starts')::int from mutirao.turn_clock(20, 'starts')"))

    await asyncio.gather(*(tick() for _ in range(4)))
    assert sum(done) == 300
    assert await engine.one("select count(*) from mutirao.trace where kind = 'due'") == 300
    assert await engine.one("select count(*) from mutirao.job where status = 'ready'") == 300


async def test_a_clock_passes_by_what_another_one_is_starting(engine: Engine) -> None:
    await sale(engine)
    await engine.rows("select mutirao.start_many('sale', %s::jsonb[], at => mutirao.now() + '1 hour')", [Jsonb({})] * 3)
    await engine.advance(hours=2)
    tick = "select (done ->> 'starts')::int from mutirao.turn_clock(500, 'starts')"
    async with session(engine) as first:
        assert await run(first, tick) == [(3,)]
        assert await at_once(engine, tick) == [(0,)]
        await first.rollback()
    assert await engine.one(tick) == 3

"""How things go: what waits for workers and whether anybody does it, and how the database is."""

from typing import Any

from worker_stage import Stage, fresh_stage, until  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, task
from mutirao.database.health import Queue
from mutirao.model import Attribute, Definition, Offer, Task


class Parcel(Flow):
    size: int = 0
    sent: bool = False
    final = "sent"

    @task(when="not sent and size < 10", retries=1)
    async def send(self) -> Change:
        return {"sent": True}

    @task(when="not sent and size > 5", priority=3)
    async def weigh(self) -> Change:
        return {"size": 1}


FOR_PEOPLE = Definition(
    name="letter",
    attributes=(Attribute("read", "boolean"),),
    tasks=(Task(name="read_it", when="read is null", offer=Offer(role="clerk"), outputs=("read",)),),
    final="read",
)


async def claim(stage: Stage, name: str, count: int) -> list[Any]:
    numbers, _ = await stage.engine.task_numbers("parcel", [name])
    return await stage.rows("select job, attempt from mutirao.claim('gone', array[%s], %s)", numbers[name], count)


async def test_the_queue_tells_what_waits_for_workers_and_how_many_do_it(stage: Stage) -> None:
    await stage.engine.roles.add(None, "clerk")
    await stage.engine.apply(FOR_PEOPLE)
    await stage.engine.start_named("letter", [{}])
    await stage.engine.apply(Parcel)
    await stage.engine.start_many([Parcel() for _ in range(3)], priority=-5)
    await stage.advance(minutes=1)
    await stage.engine.start_many([Parcel(size=7) for _ in range(4)])
    await stage.advance(seconds=5)
    [send, weigh] = await stage.engine.queue()
    assert (send.flow, send.task, send.ready, round(send.oldest or 0), send.workers) == ("parcel", "send", 7, 65, 0)
    assert (weigh.ready, round(weigh.oldest or 0)) == (4, 5)
    [later, never, _] = await claim(stage, "weigh", 3)
    await stage.rows("select mutirao.fail(%s, %s, 'later')", *later)
    await stage.rows("select mutirao.fail(%s, %s, 'never', true)", *never)
    [send, weigh] = await stage.engine.queue()
    # Who has leased a job is somebody, announced or not.
    assert weigh == Queue("parcel", "weigh", 1, 1, 1, 1, weigh.oldest, 1, 0)
    assert send.workers == 0


async def test_a_task_counts_the_workers_that_are_alive(stage: Stage) -> None:
    await stage.engine.apply(Parcel)
    numbers, _ = await stage.engine.task_numbers("parcel", ["send"])
    await stage.engine.start(Parcel())
    await stage.rows("select mutirao.announce('ann', array[%s])", numbers["send"])
    await stage.rows("select mutirao.announce('bob', '{}')")
    assert [each.workers for each in await stage.engine.queue()] == [1]
    await stage.advance(seconds=31)
    assert [each.workers for each in await stage.engine.queue()] == [0]


async def test_the_database_tells_its_version_its_room_and_who_keeps_a_transaction_open(stage: Stage) -> None:
    health = await stage.engine.health()
    [(version, schema)] = await stage.rows(
        "select current_setting('server_version'), (select max(number) from mutirao.migration)"
    )
    assert (health.facts.server, health.schema) == (version, schema)
    assert health.facts.bytes > 0
    assert 0 < health.facts.connections <= health.facts.most_connections
    assert health.overdue == {}
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("select set_config('application_name', 'idler', false)")
        oldest = (await stage.engine.health()).facts
        assert oldest.oldest_of == "idler"
        assert oldest.oldest_transaction is not None


async def test_what_no_clock_has_done_in_time_is_told(stage: Stage) -> None:
    await stage.engine.apply(Parcel)
    await stage.engine.start_many([Parcel(), Parcel()])
    [again, _] = await claim(stage, "send", 2)
    await stage.rows("select mutirao.fail(%s, %s, 'later')", *again)
    assert (await stage.engine.health()).overdue == {}
    await stage.advance(minutes=2)
    overdue = (await stage.engine.health()).overdue
    assert set(overdue) == {"lease", "retry"}
    assert round(overdue["lease"]) == 60

"""The life of an instance: start, look, finish."""

import psycopg
import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb


async def travel(engine: Engine) -> None:
    """Two branches and a join."""
    await engine.apply(
        "travel",
        {"stage": "new", "hotel": None, "flight": None},
        {
            "book_hotel": "stage = 'new' and hotel is null",
            "book_flight": "stage = 'new' and flight is null",
            "confirm": "stage = 'new' and hotel is not null and flight is not null",
        },
        final="stage = 'booked'",
    )


async def test_a_start_inserts_a_state_and_fires_what_holds_on_it(engine: Engine) -> None:
    await travel(engine)
    instance = await engine.start("travel")
    assert await engine.state(instance) == {"stage": "new", "hotel": None, "flight": None}
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"book_hotel": "ready", "book_flight": "ready"}


async def test_attributes_not_given_take_their_defaults_and_null_is_a_value(engine: Engine) -> None:
    await engine.apply("f", {"a": "ready", "b": 7, "c": "x"}, {"go": "a = 'ready'"}, final="a = 'done'")
    instance = await engine.start("f", b=8, c=None)
    assert await engine.state(instance) == {"a": "ready", "b": 8, "c": None}


async def test_a_start_that_is_not_final_and_fires_nothing_is_rejected_whole(engine: Engine) -> None:
    await travel(engine)
    async with engine.refused("nothing_fires", 'start of flow "travel"'):
        await engine.start("travel", stage="nowhere")


async def test_one_bad_state_rejects_the_whole_call(engine: Engine) -> None:
    await travel(engine)
    async with engine.refused("nothing_fires", "state 2 of 3"):
        await engine.start_many("travel", [{}, {"stage": "nowhere"}, {}])


async def test_a_start_in_a_final_state_completes_at_once(engine: Engine) -> None:
    await travel(engine)
    instance = await engine.start("travel", stage="booked")
    assert await engine.status(instance) == "closed.completed"
    assert await engine.jobs(instance) == {}
    assert [(s.kind, s.fired, s.status) for s in await engine.trace(instance)] == [("start", [], "closed.completed")]


async def test_many_start_in_one_call_in_order(engine: Engine) -> None:
    await travel(engine)
    instances = await engine.start_many("travel", [{"hotel": str(n)} for n in range(20)])
    assert instances == sorted(instances)
    assert [(await engine.state(i))["hotel"] for i in instances] == [str(n) for n in range(20)]
    assert await engine.start_many("travel", []) == []


async def test_a_null_state_is_an_empty_one(engine: Engine) -> None:
    await travel(engine)
    ((instance,),) = await engine.rows("select * from mutirao.start_many('travel', array[null::jsonb])")
    assert (await engine.state(instance))["stage"] == "new"


async def test_final_is_tested_first_and_when_it_holds_nothing_fires(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a >= 0"}, final="a = 1")
    instance = await engine.start("f")
    await engine.do("f", "go", a=1)
    assert await engine.status(instance) == "closed.completed"
    assert (await engine.trace(instance))[-1].fired == []


async def test_a_condition_that_holds_adds_no_second_job_while_one_is_pending(engine: Engine) -> None:
    await travel(engine)
    instance = await engine.start("travel")
    first = await engine.job(instance, "book_flight")
    await engine.set(instance, stage="new")
    await engine.do("travel", "book_hotel", hotel="Ritz")
    assert await engine.jobs(instance) == {"book_flight": "ready"}
    assert await engine.job(instance, "book_flight") == first


async def test_a_finish_writes_the_change_ends_the_job_and_looks_again(engine: Engine) -> None:
    await travel(engine)
    instance = await engine.start("travel")
    assert await engine.do("travel", "book_hotel", hotel="Ritz") == "ok"
    assert await engine.do("travel", "book_flight", flight="TP1") == "ok"
    assert await engine.jobs(instance) == {"confirm": "ready"}
    await engine.do("travel", "confirm", stage="booked")
    assert await engine.state(instance) == {"stage": "booked", "hotel": "Ritz", "flight": "TP1"}
    assert await engine.status(instance) == "closed.completed"


async def test_the_trace_tells_job_cause_writer_firing_state_status_and_time(engine: Engine) -> None:
    await travel(engine)
    instance = await engine.start("travel")
    job = await engine.take("travel", "book_hotel")
    await engine.complete(job, hotel="Ritz")
    rows = await engine.rows(
        "select kind, job, attempt, cause, writer, at <= mutirao.now(), id, version from mutirao.trace where instance = %s order by id",
        instance,
    )
    start, finish = rows
    assert start[:2] == ("start", None)
    assert finish[:6] == ("finish", job.id, job.attempt, start[6], "tester", True)
    steps = await engine.trace(instance)
    assert steps[0].fired == ["book_hotel", "book_flight"]
    assert steps[1].task == "book_hotel"
    assert steps[1].fired == []
    assert steps[1].state == {"stage": "new", "hotel": "Ritz", "flight": None}
    assert steps[1].status == "open.running"


async def test_changes_are_merged_into_the_current_state_never_over_it(engine: Engine) -> None:
    await travel(engine)
    instance = await engine.start("travel")
    hotel, flight = await engine.claim("travel", "book_hotel", "book_flight", room=2)
    assert hotel.state == flight.state == {"stage": "new", "hotel": None, "flight": None}
    await engine.complete(flight, flight="TP1")
    await engine.complete(hotel, hotel="Ritz")
    assert await engine.state(instance) == {"stage": "new", "hotel": "Ritz", "flight": "TP1"}


async def test_jobs_of_one_instance_in_one_batch_end_one_after_another(engine: Engine) -> None:
    await travel(engine)
    instance = await engine.start("travel")
    hotel, flight = await engine.claim("travel", "book_hotel", "book_flight", room=2)
    told, got = await engine.turn([(flight, {"flight": "TP1"}), (hotel, {"hotel": "Ritz"})], flow="travel", room=5)
    assert told == []
    assert [job.task for job in got] == ["confirm"]
    _, first, second = await engine.trace(instance)
    assert (first.task, first.fired, first.state) == (
        "book_flight",
        [],
        {"stage": "new", "hotel": None, "flight": "TP1"},
    )
    assert (second.task, second.fired) == ("book_hotel", ["confirm"])
    assert second.state == {"stage": "new", "hotel": "Ritz", "flight": "TP1"}


async def test_a_batch_of_many_instances_gives_each_its_own_outcome(engine: Engine) -> None:
    await travel(engine)
    instances = await engine.start_many("travel", [{}, {"hotel": "Ritz"}, {"stage": "new"}])
    flights = await engine.claim("travel", "book_flight", room=10)
    await engine.turn([(job, {"flight": f"TP{n}"}) for n, job in enumerate(flights)])
    assert [await engine.jobs(i) for i in instances] == [
        {"book_hotel": "ready"},
        {"confirm": "ready"},
        {"book_hotel": "ready"},
    ]


async def test_a_job_named_twice_in_one_call_ends_once(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a < 5"}, final="a >= 5")
    instance = await engine.start("f")
    job = await engine.take("f", "go")
    told, _ = await engine.turn([(job, {"a": 1}), (job, {"a": 2})])
    assert [(t.kind, t.job) for t in told] == [("lost", job.id)]
    assert await engine.state(instance) == {"a": 1}
    assert await engine.kinds(instance) == ["start", "finish"]


async def test_a_task_that_fires_each_time_fires_again_as_soon_as_its_job_has_ended(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"count": "n < 3"}, final="n = 3")
    instance = await engine.start("f")
    for n in (1, 2, 3):
        assert await engine.jobs(instance) == {"count": "ready"}
        await engine.do("f", "count", n=n)
    assert await engine.status(instance) == "closed.completed"
    assert [s.fired for s in await engine.trace(instance)] == [["count"], ["count"], ["count"], []]


async def test_a_task_that_fires_once_does_not_fire_again(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"hello": {"when": "n < 3", "fires": "once"}, "count": "n < 3"}, final="n = 3")
    instance = await engine.start("f")
    await engine.do("f", "hello")
    await engine.do("f", "count", n=1)
    assert await engine.jobs(instance) == {"count": "ready"}


async def test_a_task_with_depends_fires_once_by_default_and_each_time_if_told_so(engine: Engine) -> None:
    await engine.apply(
        "f", {"n": 0}, {"a": "n < 2", "once": after("a"), "each": after("a", fires="each")}, final="n = 9"
    )
    instance = await engine.start("f")
    await engine.do("f", "a", n=1)
    assert await engine.jobs(instance) == {"a": "ready", "once": "ready", "each": "ready"}
    await engine.do("f", "once")
    await engine.do("f", "each")
    assert await engine.jobs(instance) == {"a": "ready", "each": "ready"}


async def test_a_depends_term_holds_from_the_moment_it_is_first_reached(engine: Engine) -> None:
    await engine.apply(
        "f",
        {"n": 0},
        {
            "a": {"when": "n = 0", "fires": "once"},
            "b": {"when": "n = 0", "fires": "once"},
            "both": {"depends": {"all": [{"task": "a", "state": "succeeded"}, {"task": "b", "state": "succeeded"}]}},
            "either": {"depends": {"any": [{"task": "a", "state": "succeeded"}, {"task": "b", "state": "succeeded"}]}},
        },
        ends="quiet",
    )
    instance = await engine.start("f")
    await engine.do("f", "a")
    assert await engine.jobs(instance) == {"b": "ready", "either": "ready"}
    await engine.do("f", "either")
    await engine.do("f", "b")
    assert await engine.jobs(instance) == {"both": "ready"}
    await engine.do("f", "both")
    assert await engine.status(instance) == "closed.completed"


async def test_a_flow_that_ends_when_quiet_closes_when_nothing_is_left_to_do(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"one": {"when": "true", "fires": "once"}, "two": after("one")}, ends="quiet")
    instance = await engine.start("f")
    await engine.do("f", "one")
    assert await engine.status(instance) == "open.running"
    await engine.do("f", "two")
    assert await engine.status(instance) == "closed.completed"


async def test_a_quiet_flow_with_a_final_condition_ends_by_either(engine: Engine) -> None:
    await engine.apply(
        "f", {"a": 0}, {"one": {"when": "true", "fires": "once"}, "two": after("one")}, ends="quiet", final="a = 1"
    )
    by_final, by_quiet = await engine.start_many("f", [{}, {}])
    first, second = await engine.claim("f", "one", room=2)
    await engine.complete(first, a=1)
    assert await engine.status(by_final) == "closed.completed"
    await engine.complete(second)
    await engine.do("f", "two")
    assert await engine.status(by_quiet) == "closed.completed"


async def test_a_closed_instance_has_left_the_hot_tables(engine: Engine) -> None:
    await engine.apply("f", {"a": 0}, {"go": "a = 0"}, final="a = 1")
    instance = await engine.start("f")
    await engine.do("f", "go", a=1)
    assert await engine.rows("select from mutirao.instance") == []
    assert await engine.rows("select from mutirao.job") == []
    assert await engine.one("select id from mutirao.closed") == instance
    async with engine.refused("instance_closed"):
        await engine.set(instance, a=2)


async def test_workers_are_woken_once_a_batch_with_the_flows_that_have_work(engine: Engine) -> None:
    await travel(engine)
    async with await psycopg.AsyncConnection.connect(engine.url, autocommit=True) as listener:
        await listener.execute("listen mutirao")
        await engine.start_many("travel", [{}] * 50)
        heard = [note.payload async for note in listener.notifies(timeout=5, stop_after=1)]
        assert heard == [str(await engine.one("select id from mutirao.flow"))]
        assert [note async for note in listener.notifies(timeout=0)] == []


async def test_a_state_with_every_type_comes_back_as_it_went_in(engine: Engine) -> None:
    kinds = ["text", "integer", "number", "boolean", "date", "timestamp", "json"]
    await engine.apply(
        "f",
        {f"a_{kind}": {"type": kind} for kind in kinds},
        {
            "go": "a_integer = 12345678901 and a_boolean and a_date = '2026-02-28' and a_number = 0.1 and a_json ->> 'k' = 'v'"
        },
    )
    state = {
        "a_text": "é", "a_integer": 12345678901, "a_number": 0.1, "a_boolean": True,
        "a_date": "2026-02-28", "a_timestamp": "2026-02-28T10:00:00+02:00", "a_json": {"k": "v", "l": [1, None]},
    }  # fmt: skip
    instance = await engine.start("f", 0, **state)
    assert await engine.state(instance) == state
    assert (await engine.take("f", "go")).state == state


async def test_a_timestamp_is_the_same_in_every_time_zone_of_a_session(engine: Engine) -> None:
    await engine.apply("f", {"t": {"type": "timestamp"}}, {"go": "date_trunc('day', t) = t"})
    for zone in ("UTC", "America/Sao_Paulo", "Asia/Tokyo"):
        async with Engine(f"{engine.url}{'&' if '?' in engine.url else '?'}options=-c%20timezone%3D{zone}") as other:
            instance = await other.start("f", t="2026-03-01T00:00:00Z")
        assert await engine.jobs(instance) == {"go": "ready"}


async def test_an_instance_is_never_without_what_its_flow_requires(engine: Engine) -> None:
    await engine.rows(
        "select mutirao.apply_flow(%s)",
        Jsonb(
            {
                "name": "trip",
                "final": "done",
                "attributes": [
                    {"name": "city", "required": True},
                    {"name": "done", "type": "boolean", "default": False},
                ],
                "tasks": [{"name": "book", "when": "not done"}],
            }
        ),
    )
    for state in ("{}", '{"city": null}'):
        with pytest.raises(psycopg.Error, match=r'missing_attribute: .*"city" is required'):
            await engine.rows("select mutirao.start('trip', %s)", state)
    number = await engine.one("select mutirao.start('trip', %s)", '{"city": "Recife"}')
    with pytest.raises(psycopg.Error, match="missing_attribute"):
        await engine.rows("select mutirao.set(%s, %s)", number, '{"city": null}')
    await engine.rows("select mutirao.set(%s, %s)", number, '{"city": "Natal"}')

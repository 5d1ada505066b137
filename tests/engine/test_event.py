"""Keys, and events from outside that find an instance by its key."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb


class Sent(NamedTuple):
    n: int
    key: str
    event: str | None
    instance: int | None
    outcome: str
    code: str | None
    message: str | None
    saw: dict[str, Any] | None


async def send(engine: Engine, key: str, change: Any, **more: Any) -> Sent:
    named = "".join(f", {name} => %s" for name in more)
    (row,) = await engine.rows(f"select * from mutirao.send('sale', %s, %s{named})", key, Jsonb(change), *more.values())
    return Sent._make(row)


async def send_many(
    engine: Engine, events: Sequence[tuple[str, Any, str | None]], only_if: str | None = None
) -> list[Sent]:
    keys, changes, ids = zip(*events, strict=True)
    rows = await engine.rows(
        "select * from mutirao.send_many('sale', %s::text[], %s::jsonb[], %s::text[], %s)",
        list(keys), [Jsonb(change) for change in changes], list(ids), only_if,
    )  # fmt: skip
    return [Sent._make(row) for row in rows]


async def orders(engine: Engine, *keys: str) -> list[int]:
    await engine.apply(
        "sale",
        {"paid": False, "packed": False, "amount": 0, "city": None},
        {"pack": "not packed", "ship": "paid and packed"},
        final="city = 'there'",
    )
    rows = await engine.rows(
        "select * from mutirao.start_many('sale', %s::jsonb[], keys => %s::text[])", [Jsonb({})] * len(keys), list(keys)
    )
    return [number for (number,) in rows]


# ------------------------------------------------------------------------------------------------------------------ keys


async def test_a_key_is_started_once(engine: Engine) -> None:
    (first,) = await orders(engine, "A-1")
    again = await engine.one("select mutirao.start('sale', '{\"amount\": 7}', key => 'A-1')")
    assert again == first
    assert (await engine.state(first))["amount"] == 0
    assert await engine.one("select count(*) from mutirao.instance") == 1


async def test_a_key_is_still_known_when_its_instance_has_ended(engine: Engine) -> None:
    (first,) = await orders(engine, "A-1")
    await engine.cancel(first)
    assert await engine.status(first) == "closed.aborted"
    assert await engine.one("select mutirao.start('sale', key => 'A-1')") == first
    assert await engine.one("select count(*) from mutirao.instance") == 0


async def test_a_key_belongs_to_its_flow(engine: Engine) -> None:
    (first,) = await orders(engine, "A-1")
    await engine.apply("other", {"a": 0}, {"go": "a = 0"}, final="a = 1")
    assert await engine.one("select mutirao.start('other', key => 'A-1')") != first


async def test_known_new_and_repeated_keys_in_one_call(engine: Engine) -> None:
    first, second = await orders(engine, "A-1", "A-2")
    started = await engine.rows(
        "select * from mutirao.start_many('sale', %s::jsonb[], keys => %s::text[])",
        [Jsonb({"amount": n}) for n in range(6)],
        ["A-2", "A-3", None, "A-3", "A-1", None],
    )
    numbers = [number for (number,) in started]
    assert numbers[0] == second
    assert numbers[4] == first
    assert numbers[1] == numbers[3]
    assert len(set(numbers)) == 5
    assert await engine.one("select count(*) from mutirao.instance") == 5
    assert (await engine.state(numbers[1]))["amount"] == 1


async def test_a_refused_start_leaves_no_key_and_counts_from_the_first_state(engine: Engine) -> None:
    await orders(engine, "A-1")
    async with engine.refused("wrong_type", "state 3 of 3"):
        await engine.rows(
            "select mutirao.start_many('sale', %s::jsonb[], keys => %s::text[])",
            [Jsonb({}), Jsonb({}), Jsonb({"amount": "x"})],
            ["A-1", "A-2", "A-3"],
        )


async def test_states_and_keys_must_fit_together(engine: Engine) -> None:
    await orders(engine, "A-1")
    async with engine.refused("wrong_call", "2 states and 1 keys"):
        await engine.rows("select mutirao.start_many('sale', array['{}', '{}']::jsonb[], keys => array['A-9'])")
    async with engine.refused("wrong_call", "1 to 200 characters"):
        await engine.rows("select mutirao.start('sale', key => '')")


async def test_the_trace_keeps_what_the_starter_noted(engine: Engine) -> None:
    await orders(engine, "A-1")
    number = await engine.one("""select mutirao.start('sale', note => '{"traceparent": "00-1"}')""")
    assert (await engine.trace(number))[0].note == {"traceparent": "00-1"}


# ---------------------------------------------------------------------------------------------------------------- events


async def test_an_event_sets_attributes_by_key_and_fires(engine: Engine) -> None:
    (number,) = await orders(engine, "A-1")
    await engine.do("sale", "pack", packed=True)
    answer = await send(engine, "A-1", {"paid": True}, event="e1", reason="the bank called")
    assert (answer.outcome, answer.instance) == ("done", number)
    assert await engine.jobs(number) == {"ship": "ready"}
    last = (await engine.trace(number))[-1]
    assert (last.kind, last.fired, last.note) == ("set", ["ship"], {"event": "e1", "reason": "the bank called"})


async def test_the_second_delivery_changes_nothing(engine: Engine) -> None:
    (number,) = await orders(engine, "A-1")
    await send(engine, "A-1", {"amount": 5}, event="e1")
    before = await engine.everything()
    answer = await send(engine, "A-1", {"amount": 6}, event="e1")
    assert (answer.outcome, answer.instance) == ("repeated", number)
    assert await engine.everything() == before
    assert (await send(engine, "A-1", {"amount": 6})).outcome == "done"
    assert (await send(engine, "A-1", {"amount": 6})).outcome == "done"


async def test_an_event_that_ended_its_instance_is_repeated_and_not_refused(engine: Engine) -> None:
    (number,) = await orders(engine, "A-1")
    await engine.do("sale", "pack", packed=True)
    await send(engine, "A-1", {"city": "there"}, event="e1")
    assert await engine.status(number) == "closed.completed"
    assert (await send(engine, "A-1", {"city": "there"}, event="e1")).outcome == "repeated"


@pytest.mark.parametrize(
    ("key", "change", "code", "says"),
    [
        ("A-9", {"paid": True}, "unknown_instance", 'no instance has the key "A-9"'),
        ("A-2", {"paid": True}, "instance_closed", "has ended"),
        ("A-1", {"paid": "yes"}, "wrong_type", 'attribute "paid" is of type boolean'),
        ("A-1", {"payed": True}, "unknown_attribute", 'no attribute "payed"'),
        ("A-1", [1], "wrong_type", "a change is a JSON object"),
        ("A-1", {"city": "there"}, "final_blocked", "while jobs are pending"),
    ],
)
async def test_what_cannot_be_written_is_refused_with_one_line(
    engine: Engine, key: str, change: Any, code: str, says: str
) -> None:
    _, second = await orders(engine, "A-1", "A-2")
    await engine.cancel(second)
    async with engine.refused(code, says):
        await send(engine, key, change, event="e1")


async def test_bad_events_do_not_sink_the_others(engine: Engine) -> None:
    _, second, third = await orders(engine, "A-1", "A-2", "A-3")
    await engine.cancel(second)
    answers = await send_many(
        engine,
        [
            ("A-1", {"amount": 1}, "e1"),
            ("A-9", {"amount": 1}, "e2"),
            ("A-2", {"amount": 1}, "e3"),
            ("A-3", {"amount": "x"}, "e4"),
            ("A-3", {"amount": 3}, "e5"),
            ("A-3", None, "e6"),
        ],
    )
    assert [(a.outcome, a.code) for a in answers] == [
        ("done", None),
        ("refused", "unknown_instance"),
        ("refused", "instance_closed"),
        ("refused", "wrong_type"),
        ("done", None),
        ("refused", "wrong_type"),
    ]
    assert (await engine.state(third))["amount"] == 3
    assert await engine.rows("select event from mutirao.event order by 1") == [("e1",), ("e5",)]
    assert await engine.kinds(third) == ["start", "set"]
    # What was refused may be sent again when it is right.
    (again,) = await send_many(engine, [("A-3", {"amount": 4}, "e4")])
    assert again.outcome == "done"


async def test_events_for_one_instance_go_in_their_order(engine: Engine) -> None:
    number, _ = await orders(engine, "A-1", "A-2")
    await engine.do("sale", "pack", packed=True)
    events = [("A-1", {"amount": n}, f"e{n}") for n in range(1, 5)]
    answers = await send_many(
        engine, [*events, ("A-1", {"city": "there"}, None), ("A-1", {"amount": 9}, None), ("A-2", {"amount": 2}, None)]
    )
    assert [a.outcome for a in answers] == ["done"] * 5 + ["refused", "done"]
    assert answers[5].code == "instance_closed"
    amounts = [(step.state or {})["amount"] for step in await engine.trace(number)]
    assert amounts == [0, 0, 1, 2, 3, 4, 4]


async def test_one_id_twice_in_a_call_is_written_once(engine: Engine) -> None:
    (number,) = await orders(engine, "A-1")
    answers = await send_many(
        engine,
        [
            ("A-9", {"amount": 1}, "e1"),
            ("A-1", {"amount": 2}, "e1"),
            ("A-1", {"amount": 3}, "e1"),
            ("A-1", {"amount": "x"}, "e2"),
            ("A-1", {"amount": "x"}, "e2"),
        ],
    )
    assert [a.outcome for a in answers] == ["refused", "done", "repeated", "refused", "refused"]
    assert answers[4].code == "wrong_type"
    assert (await engine.state(number))["amount"] == 2


async def test_only_if_is_judged_on_the_state_and_answers_what_it_saw(engine: Engine) -> None:
    (number,) = await orders(engine, "A-1")
    before = await engine.everything()
    answer = await send(engine, "A-1", {"amount": 5}, event="e1", only_if="packed and task_pack = 'succeeded'")
    assert (answer.outcome, answer.saw) == ("not_now", {"packed": False, "task_pack": "ready"})
    assert await engine.everything() == before
    await engine.do("sale", "pack", packed=True)
    answer = await send(engine, "A-1", {"amount": 5}, event="e1", only_if="packed and task_pack = 'succeeded'")
    assert answer.outcome == "done"
    assert (await engine.state(number))["amount"] == 5


async def test_only_if_sees_what_the_event_before_it_wrote(engine: Engine) -> None:
    await orders(engine, "A-1", "A-2")
    answers = await send_many(engine, [("A-1", {"amount": 1}, None)] * 3 + [("A-2", {"amount": 1}, None)], "amount = 0")
    assert [a.outcome for a in answers] == ["done", "not_now", "not_now", "done"]
    assert answers[1].saw == {"amount": 1}


async def test_only_if_that_raises_concerns_its_own_event(engine: Engine) -> None:
    await orders(engine, "A-1", "A-2")
    await send(engine, "A-2", {"amount": 2})
    answers = await send_many(engine, [("A-1", {"paid": True}, "e1"), ("A-2", {"paid": True}, "e2")], "10 / amount = 5")
    assert [(a.outcome, a.code) for a in answers] == [("refused", "condition_failed"), ("done", None)]
    assert "division by zero" in (answers[0].message or "")


@pytest.mark.parametrize(
    ("only_if", "code"),
    [
        ("payed", "unknown_attribute"),
        ("amount", "condition_type"),
        ("paid; drop table x", "condition_refused"),
        ("pg_sleep(9) is null", "condition_refused"),
    ],
)
async def test_only_if_passes_the_gate_of_all_conditions(engine: Engine, only_if: str, code: str) -> None:
    await orders(engine, "A-1")
    async with engine.refused(code, "only_if"):
        await send(engine, "A-1", {"amount": 5}, only_if=only_if)


async def test_only_if_leaves_no_function_behind_and_takes_none_away(engine: Engine) -> None:
    await orders(engine, "A-1")
    functions = "select count(*) from pg_proc where pronamespace = 'mutirao_rule'::regnamespace"
    before = await engine.one(functions)
    for only_if in ("amount = 0", "not packed", "not packed", "amount < 0"):
        await send(engine, "A-1", {"paid": True}, only_if=only_if)
    assert await engine.one(functions) == before
    await engine.do("sale", "pack", packed=True)


async def test_instances_of_older_versions_are_asked_by_their_own(engine: Engine) -> None:
    await orders(engine, "A-1")
    await engine.apply("sale", {"paid": False, "stage": 0}, {"pack": "stage = 0"}, final="stage = 9")
    await engine.one("select mutirao.start('sale', key => 'B-1')")
    answers = await send_many(engine, [("A-1", {"paid": True}, "e1"), ("B-1", {"paid": True}, "e2")], "stage = 0")
    assert [(a.outcome, a.code) for a in answers] == [("refused", "unknown_attribute"), ("done", None)]
    answers = await send_many(engine, [("A-1", {"paid": True}, "e1"), ("B-1", {"paid": True}, "e3")])
    assert [a.outcome for a in answers] == ["done", "done"]


async def test_a_live_instance_is_asked_and_written_by_the_newest_version(engine: Engine) -> None:
    await engine.create("sale", {"stage": "a"}, {"go": "stage = 'a'"}, "stage = 'z'")
    number = await engine.one("select mutirao.start('sale', key => 'A-1')")
    await engine.rows("insert into sale.wed_attr (aname, adv) values ('colour', 'red')")
    answer = await send(engine, "A-1", {"colour": "blue"}, only_if="colour = 'red'")
    assert answer.outcome == "done"
    assert await engine.state(number) == {"stage": "a", "colour": "blue"}


async def test_an_event_for_a_suspended_instance_is_kept_and_fires_when_it_goes_on(engine: Engine) -> None:
    (number,) = await orders(engine, "A-1")
    await engine.suspend(number)
    assert (await send(engine, "A-1", {"paid": True, "packed": True})).outcome == "done"
    assert await engine.status(number) == "open.notrunning.suspended"
    assert await engine.jobs(number) == {"pack": "held"}
    await engine.resume(number)
    assert await engine.jobs(number) == {"pack": "ready", "ship": "ready"}


async def test_an_event_lets_a_parked_change_through(engine: Engine) -> None:
    await engine.apply(
        "sale", {"a": 0, "b": 0, "stop": False}, {"one": "a = 0", "two": "b = 0"}, final="a = 1 and not stop"
    )
    number = await engine.one("select mutirao.start('sale', key => 'A-1')")
    assert await engine.do("sale", "one", a=1) == "parked"
    assert (await send(engine, "A-1", {"stop": True})).outcome == "done"
    assert await engine.jobs(number) == {"two": "ready"}
    assert (await engine.state(number))["a"] == 1


async def test_thousands_of_events_in_one_call(engine: Engine) -> None:
    keys = [f"K-{n}" for n in range(5000)]
    await orders(engine, *keys)
    answers = await send_many(engine, [(key, {"amount": 1, "paid": True}, f"e-{key}") for key in keys], "amount = 0")
    assert {a.outcome for a in answers} == {"done"}
    assert [a.key for a in answers] == keys
    again = await send_many(engine, [(key, {"amount": 2}, f"e-{key}") for key in keys])
    assert {a.outcome for a in again} == {"repeated"}
    assert await engine.rows("select distinct state ->> 'amount' from mutirao.instance") == [("1",)]
    assert await engine.one("select count(*) from mutirao.trace where kind = 'set'") == 5000

"""Conditions that pass the gate: what they answer, and the functions they become."""

import asyncio
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from condition_attacks import NAMES
from conditions import Connection, compile_condition, evaluate, value
from psycopg import AsyncConnection

MONDAY = date(2024, 1, 1)
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


GOOD: list[tuple[str, dict[str, Any], bool | None]] = [
    ("a1='ready' and (a2 is null)", {"a1": "ready"}, True),
    ("a1='ready' and (a2 is null)", {"a1": "ready", "a2": "x"}, False),
    ("true", {}, True),
    ("not b", {"b": False}, True),
    ("b is not true", {}, True),
    ("b is unknown or b is false", {"b": True}, False),
    ("a1 isnull and a2 notnull", {"a2": "x"}, True),
    ("a1 is distinct from a2", {"a1": "x"}, True),
    ("a1 is not distinct from a2", {}, True),
    ("A1 = 'x' AND \"a2\" <> 'y'", {"a1": "x", "a2": "z"}, True),
    ("a1 = 'it''s; -- fine /* here */ \\ $1 \"'", {"a1": "it's; -- fine /* here */ \\ $1 \""}, True),
    ("a1 = 'São Paulo ☃'", {"a1": "São Paulo ☃"}, True),
    ("a1 = 'now' or a1 = 'today'", {"a1": "today"}, True),
    ("a1 = ''", {"a1": ""}, True),
    ("a1 = 'two\nlines'", {"a1": "two\nlines"}, True),
    ("a1 in ('a', 'b')", {"a1": "b"}, True),
    ("a1 not in ('a', 'b')", {"a1": "b"}, False),
    ("a1 = any(array['a', 'b'])", {"a1": "a"}, True),
    ("a1 = any('{a,b}')", {"a1": "c"}, False),
    ("n <> all(array[1, 2])", {"n": 3}, True),
    ("n in (" + ", ".join(str(i) for i in range(600)) + ")", {"n": 599}, True),
    ("n between 1 and 3", {"n": 3}, True),
    ("n not between symmetric 3 and 1", {"n": 2}, False),
    ("n=-1", {"n": -1}, True),
    ("n>=+1 and n<>-m", {"n": 1, "m": 1}, True),
    ("n + m * 2 - 1 = 6 and n / 2 = 0 and n % 2 = 1", {"n": 1, "m": 3}, True),
    ("n > 1.5", {"n": 2}, True),
    ("n != m", {"n": 1, "m": 2}, True),
    ("q * 1.1 > .5 and q / 3 < 1.", {"q": Decimal("0.5")}, True),
    ("round(q, 1) = 0.5 and floor(q) = 0 and ceil(q) = 1 and trunc(q) = 0", {"q": Decimal("0.46")}, True),
    ("abs(n) = 2 and sign(q) = -1 and mod(n, 2) = 0", {"n": -2, "q": Decimal(-1)}, True),
    ("round(n::numeric / 2) = 3", {"n": 5}, True),
    ("q = 0.1 + 0.2", {"q": Decimal("0.3")}, True),
    ("case a1 when 'x' then n > 1 when 'y' then true else false end", {"a1": "y"}, True),
    ("case when n > 0 then 10 / n = 5 else false end", {"n": 0}, False),
    ("coalesce(a1, a2, 'none') = 'none'", {}, True),
    ("nullif(a1, '') is null", {"a1": ""}, True),
    ("greatest(n, m) = 3 and least(n, m) = 2", {"n": 2, "m": 3}, True),
    ("length(a1) = 3 and char_length(a1) = 3", {"a1": "abc"}, True),
    ("lower(a1) = 'abc' and upper(a2) = 'X'", {"a1": "ABC", "a2": "x"}, True),
    ("trim(a1) = 'x' and trim(both '-' from a2) = 'y'", {"a1": " x ", "a2": "-y-"}, True),
    ("ltrim(a1, '0') = '7' and rtrim(a2) = 'x' and btrim(a2) = 'x'", {"a1": "007", "a2": "x  "}, True),
    ("substring(a1 from 2 for 2) = 'bc' and substr(a1, 4) = 'd'", {"a1": "abcd"}, True),
    ("left(a1, 1) = 'a' and right(a1, -1) = 'bc'", {"a1": "abc"}, True),
    ("starts_with(a1, a2)", {"a1": "abc", "a2": "ab"}, True),
    ("position('b' in a1) = 2 and strpos(a1, 'c') = 3", {"a1": "abc"}, True),
    ("a1 || '-' || a2 = 'x-y'", {"a1": "x", "a2": "y"}, True),
    ("a1 like 'a%' and a1 not like '%z' and a1 ilike 'A_C'", {"a1": "abc"}, True),
    (r"a1 like '100\%'", {"a1": "100%"}, True),
    ("a1 ~ '^[0-9]{4}-(a|b)+$' and a1 !~ 'z' and a1 ~* 'A'", {"a1": "2024-ab"}, True),
    ("d > '2023-12-31' and d = date '2024-01-01'", {"d": MONDAY}, True),
    ("d + 7 = '2024-01-08' and d - date '2023-12-31' = 1", {"d": MONDAY}, True),
    ("d in ('2024-01-01', '2024-01-02') and d = any(array[date '2024-01-01'])", {"d": MONDAY}, True),
    ("ts > '2024-01-01 11:59:59.5Z' and ts < '2024-01-01T14:00:00+01:00'", {"ts": NOON}, True),
    ("ts = '2024-01-01 12:00'", {"ts": NOON}, True),
    ("ts + interval '1 day 2 hours' = timestamptz '2024-01-02 14:00Z'", {"ts": NOON}, True),
    ("ts - interval '30' minute < timestamp with time zone '2024-01-01 12:00+00'", {"ts": NOON}, True),
    ("ts - '2024-01-01 00:00Z' >= interval '12 hours'", {"ts": NOON}, True),
    ("ts::date = d and d < ts and d + interval '1 day' > d", {"ts": NOON, "d": MONDAY}, True),
    ("extract(isodow from d) = 1 and extract(hour from ts) = 12", {"d": MONDAY, "ts": NOON}, True),
    ("extract(epoch from ts - '2024-01-01') / 3600 = 12", {"ts": NOON}, True),
    ("date_trunc('day', ts) = '2024-01-01'", {"ts": NOON}, True),
    ("j ->> 'a' = 'x' and j -> 'l' -> 0 = '1'", {"j": {"a": "x", "l": [1]}}, True),
    ("j #>> '{a,b}' = 'x' and j #> array['a', 'b'] is not null", {"j": {"a": {"b": "x"}}}, True),
    ("j ? 'a' and j ?| array['a', 'z'] and not j ?& '{a,z}'", {"j": {"a": 1}}, True),
    ("""j @> '{"a": 1}' and '{"a": 1}' <@ j""", {"j": {"a": 1, "b": 2}}, True),
    ("jsonb_typeof(j) = 'array' and jsonb_array_length(j) = 2", {"j": [1, 2]}, True),
    ("(j ->> 'n')::int = 5 and (j -> 'n')::numeric = 5", {"j": {"n": 5}}, True),
    ("a1::integer = 5 and a1::numeric = 5.0 and cast(a1 as bigint) = n", {"a1": "5", "n": 5}, True),
    ("a1::boolean and n::text = '5' and b::text = 'true'", {"a1": "yes", "n": 5, "b": True}, True),
    ("a1::jsonb -> 'a' = '1'", {"a1": '{"a": 1}'}, True),
    ("q::numeric(10, 2) = 0.33 and n::int = 1", {"q": Decimal("0.333"), "n": 1}, True),
    ("task_book = 'failed' and task_pay is null", {"task_book": "failed"}, True),
    ("(a1, n) = ('x', 1)", {"a1": "x", "n": 1}, True),
    ("a1 > 'm'", {}, None),
]


def test_there_are_enough_good_conditions() -> None:
    assert len(GOOD) >= 60


async def test_good_conditions_pass_and_answer(connection: Connection) -> None:
    wrong = []
    for condition, state, expected in GOOD:
        answer = await evaluate(connection, condition, **state)
        if answer is not expected:
            wrong.append(f"{condition[:100]!r} with {state}: expected {expected}, but it is {answer}")
    assert not wrong, "\n".join(wrong)


async def test_conditions_are_inlined_as_the_engine_calls_them(connection: Connection) -> None:
    for condition, _, _ in GOOD:
        function, arguments = await compile_condition(connection, condition)
        columns = ", ".join(f"{name} {NAMES[name]}" for name in arguments) or "nothing text"
        plan = await connection.execute(
            f"explain (verbose) select {function}({', '.join(f's.{name}' for name in arguments)}) "
            f"from generate_series(1, 2) i, jsonb_to_record(jsonb_build_object('i', i)) as s({columns})".encode()
        )
        lines = "\n".join(row[0] for row in await plan.fetchall())
        assert function.split(".")[1] not in lines, f"{condition!r} is called, not inlined:\n{lines}"


async def test_condition_takes_only_what_it_names_in_the_order_of_the_flow(connection: Connection) -> None:
    _, arguments = await compile_condition(connection, "task_book is null and N > 1 and a2 = 'a1 q b' and \"a1\" = 'x'")
    assert arguments == ["a1", "a2", "n", "task_book"]


async def test_same_condition_is_one_function(connection: Connection) -> None:
    first, _ = await compile_condition(connection, "n > 0")
    again, _ = await compile_condition(connection, "n > 0")
    other, _ = await compile_condition(connection, "n > 00")
    assert first == again != other
    assert (
        await value(connection, "select count(*) from pg_proc where pronamespace = 'mutirao_rule'::regnamespace") == 2
    )


async def test_same_words_over_other_types_are_another_function(connection: Connection) -> None:
    made = await connection.execute(
        "select (mutirao.condition_function('here', 'n = m', '{n,m}', array[t, t])).function from unnest('{bigint,text}'::text[]) t"
    )
    assert len(set(await made.fetchall())) == 2


async def test_condition_is_the_owners_without_settings_or_more_rights(connection: Connection) -> None:
    await compile_condition(connection, "ts + interval '1 day' > '2024-01-01'")
    await compile_condition(connection, "n > 0")
    made = await connection.execute(
        "select provolatile::text, prosecdef, proconfig, proisstrict from pg_proc "
        "where pronamespace = 'mutirao_rule'::regnamespace order by 1"
    )
    assert await made.fetchall() == [("i", False, None, False), ("s", False, None, False)]


async def test_two_sessions_make_the_same_condition_at_once(database_url: str) -> None:
    async with (
        await AsyncConnection.connect(database_url) as one,
        await AsyncConnection.connect(database_url) as two,
        await AsyncConnection.connect(database_url, autocommit=True) as three,
    ):
        # In opposite order, each holding what the other wants: neither waits, so neither can be the victim of a deadlock.
        mine = [await compile_condition(one, "n = 1")]
        theirs = [await compile_condition(two, "n = 2")]
        mine.append(await compile_condition(one, "n = 2"))
        theirs.append(await compile_condition(two, "n = 1"))
        assert await compile_condition(two, "n = 1") == theirs[1]
        await one.commit()
        await two.commit()
        for function, _ in mine + theirs:
            assert await value(three, f"select {function}(1) is not null")
        assert await compile_condition(three, "n = 1") == mine[0]


async def test_many_sessions_make_the_same_conditions_at_once(database_url: str) -> None:
    async def define() -> list[tuple[str, list[str]]]:
        async with await AsyncConnection.connect(database_url, autocommit=True) as session:
            return [await compile_condition(session, f"n = {i}") for i in range(10)]

    made = await asyncio.gather(*(define() for _ in range(6)))
    assert all(len(functions) == 10 for functions in made)


async def test_function_made_meanwhile_is_found_in_an_old_snapshot(database_url: str) -> None:
    async with (
        await AsyncConnection.connect(database_url) as old,
        await AsyncConnection.connect(database_url, autocommit=True) as new,
    ):
        await old.execute("set transaction isolation level repeatable read")
        await old.execute("select count(*) from pg_proc")
        made = await compile_condition(new, "n = 1")
        assert await compile_condition(old, "n = 1") == made


async def test_condition_whose_maker_gave_up_can_be_made_again(database_url: str) -> None:
    async with await AsyncConnection.connect(database_url) as session:
        made = await compile_condition(session, "n = 1")
        await session.rollback()
        assert await compile_condition(session, "n = 1") == made
        assert await value(session, f"select {made[0]}(1)")


@pytest.mark.parametrize(
    ("predicate", "is_calm"),
    [
        ("n > 0 and (t = 'x' or t in ('y', 'z') or t is null) and not b", True),
        ("n is distinct from 1 or coalesce(b, false)", True),
        ("n = any (array[1, 2])", True),
        ("n / 2 > 1", False),
        ("n + 1 > 1", False),
        ("t::integer = 1", False),
        ("length(t) = 1", False),
        ("case when n > 0 then n / n = 1 else true end", False),
    ],
)
async def test_only_what_cannot_raise_is_calm(connection: AsyncConnection[Any], predicate: str, is_calm: bool) -> None:
    made = await connection.execute(
        "select (mutirao.condition_function('it', %s, '{n,t,b}', '{bigint,text,boolean}')).function", [predicate]
    )
    found = await connection.execute("select mutirao.condition_is_calm(%s)", await made.fetchone())
    assert await found.fetchone() == (is_calm,)

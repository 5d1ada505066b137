"""The condition gate: what passes, what it then answers, and that nothing else ever runs.

The attacks are data, in condition_attacks.py. Here are those that need a stage: the attacker's own types, operators and settings.
"""

import asyncio
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from condition_attacks import ATTACKS, NAMES, SLIPS
from psycopg import AsyncConnection, Error
from psycopg.types.json import Jsonb

from mutirao.errors import FlowError
from mutirao.model.name import check_attribute_name
from mutirao.model.reserved import HIDDEN_COLUMNS, SQL_WORDS

PLACE = 'condition of task "book_hotel"'

Connection = AsyncConnection[Any]


async def compile_condition(connection: Connection, condition: str | None) -> tuple[str, list[str]]:
    cursor = await connection.execute(
        "select (c).function, (c).arguments from (select mutirao.condition_function(%s, %s, %s, %s) as c offset 0) x",
        (PLACE, condition, list(NAMES), list(NAMES.values())),
    )
    row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1]


async def refusal(connection: Connection, condition: str) -> str:
    """The one line with which the gate refuses a condition."""
    refused: Error | None = None
    try:
        function, _ = await compile_condition(connection, condition)
    except Error as error:
        refused = error
    if refused is None:
        return f"accepted as {function}"
    assert (refused.sqlstate or "").startswith("MU1"), f"{condition!r} was not refused by the gate: {refused}"
    message = refused.diag.message_primary or ""
    assert "\n" not in message
    return message


async def value(connection: Connection, query: str) -> Any:
    row = await (await connection.execute(query.encode())).fetchone()
    assert row is not None
    return row[0]


async def evaluate(connection: Connection, condition: str, **state: Any) -> bool | None:
    function, arguments = await compile_condition(connection, condition)
    holes = ", ".join(f"%s::{NAMES[name]}" for name in arguments)
    values = [Jsonb(state[name]) if NAMES[name] == "jsonb" and name in state else state.get(name) for name in arguments]
    row = await (await connection.execute(f"select {function}({holes})".encode(), values)).fetchone()
    assert row is not None
    answer: bool | None = row[0]
    return answer


@pytest.fixture
async def stage(connection: Connection) -> Connection:
    """A database in which an attacker has put everything that a condition could be made to run."""
    await connection.execute(
        """
        create table public.canary (what text);
        create schema evil;
        create function evil.boom(text) returns boolean language plpgsql as
          $$ begin insert into public.canary values ($1); return true; end $$;
        create function public.boom(text) returns boolean language sql return evil.boom($1);
        create function evil.differs(text, text) returns boolean language sql return evil.boom($1);
        create operator evil.= (leftarg = text, rightarg = text, function = evil.differs);
        create domain evil.trap as text check (evil.boom(value));
        create domain public.trap_domain as text check (evil.boom(value));
        create type public.trap_row as (a public.trap_domain);
        create collation evil.c from "C";
        set search_path = evil, public
        """
    )
    return connection


async def nothing_happened(connection: Connection) -> None:
    assert await value(connection, "select count(*) from public.canary") == 0
    assert (
        await value(connection, "select count(*) from pg_proc where pronamespace = 'mutirao_rule'::regnamespace") == 0
    )
    assert await value(connection, "select count(*) from pg_class where relnamespace = pg_my_temp_schema()") == 0


# ------------------------------------------------------------------------------------------------------- attacks


def test_there_are_enough_attacks_and_none_twice() -> None:
    conditions = [attack.condition for family in ATTACKS.values() for attack in family]
    assert len(conditions) >= 130
    assert len(conditions) == len(set(conditions))


@pytest.mark.parametrize("family", ATTACKS)
async def test_attacks_are_refused_for_their_reason_and_nothing_runs(stage: Connection, family: str) -> None:
    wrong = []
    for attack in ATTACKS[family]:
        message = await refusal(stage, attack.condition)
        if not message.startswith(f"{attack.code}: {PLACE}") or attack.says not in message:
            wrong.append(f"{attack.condition[:100]!r}: expected {attack.code} … {attack.says}\n  but it is {message}")
    assert not wrong, "\n".join(wrong)
    await nothing_happened(stage)


@pytest.mark.parametrize("family", SLIPS)
async def test_slips_are_told_what_would_be_right(connection: Connection, family: str) -> None:
    wrong = []
    for slip in SLIPS[family]:
        message = await refusal(connection, slip.condition)
        if not message.startswith(f"{slip.code}: {PLACE}") or slip.says not in message:
            wrong.append(f"{slip.condition!r}: expected {slip.code} … {slip.says}\n  but it is {message}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("wanted", "nearest"),
    [
        ("dnoe", "done"),
        ("doen", "done"),
        ("don", "done"),
        ("Done", "done"),
        ("gone", "done"),
        ("deno", None),
        ("x", None),
    ],
)
async def test_nearest_name_is_one_slip_away(connection: Connection, wanted: str, nearest: str | None) -> None:
    made = await connection.execute("select mutirao.nearest_name(%s, array['task_x1', 'done'])", (wanted,))
    assert await made.fetchone() == (nearest,)


async def test_none_is_null_even_beside_an_attribute_of_a_near_name(connection: Connection) -> None:
    with pytest.raises(Error, match=r'unknown_attribute: .* no attribute "none"; write null, as in is null'):
        await connection.execute("select mutirao.condition_function('here', 'x is None', '{x,done}', '{text,boolean}')")


# Without the list of words these would pass, and do no harm.
HARMLESS = {"a1 operator(=) 'x'", "row(a1, a2) = row('x', 'y')", "treat(a1 as text) = 'x'", "a1 ~~ 'x'"}


async def test_analysed_tree_is_refused_even_if_every_word_were_allowed(stage: Connection) -> None:
    conditions = [a.condition for family in ATTACKS.values() for a in family if a.condition not in HARMLESS]
    await stage.execute(
        """
        insert into mutirao.condition_allow (kind, name)
        select distinct case t.kind when 'word' then 'word' else 'operator_token' end, coalesce(t.word, t.token)
        from unnest(%s::text[]) c, unnest(mutirao.condition_tokens(c)) t where t.kind in ('word', 'operator')
        on conflict do nothing
        """,
        (conditions,),
    )
    accepted = [c for c in conditions if (await refusal(stage, c)).startswith("accepted")]
    assert accepted == []
    await nothing_happened(stage)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("length(repeat('a', 1000000000)) > 0", "the function repeat(text,integer)"),
        ("now() is not null", "the function now()"),
        ("random() > 0", "the function random()"),
        ("count(*) > 0", "an aggregate"),
        ("generate_series(1, 10) = 1", "a set"),
        ("nextval('pg_class') > 0", "the function nextval(regclass)"),
        ("'pg_class'::regclass is null", "a value of the type regclass"),
        ("'x'::name is null", "a value of the type name"),
        ("name 'x' = 'x'", "the operator =(name,name)"),
        ("pg_sleep(1) is null", "the function pg_sleep(double precision)"),
    ],
)
async def test_attribute_named_like_a_function_or_type_does_not_open_it(
    stage: Connection, condition: str, says: str
) -> None:
    names = ["repeat", "now", "random", "count", "generate_series", "nextval", "regclass", "name", "pg_sleep"]
    with pytest.raises(Error, match="condition_refused") as refused:
        await stage.execute(
            "select mutirao.condition_function('here', %s, %s, %s)", (condition, names, ["text"] * len(names))
        )
    assert says in str(refused.value)
    await nothing_happened(stage)


@pytest.mark.parametrize(
    "condition",
    [
        "'(boo)'::trap is null",
        "'{boo}'::trap[] is null",
        "cast('(boo)' as trap) is null",
        "trap '(boo)' is null",
        "'(boo)'::\"trap\" is null",
        "trap = 'boo'",
    ],
)
async def test_temporary_types_are_out_of_reach(stage: Connection, condition: str) -> None:
    # The input function of such a type runs the check of its domain while the condition is only analysed.
    await stage.execute("create type pg_temp.trap as (a public.trap_domain)")
    assert 'condition_refused: condition of task "book_hotel", character' in await refusal(stage, condition)
    assert await value(stage, "select count(*) from public.canary") == 0


async def test_temporary_functions_and_operators_are_out_of_reach(stage: Connection) -> None:
    await stage.execute(
        """
        create function pg_temp.length(text) returns int language plpgsql as
          $$ begin insert into public.canary values ($1); return 1; end $$;
        create operator pg_temp.= (leftarg = text, rightarg = text, function = evil.differs)
        """
    )
    await stage.execute("set search_path = pg_temp, evil, public")
    assert await evaluate(stage, "length(a1) = 3 and a2 = 'x'", a1="abc", a2="x") is True
    assert await value(stage, "select count(*) from public.canary") == 0


async def test_operators_and_functions_of_the_sessions_path_are_out_of_reach(stage: Connection) -> None:
    await stage.execute(
        "create function evil.lower(text) returns text language plpgsql as "
        "$$ begin insert into public.canary values ($1); return $1; end $$; set search_path = evil, pg_catalog"
    )
    assert await evaluate(stage, "lower(a1) = 'abc'", a1="ABC") is True
    assert await value(stage, "select count(*) from public.canary") == 0


@pytest.mark.parametrize(
    ("setting", "condition", "answer"),
    [
        ("standard_conforming_strings = off", r"a1 = 'x\' or a2 = ' or true or '", None),
        ("transform_null_equals = on", "a1 = (null)", None),
        ("check_function_bodies = off", "n > 0", None),
        ("quote_all_identifiers = on", "substring(a1 from 1 for 1) is null", True),
        ("datestyle = 'German, DMY'", "d is null or d = '2024-02-01'", True),
        ("timezone = 'America/Sao_Paulo'", "ts is null or ts = '2024-02-01 10:00'", True),
        ("default_transaction_isolation = 'serializable'", "a1 is null", True),
    ],
)
async def test_settings_of_the_session_change_no_meaning(
    stage: Connection, setting: str, condition: str, answer: bool | None
) -> None:
    await stage.execute(f"set {setting}".encode())
    assert await evaluate(stage, condition) is answer


async def test_wrong_type_is_refused_whatever_the_session_has_set(stage: Connection) -> None:
    await stage.execute("set check_function_bodies = off")
    assert "condition_type" in await refusal(stage, "n")
    await nothing_happened(stage)


async def test_refusal_leaves_the_transaction_as_it_was(stage: Connection) -> None:
    async with stage.transaction():
        await stage.execute("create table kept (n int)")
        with pytest.raises(Error, match="condition_refused"):
            async with stage.transaction():
                await compile_condition(stage, "round(n) = 1")
        await compile_condition(stage, "n = 1")
    assert await value(stage, "select count(*) from kept") == 0
    assert await value(stage, "select count(*) from pg_proc where pronamespace = 'mutirao_rule'::regnamespace") == 1


async def test_no_condition_is_the_same_as_an_empty_one(connection: Connection) -> None:
    with pytest.raises(Error, match=r"condition_syntax: .* it is empty"):
        await compile_condition(connection, None)


async def test_flow_without_attributes_says_so(connection: Connection) -> None:
    with pytest.raises(Error, match='there is no attribute "a"; the flow declares none'):
        await connection.execute("select mutirao.condition_function('here', 'a = 1', null, null)")


# ------------------------------------------------------------------------------------------------- what is allowed

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


# ---------------------------------------------------------------------------------------------- names of attributes


@pytest.mark.parametrize(
    "name",
    ["a1", "stage", "hotel_name", "x" * 48, "name", "type", "status", "date", "text", "day", "version", "length"],
)
async def test_plain_names_may_be_attributes(connection: Connection, name: str) -> None:
    await connection.execute("select mutirao.check_attribute_name(%s)", (name,))
    made = await connection.execute(
        "select mutirao.condition_function('here', %s, array[%s], '{text}')",
        (f"{name} is not null and length({name}) > 1", name),
    )
    assert await made.fetchone() is not None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("select", "SQL reserves this word; choose another, such as select_"),
        ("user", "SQL reserves this word"),
        ("left", "SQL reserves this word"),
        ("between", "SQL reserves this word"),
        ("time", "SQL reserves this word"),
        ("json", "SQL reserves this word"),
        ("system_user", "SQL reserves this word"),
        ("task_book", "the states of tasks"),
        ("wid", "the instance's own number"),
        ("ctid", "a hidden column"),
        ("tableoid", "a hidden column"),
        ("", "a name is a lowercase letter"),
        ("A1", "a name is a lowercase letter"),
        ("1a", "a name is a lowercase letter"),
        ("_a", "a name is a lowercase letter"),
        ("a b", "a name is a lowercase letter"),
        ("a\n", "a name is a lowercase letter"),
        ("a;drop", "a name is a lowercase letter"),
        ("ação", "a name is a lowercase letter"),
        ("x" * 49, "at most 47"),
        (None, "a name is a lowercase letter"),
    ],
)
async def test_names_that_are_taken_are_refused(connection: Connection, name: str | None, says: str) -> None:
    with pytest.raises(Error) as refused:
        await connection.execute("select mutirao.check_attribute_name(%s)", (name,))
    assert refused.value.sqlstate == "MU106"
    message = refused.value.diag.message_primary or ""
    assert message.startswith("attribute_reserved: ")
    assert says in message


async def test_a_definition_is_refused_the_same_words_without_an_engine(connection: Connection) -> None:
    """What servers of other versions reserve is refused everywhere, so both lists are the same on all of them."""
    found = await connection.execute("select word from pg_get_keywords() where catcode <> 'U'")
    assert {word for (word,) in await found.fetchall()} <= SQL_WORDS
    for word in sorted(SQL_WORDS | HIDDEN_COLUMNS):
        with pytest.raises(FlowError) as refused:
            check_attribute_name(f'attribute "{word}"', word)
        with pytest.raises(Error, match=re.escape(str(refused.value))):
            await connection.execute("select mutirao.check_attribute_name(%s)", (word,))


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

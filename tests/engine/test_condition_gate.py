"""The condition gate: nothing that is not allowed ever runs, and a refusal says what would be right.

The attacks are data, in condition_attacks.py. Here are those that need a stage: the attacker's own types, operators and settings.
"""

import pytest
from condition_attacks import ATTACKS, SLIPS
from conditions import PLACE, Connection, compile_condition, evaluate, value
from psycopg import Error


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

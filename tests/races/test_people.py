"""Two who change people at once: the second stands before the first's lock, and then sees what that has done."""

import psycopg
import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import run, running, session, until_it_waits

ADD = "select mutirao.add_person(null, %s, roles => %s)"
FIRST = "select mutirao.first_administrator('administrator', 'a hash')"
AWAY = "select mutirao.set_away(null, %s, mutirao.now(), substitute => %s)"


async def add(engine: Engine, name: str, *roles: str) -> int:
    return int(await engine.one(ADD, name, list(roles)))


async def both(engine: Engine, first: tuple[str, list[int]], second: tuple[str, list[int]]) -> list[object]:
    """The second begins while the first is not committed; answers what the second is told."""
    async with session(engine) as one, session(engine) as other:
        await run(one, first[0], *first[1])
        waiting = running(other, second[0], *second[1])
        await until_it_waits(engine, other)
        await one.commit()
        [row] = await waiting
        await other.commit()
    return list(row)


async def test_of_two_first_starts_one_makes_the_administrator(engine: Engine) -> None:
    assert await both(engine, (FIRST, []), (FIRST, [])) == [None]
    assert await engine.one("select count(*) from mutirao.person") == 1


@pytest.mark.parametrize("act", ["disable_person(null, {})", "take_out_of_role(null, 1, array[{}])"])
async def test_of_two_administrators_who_go_at_once_one_stays(engine: Engine, act: str) -> None:
    one = await add(engine, "first", "administrator")
    other = await add(engine, "second", "administrator")
    statement = f"select mutirao.{act.format('%s')}"
    with pytest.raises(psycopg.Error, match="last_administrator"):
        await both(engine, ("select mutirao.disable_person(null, %s)", [one]), (statement, [other]))
    assert await engine.one("select count(*) from mutirao.person where disabled_at is null") == 1


async def test_two_who_choose_each_other_as_substitutes_make_no_circle(engine: Engine) -> None:
    one = await add(engine, "clerk_1")
    other = await add(engine, "clerk_2")
    with pytest.raises(psycopg.Error, match="wrong_substitute"):
        await both(engine, (AWAY, [one, other]), (AWAY, [other, one]))


async def test_a_role_that_a_flow_is_about_to_need_stays(engine: Engine) -> None:
    role = int(await engine.one("select mutirao.add_role(null, 'clerk')"))
    document = '{"name": "request", "attributes": [{"name": "a", "type": "text"}], "ends": "quiet", "tasks": [{"name": "approve", "when": "a is null", "offer": {"role": "clerk"}}]}'
    with pytest.raises(psycopg.Error, match="role_used"):
        await both(
            engine,
            (f"select mutirao.apply_flow('{document}')", []),
            ("select mutirao.remove_role(null, %s)", [role]),
        )
    assert await engine.one("select count(*) from mutirao.role where name = 'clerk' and removed_at is null") == 1


async def test_a_new_password_and_a_guess_do_not_stand_in_each_others_way(engine: Engine) -> None:
    person = await add(engine, "clerk_1")
    guess = "select * from mutirao.begin_sign_in('clerk_1', 'elsewhere')"
    change = "select mutirao.set_password(null, %s, 'a hash')"
    await engine.rows(guess)
    async with session(engine) as one, session(engine) as guessing, session(engine) as changing:
        await run(one, "select from mutirao_secret.attempt where kind = 'name' for update")
        changed = running(changing, change, person)
        await until_it_waits(engine, changing)
        guessed = running(guessing, guess)
        await until_it_waits(engine, guessing)
        await one.commit()
        await changed
        await changing.commit()
        await guessed
        await guessing.commit()

"""A clock that moves an item, against whoever has it in hand at that moment; and two clocks."""

from datetime import timedelta

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import run, running, session, until_it_waits

TICK = "select (done ->> 'deadlines')::int from mutirao.turn_clock(duty => 'deadlines')"
MANAGER, CLERK, OTHER = 1, 2, 3


@pytest.fixture
async def item(engine: Engine) -> int:
    """A work item that is to move now, for clerks 2 and 3; person 1 is in charge."""
    await engine.rows(
        "insert into mutirao.person (name, made_by, made_at) values ('manager', 't', now()), ('clerk_1', 't', now()), ('clerk_2', 't', now())"
    )
    await engine.rows("insert into mutirao.role (name, made_at) values ('clerk', now()), ('manager', now())")
    await engine.rows(
        "insert into mutirao.member (role, person) select r.id, p.id from mutirao.role r, mutirao.person p where p.name like r.name || '%%'"
    )
    offer = {"role": "clerk", "deadline": timedelta(hours=48).total_seconds()}
    await engine.apply("f", {"a": 0}, {"do": {"when": "a = 0", "offer": offer}}, final="a = 1", creator="manager")
    instance = await engine.one("select mutirao.create_instance(%s, 'f')", MANAGER)
    return await engine.job(instance, "do")


async def how_it_stands(engine: Engine, item: int) -> tuple[str, int | None, int | None, bool]:
    ((status, person, offered_to, moved),) = await engine.rows(
        "select status::text, person, offered_to, coalesce(transferred, false) from mutirao.job where id = %s", item
    )
    return status, person, offered_to, moved


async def told(engine: Engine) -> list[tuple[int, str]]:
    return [tuple(row) for row in await engine.rows("select person, kind from mutirao.message order by id offset 1")]


async def test_an_item_that_is_being_selected_moves_at_the_next_turn(engine: Engine, item: int) -> None:
    await engine.advance(hours=25)
    async with session(engine) as clerk:
        await run(clerk, "select mutirao.select_item(%s, %s)", CLERK, item)
        assert await engine.one(TICK) == 0
        await clerk.commit()
    assert await engine.one(TICK) == 1
    assert await how_it_stands(engine, item) == ("ready", None, MANAGER, True)
    assert sorted(await told(engine)) == [(MANAGER, "transferred"), (CLERK, "transferred")]


async def test_who_selects_while_it_moves_is_told_that_it_is_not_theirs(engine: Engine, item: int) -> None:
    await engine.advance(hours=25)
    async with session(engine) as clock, session(engine) as clerk:
        await run(clock, TICK)
        selecting = running(clerk, "select mutirao.select_item(%s, %s)", CLERK, item)
        await until_it_waits(engine, clerk)
        await clock.commit()
        with pytest.raises(Exception, match=r"forbidden: work item .* it is offered to"):
            await selecting
    assert await how_it_stands(engine, item) == ("ready", None, MANAGER, True)


async def test_who_finishes_first_has_finished_and_nothing_moves(engine: Engine, item: int) -> None:
    attempt = await engine.one("select mutirao.select_item(%s, %s)", CLERK, item)
    await engine.advance(hours=25)
    async with session(engine) as clerk:
        found = await run(
            clerk, "select outcome from mutirao.finish_item(%s, %s, %s, '{\"a\": 1}')", CLERK, item, attempt
        )
        assert found == [("done",)]
        assert await engine.one(TICK) == 0
        await clerk.commit()
    assert await engine.one(TICK) == 0
    assert await told(engine) == [(MANAGER, "instance_ended")]


async def test_who_finishes_while_it_moves_is_refused_and_the_result_is_kept(engine: Engine, item: int) -> None:
    attempt = await engine.one("select mutirao.select_item(%s, %s)", CLERK, item)
    await engine.advance(hours=25)
    async with session(engine) as clock, session(engine) as clerk:
        await run(clock, TICK)
        finishing = running(
            clerk, "select outcome, code from mutirao.finish_item(%s, %s, %s, '{\"a\": 1}')", CLERK, item, attempt
        )
        await until_it_waits(engine, clerk)
        await clock.commit()
        assert await finishing == [("refused", "item_moved")]
        await clerk.commit()
    assert await engine.one("select count(*) from mutirao.attachment") == 1
    assert await how_it_stands(engine, item) == ("ready", None, MANAGER, True)


async def test_an_item_that_is_being_delegated_moves_at_the_next_turn(engine: Engine, item: int) -> None:
    await engine.one("select mutirao.select_item(%s, %s)", CLERK, item)
    await engine.advance(hours=25)
    async with session(engine) as clerk:
        await run(clerk, "select mutirao.delegate_item(%s, %s, %s)", CLERK, item, OTHER)
        assert await engine.one(TICK) == 0
        await clerk.commit()
    assert await engine.one(TICK) == 1
    assert await how_it_stands(engine, item) == ("ready", None, MANAGER, True)


async def test_who_delegates_while_it_moves_has_it_no_more(engine: Engine, item: int) -> None:
    await engine.one("select mutirao.select_item(%s, %s)", CLERK, item)
    await engine.advance(hours=25)
    async with session(engine) as clock, session(engine) as clerk:
        await run(clock, TICK)
        delegating = running(clerk, "select mutirao.delegate_item(%s, %s, %s)", CLERK, item, OTHER)
        await until_it_waits(engine, clerk)
        await clock.commit()
        with pytest.raises(Exception, match="forbidden"):
            await delegating
    assert await how_it_stands(engine, item) == ("ready", None, MANAGER, True)


async def test_two_clocks_tell_once(engine: Engine, item: int) -> None:
    await engine.advance(hours=25)
    async with session(engine) as first, session(engine) as second:
        assert await run(first, TICK) == [(1,)]
        assert await run(second, TICK) == [(0,)]
        await first.commit()
        assert await run(second, TICK) == [(0,)]
        await second.commit()
    assert await told(engine) == [(MANAGER, "transferred")]
    assert await how_it_stands(engine, item) == ("ready", None, MANAGER, True)


async def test_a_clock_that_is_killed_has_told_nobody(engine: Engine, item: int) -> None:
    await engine.advance(hours=25)
    before = await engine.everything()
    async with session(engine) as clock:
        assert await run(clock, TICK) == [(1,)]
        await engine.rows("select pg_terminate_backend(%s)", clock.info.backend_pid)
        await clock.close()
    assert await engine.everything() == before
    assert await engine.one(TICK) == 1
    assert await how_it_stands(engine, item) == ("ready", None, MANAGER, True)

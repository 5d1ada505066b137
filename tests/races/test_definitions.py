"""Definitions that are made while instances move, and by several at once."""

import asyncio

import psycopg
import pytest
from driver import Engine, document, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import at_once, run, session
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

ADD = "insert into f.wed_trig (trname, cpred) values (%s, $$a <> 'done'$$)"


async def live(engine: Engine) -> int:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'", "stay": "a <> 'done'"}, final="a = 'done'")
    return await engine.start("f")


async def test_a_definition_committed_while_a_completion_is_open_is_caught_up_with(engine: Engine) -> None:
    instance = await live(engine)
    job = await engine.take("f", "go")
    async with session(engine) as worker:
        await run(worker, "select mutirao.complete(%s, %s, %s)", job.id, job.attempt, Jsonb({"a": "y"}))
        await engine.rows(ADD, "more")
        # The clock passes by: the instance is busy, so it must come again, however often.
        for _ in range(3):
            await at_once(engine, "select * from mutirao.turn_clock()")
        await worker.commit()
    assert await engine.jobs(instance) == {"stay": "ready"}  # the completion knew nothing of it
    await engine.until_caught_up()
    assert await engine.jobs(instance) == {"stay": "ready", "more": "ready"}


async def test_an_instance_started_under_the_old_version_and_committed_late_is_caught_up_with(engine: Engine) -> None:
    await live(engine)
    async with session(engine) as starter:
        ((late,),) = await run(starter, "select mutirao.start('f')")
        await engine.rows(ADD, "more")
        for _ in range(3):
            await engine.tick()
        # It cannot see the late one, and must not think that it is done.
        assert await engine.rows("select from mutirao.recheck") == [()]
        await starter.commit()
    await engine.until_caught_up()
    assert await engine.jobs(late) == {"go": "ready", "stay": "ready", "more": "ready"}


async def test_completions_go_on_while_a_definition_is_open(engine: Engine) -> None:
    instance = await live(engine)
    async with session(engine) as definer:
        await run(definer, "insert into f.wed_attr (aname, adv) values ('b', '1')")
        await run(definer, ADD, "more")
        await at_once(engine, "select mutirao.start('f')")
        ids = list(await engine.tasks("f", "go"))
        jobs = await at_once(engine, "select job, attempt from mutirao.claim('w', %s::int[], 9)", ids)
        for job, attempt in jobs:
            assert await at_once(engine, "select mutirao.complete(%s, %s, %s)", job, attempt, Jsonb({"a": "y"})) == [
                ("ok",)
            ]
        await at_once(engine, "select * from mutirao.turn_clock()")
        await definer.commit()
    await engine.tick()
    assert await engine.jobs(instance) == {"stay": "ready", "more": "ready"}
    assert await engine.state(instance) == {"a": "y", "b": "1"}


async def test_of_two_definers_of_one_flow_the_second_is_told_to_try_again(engine: Engine) -> None:
    await live(engine)
    async with session(engine) as first:
        await run(first, ADD, "one")
        async with engine.refused("definition_busy", 'flow "f"'):
            await engine.rows(ADD, "two")
        await first.commit()
    await engine.rows(ADD, "two")
    assert await engine.rows("select trname from f.wed_trig where not cfinal order by 1") == [
        ("go",),
        ("one",),
        ("stay",),
        ("two",),
    ]
    assert await engine.one("select max(number) from mutirao.version") == 3


async def test_of_two_flows_of_one_name_the_second_is_refused_unless_the_first_is_taken_back(engine: Engine) -> None:
    for commits in (False, True):
        async with session(engine) as first, session(engine) as second:
            await run(first, "select mutirao.create_flow('g')")
            with pytest.raises(psycopg.Error, match=r"^definition_busy: "):
                await run(second, "select mutirao.create_flow('g')")
            await second.rollback()
            await (first.commit() if commits else first.rollback())
            if commits:
                with pytest.raises(psycopg.Error, match=r"^flow_exists: "):
                    await run(second, "select mutirao.create_flow('g')")
            else:
                await run(second, "select mutirao.create_flow('g')")
            await second.rollback()


async def test_eight_workers_that_apply_the_same_flow_at_once_make_one_version(engine: Engine) -> None:
    flow = Jsonb(document("p", {"a": 0}, {"go": "a = 0"}, final="a = 1"))

    async def apply() -> int:
        while True:
            try:
                return int(await engine.one("select mutirao.apply_flow(%s, true)", flow))
            except psycopg.Error as error:
                if not str(error).startswith("definition_busy: "):
                    raise

    assert await asyncio.gather(*(apply() for _ in range(8))) == [1] * 8
    assert await engine.one("select count(*) from mutirao.version") == 1


async def test_eight_flows_that_share_their_conditions_are_made_at_once(engine: Engine) -> None:
    conditions = {f"t{n}": f"a = {n}" for n in range(6)}
    backwards = dict(reversed(conditions.items()))
    await asyncio.gather(
        *(engine.apply(f"p{n}", {"a": 0}, backwards if n % 2 else conditions, final="a = 9") for n in range(8))
    )
    for n in range(8):
        assert await engine.jobs(await engine.start(f"p{n}")) == {"t0": "ready"}


@pytest.mark.parametrize("writes", [False, True])
async def test_a_transaction_of_another_database_is_not_waited_for(engine: Engine, writes: bool) -> None:
    instance = await live(engine)
    elsewhere = make_conninfo(engine.url, dbname="postgres")
    async with await psycopg.AsyncConnection.connect(elsewhere) as other:
        await run(other, "select pg_current_xact_id()" if writes else "select 1")
        await engine.rows(ADD, "more")
        await engine.tick()
        await engine.tick()
        assert await engine.rows("select from mutirao.recheck") == []
    assert await engine.jobs(instance) == {"go": "ready", "stay": "ready", "more": "ready"}


@pytest.mark.parametrize("writes", [False, True])
async def test_a_transaction_of_this_database_is_waited_for(engine: Engine, writes: bool) -> None:
    await live(engine)
    async with session(engine) as other:
        await run(other, "select pg_current_xact_id()" if writes else "select 1")
        await engine.rows(ADD, "more")
        await engine.tick()
        await engine.tick()
        assert await engine.rows("select from mutirao.recheck") == [()]
    await engine.tick()
    assert await engine.rows("select from mutirao.recheck") == []


async def test_a_pass_goes_on_page_by_page_and_comes_back_to_what_it_skipped(engine: Engine) -> None:
    instance = await live(engine)
    await engine.apply("other", {"a": 1}, {"go": "a = 1"})
    await engine.start_many("other", [{}] * 2000)
    last = await engine.start("f")
    version = "select version from mutirao.recheck"
    await engine.until_caught_up()
    async with session(engine) as writer:
        await engine.rows(ADD, "more")
        await run(writer, "select from mutirao.instance where id = %s for update", instance)
        step = f"select looked, is_midway from mutirao.look_again_at(({version}), 100)"
        assert await at_once(engine, step) == [(0, True)]
        assert await engine.one("select after from mutirao.recheck") == 2000
        assert await at_once(engine, step) == [(1, False)]
        await writer.commit()
    await engine.until_caught_up()
    for each in (instance, last):
        assert await engine.jobs(each) == {"go": "ready", "stay": "ready", "more": "ready"}


async def test_clocks_rest_after_a_step_and_who_turns_by_hand_does_not(engine: Engine) -> None:
    await live(engine)
    await engine.until_caught_up()
    turn = "select (done -> 'versions')::int, next_at > mutirao.now() from mutirao.turn_clock(500, 'versions')"
    await engine.rows("delete from mutirao.rest")
    await engine.rows(ADD, "more")
    assert await engine.rows(turn) == [(1, True)]
    assert await engine.one("select count(*) from mutirao.rest") == 1
    await engine.rows("update mutirao.rest set until = clock_timestamp() + interval '1 hour'")
    await engine.rows(ADD, "most")
    assert await engine.rows(turn) == [(0, True)]
    assert (await engine.tick())[2] == 1


async def test_an_ordering_and_a_definition_of_a_flow_that_it_lists_are_made_one_after_another(engine: Engine) -> None:
    """Neither sees the other before it is committed: one would not know of tasks, or the other not of its being listed."""
    once = {"when": "true", "fires": "once"}
    for p in (1, 2):
        await engine.apply(f"p_{p}", {}, {f"t_{p}": once}, ends="quiet")
    ordering = Jsonb({"first": "p_1", "second": "p_2", "pairs": [["t_1", "t_2"]]})
    apply = "select mutirao.apply_flow(%s)", Jsonb(document("p_2", {"x": 1}, {"t_2": once}, ends="quiet"))
    async with session(engine) as definer:
        await run(definer, *apply)
        async with engine.refused("definition_busy", 'flow "p_2"'):
            await engine.rows("select mutirao.put_ordering(%s)", ordering)
        await definer.rollback()
    async with session(engine) as librarian:
        await run(librarian, "select mutirao.put_ordering(%s)", ordering)
        async with engine.refused("definition_busy", 'flow "p_2"'):
            await engine.rows(*apply)
        await librarian.commit()
    await engine.rows(*apply)
    await engine.start("p_1")
    two = await engine.start("p_2")
    assert await engine.rows("select gate from mutirao.job where instance = %s", two) == [("waits",)]

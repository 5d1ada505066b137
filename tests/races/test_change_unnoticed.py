"""Nobody waits for a definition, and a definition waits for nobody: 200 ms at most, however long others stay where they are."""

from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from load import WAITS, Load
from probe import at_once, run, session
from psycopg import AsyncConnection

ADD = "insert into f.wed_attr (aname, adv) values (%s, '1')"


async def live(engine: Engine) -> int:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'", "stay": "a <> 'done'"}, final="a = 'done'")
    return await engine.start("f")


async def columns(engine: Engine) -> list[str]:
    found = await engine.rows(
        "select attname::text from pg_attribute where attrelid = 'f.wed_flow'::regclass and attnum > 0 order by attnum"
    )
    return [name for (name,) in found]


async def test_who_reads_the_view_for_hours_holds_up_no_definition(engine: Engine) -> None:
    instance = await live(engine)
    async with session(engine) as reader, await AsyncConnection.connect(engine.url, options=WAITS) as definer:
        await run(reader, "select * from f.wed_flow")
        await run(definer, ADD, "b")
        await definer.commit()
        await engine.tick()
        assert await columns(engine) == ["wid", "a"]
        assert await engine.state(instance) == {"a": "x", "b": "1"}
        # The view can be used as it is meanwhile, and by others.
        assert await at_once(engine, "insert into f.wed_flow (a) values ('x') returning a") == [("x",)]
    await engine.tick()
    assert await columns(engine) == ["wid", "a", "b"]
    assert await engine.rows("select from mutirao.stale_view") == []


async def test_a_dropped_attribute_that_the_view_still_shows_hinders_no_start(engine: Engine) -> None:
    await live(engine)
    await engine.rows(ADD, "b")
    async with session(engine) as reader:
        await run(reader, "select * from f.wed_flow")
        await engine.rows("delete from f.wed_attr where aname = 'b'")
        assert await columns(engine) == ["wid", "a", "b"]
        ((started,),) = await at_once(engine, "insert into f.wed_flow (a, b) values ('x', null) returning wid")
        assert await engine.state(started) == {"a": "x"}
    await engine.tick()
    assert await columns(engine) == ["wid", "a"]


async def test_who_defines_for_hours_holds_up_nobody(engine: Engine) -> None:
    instance = await live(engine)
    async with session(engine) as definer:
        await run(definer, ADD, "b")
        await run(definer, "update f.wed_trig set cpred = $$a = 'x' and b = '1'$$ where trname = 'go'")
        await run(definer, "delete from f.wed_trig where trname = 'stay'")
        for statement in (
            "select * from f.wed_flow",
            "insert into f.wed_flow default values",
            f"select mutirao.set({instance}, '{{}}')",
            "select * from take('go')".replace("take", "f.take"),
            "select * from mutirao.turn_clock()",
        ):
            await at_once(engine, statement)
        assert await columns(engine) == ["wid", "a"]
        await definer.commit()
    assert await columns(engine) == ["wid", "a", "b"]


async def test_a_definition_does_not_wait_for_a_clock_at_work(engine: Engine) -> None:
    await live(engine)
    await engine.rows(ADD, "b")
    async with session(engine) as clock:
        await run(clock, "select * from mutirao.turn_clock()")
        await at_once(engine, ADD, "c")
        await at_once(engine, "select * from mutirao.turn_clock()")
        await clock.commit()
    await engine.until_caught_up()
    assert await engine.one("select count(distinct version) from mutirao.instance") == 1


async def test_an_instance_started_in_a_transaction_that_began_after_the_definition_did_is_caught_up_with(
    engine: Engine,
) -> None:
    await live(engine)
    async with session(engine) as definer, session(engine) as starter:
        await run(definer, "insert into f.wed_trig (trname, cpred) values ('more', $$a = 'x'$$)")
        ((late,),) = await run(starter, "select mutirao.start('f')")
        await definer.commit()
        for _ in range(3):
            await engine.tick()
        assert await engine.rows("select from mutirao.recheck") == [()]
        await starter.commit()
    await engine.until_caught_up()
    assert await engine.jobs(late) == {"go": "ready", "stay": "ready", "more": "ready"}


async def test_under_load_nobody_waits_and_nothing_is_lost(engine: Engine) -> None:
    """Every session has a lock_timeout of 200 ms: one that waited longer would end with an error."""
    load = Load(engine)
    await load.run(CHANGES * 2)
    await engine.until_caught_up()
    await load.finish()
    assert await engine.rows("select id, reasons, pending from mutirao.instance") == []
    assert await engine.rows("select count(*) filter (where state ->> 'a' = 'done'), count(*) from mutirao.closed") == [
        (load.started, load.started)
    ]


CHANGES = (
    "insert into f.wed_attr (aname, adv) values ('b', '1')",
    "insert into f.wed_trig (trname, cpred) values ('more', $$b = '1' and a = 'x'$$)",
    "update f.wed_trig set enabled = false where trname = 'more'",
    "update f.wed_trig set enabled = true, cpred = $$b = '2'$$ where trname = 'more'",
    "delete from f.wed_trig where trname = 'more'",
    "update f.wed_attr set atype = 'integer' where aname = 'b'",
    "delete from f.wed_attr where aname = 'b'",
)

"""Finished instances of a live flow, when a new version would not call them finished."""

import pytest
from batch_driver import count, drive, step
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb
from staff import furnish

LATER = "update f.wed_trig set cpred = $$a = 'over'$$ where cfinal"


async def live(engine: Engine, *ends: str) -> list[int]:
    """A flow, and an instance that has ended with each of these states."""
    await engine.create("f", {"a": "x", "b": None}, {"go": "a = 'x'"}, final="a in ('done', 'over')")
    ended = []
    for end in ends:
        ended.append(await engine.start("f"))
        await engine.do("f", "go", a=end)
    return ended


async def look(engine: Engine) -> int:
    """Let open instances follow; answers the batch that then looks at closed ones."""
    while await engine.rows("select from mutirao.recheck"):
        await engine.rows("select * from mutirao.turn_clock(500, 'versions')")
    return int(await engine.one("select max(id) from mutirao.batch where kind = 'look' and status = 'running'"))


async def test_one_that_is_not_final_any_more_reopens_and_fires(engine: Engine) -> None:
    done, over = await live(engine, "done", "over")
    await engine.rows(LATER)
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('more', $$a = 'done'$$)")
    assert await drive(engine, await look(engine)) == ("finished", None, 1, 1, 0)
    assert (await engine.status(done), await engine.jobs(done)) == ("open.running", {"more": "ready"})
    assert (await engine.trace(done))[-1][:5] == ("reopen", None, ["more"], "open.running", {"a": "done", "b": None})
    assert await engine.rows("select id from mutirao.closed") == [(over,)]
    await engine.do("f", "more", a="over")
    assert await engine.status(done) == "closed.completed"


async def test_one_that_reopens_is_open_for_whoever_is_in_charge(engine: Engine) -> None:
    (done,) = await live(engine, "done")
    office = await furnish(engine)
    mine = "select id from mutirao.charged_instances(%s, %s)"
    manager = office.numbers["manager"]
    await engine.rows("insert into mutirao.charge (instance, person, ended) values (%s, %s, true)", done, manager)
    await engine.rows(LATER)
    await drive(engine, await look(engine))
    assert await engine.rows(mine, manager, True) == [(done,)]
    await engine.repair(done, a="over")
    assert (await engine.rows(mine, manager, True), await engine.rows(mine, manager, False)) == ([], [(done,)])


async def test_one_that_reopens_and_fires_nothing_is_an_exception(engine: Engine) -> None:
    (done,) = await live(engine, "done")
    await engine.rows(LATER)
    await drive(engine, await look(engine))
    assert (await engine.status(done), await engine.codes(done)) == ("open.exception", ["nothing_fires"])
    await engine.repair(done, a="over")
    assert await engine.status(done) == "closed.completed"


async def test_one_that_was_cancelled_never_reopens(engine: Engine) -> None:
    await live(engine, "done")
    cancelled = await engine.start("f")
    await engine.cancel(cancelled)
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('more', $$a in ('x', 'done')$$)")
    await engine.rows(LATER)
    await drive(engine, await look(engine))
    assert await engine.status(cancelled) == "closed.aborted"
    assert await engine.one("select count(*) from mutirao.closed") == 1


async def test_one_on_whose_state_the_new_condition_raises_stays_closed(engine: Engine) -> None:
    done, over = await live(engine, "done", "over")
    await engine.rows("update f.wed_trig set cpred = $$a = 'over' or a::integer = 7$$ where cfinal")
    assert await drive(engine, await look(engine)) == ("finished", None, 0, 2, 0)
    assert [await engine.status(i) for i in (done, over)] == ["closed.completed"] * 2


@pytest.mark.parametrize(
    "change",
    [
        "insert into f.wed_trig (trname, cpred) values ('more', $$a = 'x'$$)",
        "insert into f.wed_attr (aname) values ('c')",
        "delete from f.wed_attr where aname = 'b'",
    ],
)
async def test_nobody_looks_where_nothing_can_have_changed(engine: Engine, change: str) -> None:
    await live(engine, "done")
    await engine.rows(change)
    await engine.until_caught_up()
    assert await engine.rows("select from mutirao.batch") == []


async def test_it_is_stopped_and_taken_up_again(engine: Engine) -> None:
    await live(engine, *["done"] * 7)
    await engine.rows(LATER)
    batch = await look(engine)
    await step(engine, batch, 3)
    await engine.rows("select mutirao.stop_batch(%s)", batch)
    await engine.tick()
    assert await engine.one("select count(*) from mutirao.closed") == 4
    await engine.rows("select mutirao.resume_batch(%s)", batch)
    assert await drive(engine, batch, 3) == ("finished", None, 7, 0, 0)


async def test_a_newer_version_takes_its_place(engine: Engine) -> None:
    done, over = await live(engine, "done", "over")
    await engine.rows(LATER)
    first = await look(engine)
    await engine.rows("update f.wed_trig set cpred = $$a = 'done'$$ where cfinal")
    await step(engine, first)
    assert (await count(engine, first)).status == "failed"
    assert "version 3 has taken its place" in await engine.one("select note from mutirao.batch where id = %s", first)
    await drive(engine, await look(engine))
    assert (await engine.status(done), await engine.status(over)) == ("closed.completed", "open.exception")


async def test_a_condition_that_was_changed_back_is_looked_at_again_if_somebody_ended_by_the_other(
    engine: Engine,
) -> None:
    (done,) = await live(engine, "done")
    await engine.rows("update f.wed_trig set cpred = $$a in ('done', 'odd')$$ where cfinal")
    odd = await engine.start("f")
    await engine.do("f", "go", a="odd")
    await engine.rows("update f.wed_trig set cpred = $$a in ('done', 'over')$$ where cfinal")
    await drive(engine, await look(engine))
    assert (await engine.status(done), await engine.status(odd)) == ("closed.completed", "open.exception")


async def test_an_instance_of_a_pinned_flow_stays_closed(engine: Engine) -> None:
    await engine.apply("p", {"a": 0}, {"go": "a = 0"}, final="a = 1")
    instance = await engine.start("p")
    await engine.do("p", "go", a=1)
    await engine.apply("p", {"a": 0}, {"go": "a = 0"}, final="a = 2")
    await engine.tick()
    assert await engine.status(instance) == "closed.completed"
    assert await engine.rows("select from mutirao.batch") == []


async def test_closed_instances_become_searchable_and_stop_being_so(engine: Engine) -> None:
    (done,) = await live(engine, "done")
    await engine.rows("update f.wed_attr set searchable = true where aname = 'a'")
    await drive(engine, await look(engine))
    assert await engine.rows("select name, value, instance from mutirao.search") == [("a", "done", done)]
    await engine.rows("update f.wed_attr set searchable = false")
    await drive(engine, await look(engine))
    assert await engine.rows("select from mutirao.search") == []


async def test_one_that_reopens_is_exported_no_more(engine: Engine) -> None:
    done, over = await live(engine, "done", "over")
    await engine.rows("select mutirao.keep('f', interval '1 hour', action => 'export')")
    export = await engine.one("select export from mutirao.begin_export('f', '/tmp/f', 'jsonl')")
    ended = "(select array_agg(id order by id), array_agg(closed_at order by id) from mutirao.closed)"
    await engine.rows(f"select mutirao.mark_exported(%s, c.ids, c.times) from {ended} c(ids, times)", export)
    await engine.rows(LATER)
    await drive(engine, await look(engine))
    assert await engine.status(done) == "open.exception"
    assert await engine.rows("select instance from mutirao.exported") == [(over,)]


async def test_clocks_rest_between_its_steps_and_who_steps_it_by_hand_does_not(engine: Engine) -> None:
    await live(engine, *["done"] * 3)
    await engine.rows(LATER)
    batch = await look(engine)
    await engine.rows("select mutirao.turn_clock(1, 'batches')")
    assert await engine.one("select rest_until > made_at from mutirao.batch") is True
    await engine.rows("update mutirao.batch set rest_until = clock_timestamp() + interval '1 hour'")
    next_in = "select done -> 'batches', next_at - mutirao.now() > interval '50 minutes' from mutirao.turn_clock(1, 'batches')"
    assert await engine.rows(next_in) == [(0, True)]
    other = await engine.start("f")
    cancel = await engine.one("select mutirao.make_batch('cancel', %s)", Jsonb({"ids": [other]}))
    await engine.tick()
    assert (await count(engine, cancel)).status == "finished"
    assert (await count(engine, batch)).done == 1
    assert await drive(engine, batch, 1) == ("finished", None, 3, 0, 0)


async def test_the_clock_does_all_of_it(engine: Engine) -> None:
    (done,) = await live(engine, "done")
    await engine.rows(LATER)
    await engine.until_caught_up()
    await engine.tick()
    assert await engine.status(done) == "open.exception"

"""Versions: what one transaction changes makes one; live flows follow it, pinned ones keep their own."""

import psycopg
import pytest
from driver import Engine, after, document, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb


async def live(engine: Engine) -> int:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")
    return await engine.start("f")


async def test_all_definition_changes_of_one_transaction_make_one_version(engine: Engine) -> None:
    await live(engine)
    async with await AsyncConnection.connect(engine.url) as session:
        await session.execute("insert into f.wed_attr (aname) values ('b'), ('c')")
        await session.execute("insert into f.wed_trig (trname, cpred) values ('more', $$b = '1'$$)")
        await session.execute("update f.wed_trig set cpred = $$b = '2'$$ where trname = 'more'")
        await session.execute("delete from f.wed_trig where trname = 'go'")
    assert await engine.rows("select number from mutirao.version order by 1") == [(1,), (2,)]
    assert await engine.rows("select trname, cpred from f.wed_trig where not cfinal") == [("more", "b = '2'")]


async def test_each_transaction_makes_its_own_version(engine: Engine) -> None:
    await live(engine)
    await engine.rows("insert into f.wed_attr (aname) values ('b')")
    await engine.rows("delete from f.wed_trig where trname = 'go'")
    assert await engine.one("select max(number) from mutirao.version") == 3
    assert await engine.rows("select trname from f.wed_trig where not cfinal") == []


async def test_a_definition_takes_effect_at_its_commit_and_not_before(engine: Engine) -> None:
    instance = await live(engine)
    async with await AsyncConnection.connect(engine.url) as session:
        await session.execute("insert into f.wed_attr (aname, adv) values ('b', '1')")
        await session.execute("insert into f.wed_trig (trname, cpred) values ('more', $$b = '1'$$)")
        assert await engine.rows("select trname from f.wed_trig where not cfinal") == [("go",)]
        assert await engine.jobs(await engine.start("f")) == {"go": "ready"}
    await engine.tick()
    assert await engine.jobs(instance) == {"go": "ready", "more": "ready"}


async def test_an_error_inside_a_transaction_leaves_nothing(engine: Engine) -> None:
    await live(engine)
    before = await engine.everything()
    async with await AsyncConnection.connect(engine.url) as session:
        await session.execute("insert into f.wed_attr (aname) values ('b')")
        with pytest.raises(psycopg.Error, match="condition_type"):
            await session.execute("insert into f.wed_trig (trname, cpred) values ('more', 'b')")
        await session.rollback()
    assert await engine.everything() == before
    async with await AsyncConnection.connect(engine.url) as session:
        await session.execute("select mutirao.create_flow('g')")
        with pytest.raises(psycopg.Error, match="unknown_attribute"):
            await session.execute("insert into g.wed_trig (trname, cpred) values ('more', 'nope = 1')")
        await session.rollback()
    assert await engine.everything() == before
    assert await engine.rows("select from pg_namespace where nspname = 'g'") == []


async def test_a_savepoint_takes_back_its_part_of_a_definition(engine: Engine) -> None:
    await live(engine)
    async with await AsyncConnection.connect(engine.url) as session:
        await session.execute("insert into f.wed_attr (aname) values ('b')")
        async with session.transaction() as part:
            await session.execute("insert into f.wed_attr (aname) values ('c')")
            await session.execute("insert into f.wed_trig (trname, cpred) values ('more', $$c = '1'$$)")
            raise psycopg.Rollback(part)
    assert await engine.rows("select aname from f.wed_attr") == [("a",), ("b",)]
    assert await engine.one("select count(*) from mutirao.version") == 2


async def test_open_instances_of_a_live_flow_follow_the_newest_version(engine: Engine) -> None:
    instances = [await live(engine), await engine.start("f")]
    await engine.rows("insert into f.wed_attr (aname, adv) values ('b', '1')")
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('more', $$b = '1'$$)")
    assert (await engine.tick())[2] == 2
    for instance in instances:
        assert await engine.jobs(instance) == {"go": "ready", "more": "ready"}
        assert await engine.state(instance) == {"a": "x", "b": "1"}
        assert (await engine.trace(instance))[-1][:3] == ("look", None, ["more"])
    await engine.until_caught_up()


async def test_an_instance_that_is_written_before_the_clock_comes_follows_all_the_same(engine: Engine) -> None:
    instance = await live(engine)
    await engine.rows("insert into f.wed_attr (aname, adv) values ('b', '1')")
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('more', $$b = '1' and task_go = 'succeeded'$$)")
    await engine.do("f", "go", a="y")
    assert await engine.state(instance) == {"a": "y", "b": "1"}
    assert await engine.jobs(instance) == {"more": "ready"}


@pytest.mark.parametrize("clock_first", [True, False])
async def test_a_new_condition_may_name_what_tasks_did_before_it_was_there(engine: Engine, clock_first: bool) -> None:
    await engine.create("f", {"a": "x"}, {"go": "a = 'x'", "stay": "a = 'y'"}, final="a = 'done'")
    instance = await engine.start("f")
    await engine.do("f", "go", a="y")
    await engine.rows(
        "insert into f.wed_trig (trname, cpred) values ('then', $$task_go = 'succeeded' and task_stay = 'ready'$$)"
    )
    await (engine.tick() if clock_first else engine.set(instance, a="y"))
    assert await engine.jobs(instance) == {"stay": "ready", "then": "ready"}


async def test_an_exception_ends_when_a_new_version_makes_something_fire(engine: Engine) -> None:
    instance = await live(engine)
    await engine.do("f", "go", a="nowhere")
    assert await engine.codes(instance) == ["nothing_fires"]
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('rescue', $$a = 'nowhere'$$)")
    await engine.tick()
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"rescue": "ready"}


async def test_an_instance_closes_when_a_new_version_makes_its_state_final(engine: Engine) -> None:
    instance = await live(engine)
    await engine.do("f", "go", a="nowhere")
    await engine.rows("update f.wed_trig set cpred = $$a in ('done', 'nowhere')$$ where cfinal")
    await engine.tick()
    assert await engine.status(instance) == "closed.completed"
    assert await engine.jobs(instance) == {}


async def test_a_new_condition_that_raises_makes_an_exception_of_that_instance_alone(engine: Engine) -> None:
    await engine.create("f", {"a": "x", "d": "1"}, {"go": "a = 'x'"}, final="a = 'done'")
    bad = await engine.start("f", d="zero")
    good = await engine.start("f")
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('divide', $$d::integer > 0$$)")
    await engine.tick()
    assert await engine.jobs(good) == {"go": "ready", "divide": "ready"}
    assert await engine.status(bad) == "open.exception"
    (reason,) = await engine.reasons(bad)
    assert (reason["code"], reason["task"]) == ("condition_failed", "divide")
    assert await engine.jobs(bad) == {"go": "ready", "_EXCPT": "ready"}
    await engine.rows("delete from f.wed_trig where trname = 'divide'")
    await engine.tick()
    assert await engine.status(bad) == "open.running"
    assert await engine.jobs(bad) == {"go": "ready"}


async def test_a_suspended_instance_follows_when_it_is_resumed(engine: Engine) -> None:
    instance = await live(engine)
    await engine.suspend(instance)
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('more', $$a = 'x'$$)")
    await engine.tick()
    assert await engine.jobs(instance) == {"go": "held"}
    await engine.resume(instance)
    assert await engine.jobs(instance) == {"go": "ready", "more": "ready"}


async def test_a_parked_change_gets_its_chance_from_a_new_version(engine: Engine) -> None:
    await engine.create("f", {"a": "x", "b": "x"}, {"go": "a = 'x'", "other": "b = 'x'"}, final="a = 'done'")
    instance = await engine.start("f")
    await engine.do("f", "go", a="done")
    await engine.rows("update f.wed_trig set cpred = $$a = 'over'$$ where cfinal")
    await engine.tick()
    assert await engine.jobs(instance) == {"other": "ready"}
    assert await engine.state(instance) == {"a": "done", "b": "x"}


async def test_many_instances_are_looked_at_again_in_batches(engine: Engine) -> None:
    await live(engine)
    await engine.start_many("f", [{}] * 29)
    await engine.rows("insert into f.wed_trig (trname, cpred) values ('more', $$a = 'x'$$)")
    batches = [await engine.one("select (done ->> 'versions')::int from mutirao.turn_clock(12)") for _ in range(4)]
    assert batches == [12, 12, 6, 0]
    assert await engine.one("select count(*) from f.job_pool where trname = 'more'") == 30
    await engine.until_caught_up()


async def test_one_flow_that_is_not_yet_sure_does_not_hold_up_another(engine: Engine) -> None:
    await live(engine)
    await engine.create("g", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")
    instance = await engine.start("g")
    async with await AsyncConnection.connect(engine.url) as long:
        await long.execute("select pg_current_xact_id()")  # older than both versions, and open
        await engine.rows("insert into f.wed_trig (trname, cpred) values ('more', $$a = 'x'$$)")
        await engine.tick()
        await engine.rows("insert into g.wed_trig (trname, cpred) values ('more', $$a = 'x'$$)")
        await engine.tick()
        assert await engine.jobs(instance) == {"go": "ready", "more": "ready"}


async def test_instances_of_a_pinned_flow_keep_their_version(engine: Engine) -> None:
    first = await engine.apply("p", {"a": 0}, {"go": "a = 0"}, final="a = 9")
    old = await engine.start("p")
    second = await engine.apply("p", {"a": 0}, {"go": "a = 0", "more": "a = 1"}, final="a = 8")
    assert (first, second) == (1, 2)
    new = await engine.start("p")
    await engine.tick()
    for job in await engine.claim("p", "go", room=2):
        await engine.complete(job, a=1)
    assert await engine.codes(old) == ["nothing_fires"]
    assert await engine.jobs(new) == {"more": "ready"}
    assert await engine.rows(
        "select number from mutirao.instance i join mutirao.version v on v.id = i.version order by i.id"
    ) == [(1,), (2,)]


async def test_the_same_definition_makes_no_new_version(engine: Engine) -> None:
    assert await engine.apply("p", {"a": 0}, {"go": "a = 0"}, final="a = 9") == 1
    before = await engine.everything()
    assert await engine.apply("p", {"a": 0}, {"go": "a = 0"}, final="a = 9") == 1
    assert await engine.everything() == before


async def test_with_keep_an_older_version_is_recognised_and_the_newest_stays(engine: Engine) -> None:
    old = document("p", {"a": 0}, {"go": "a = 0"}, final="a = 9")
    new = document("p", {"a": 0}, {"go": "a = 0"}, final="a = 8")
    for each, number in ((old, 1), (new, 2)):
        assert await engine.one("select mutirao.apply_flow(%s)", Jsonb(each)) == number
    assert await engine.one("select mutirao.apply_flow(%s, true)", Jsonb(old)) == 1
    assert await engine.one("select v.number from mutirao.flow f join mutirao.version v on v.id = f.version") == 2
    assert await engine.one("select mutirao.apply_flow(%s)", Jsonb(old)) == 3


async def test_two_definitions_in_one_transaction_make_one_version_of_a_pinned_flow(engine: Engine) -> None:
    async with await AsyncConnection.connect(engine.url) as session:
        for final in ("a = 9", "a = 8"):
            found = await session.execute(
                "select mutirao.apply_flow(%s)", [Jsonb(document("p", {"a": 0}, {"go": "a = 0"}, final=final))]
            )
            assert await found.fetchall() == [(1,)]
    assert await engine.one("select mutirao.flow_document(version) ->> 'final' from mutirao.flow") == "a = 8"


async def test_a_definition_comes_back_as_a_document_that_can_be_applied(engine: Engine) -> None:
    await engine.apply(
        "p", {"a": 0, "b": {"type": "date", "searchable": True}}, {"go": {"when": "a = 0", "timeout": 2.5}, "then": after("go")},
        ends="quiet", firing_limit=77, description="a flow",
    )  # fmt: skip
    shown = await engine.one("select mutirao.flow_document(version) from mutirao.flow")
    await engine.one("select mutirao.apply_flow(%s)", Jsonb({**shown, "name": "q"}))
    again = await engine.one("select mutirao.flow_document(version) from mutirao.flow where name = 'q'")
    assert {**again, "name": "p"} == shown

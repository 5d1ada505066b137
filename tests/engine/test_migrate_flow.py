"""Instances of a pinned flow move to another version, newer or older; beforehand it is told what would happen."""

from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from batch_driver import Count, drive, refusals
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb


class Foretold(NamedTuple):
    outcome: str
    why: str | None
    fires: list[str]
    removes: list[str]
    moves: dict[str, str]


FIRST: dict[str, Any] = {
    "attributes": {"stage": "new", "n": 0},
    "tasks": {"pack": "stage = 'new'", "send": "stage = 'packed'"},
    "final": "stage = 'sent'",
}
CALL = "(%s, to_version => %s, from_version => %s, tasks => %s, attributes => %s, filter => %s)"


def _values(**how: Any) -> tuple[Any, ...]:
    mappings = (Jsonb(how.get(each, {})) for each in ("tasks", "attributes", "filter"))
    return how.get("flow", "f"), how.get("to"), how.get("leaving"), *mappings


async def migrate(engine: Engine, **how: Any) -> Count:
    return await drive(engine, await make_migration(engine, **how))


async def make_migration(engine: Engine, **how: Any) -> int:
    return int(await engine.one(f"select mutirao.migrate_flow{CALL}", *_values(**how)))


async def foretell(engine: Engine, **how: Any) -> dict[int, Foretold]:
    before = await engine.everything()
    query = f"select instance, outcome, why, fires, removes, moves from mutirao.preview_migration{CALL}"
    rows = await engine.rows(query, *_values(**how))
    assert await engine.everything() == before
    return {row[0]: Foretold(*row[1:]) for row in rows}


async def come_true(engine: Engine, **how: Any) -> dict[int, Foretold]:
    """Migrates, and everything must come as it was foretold."""
    told = await foretell(engine, **how)
    done = await migrate(engine, **how)
    refused = [each for each, will in told.items() if will.outcome == "refused"]
    assert done == Count("finished", len(told), len(told) - len(refused), 0, len(refused))
    status = {"completed": "closed.completed", "exception": "open.exception", "running": "open.running"}
    for instance, will in told.items():
        last = (await engine.trace(instance))[-1]
        if will.outcome == "refused":
            assert last.kind != "migrate"
            continue
        assert last.kind == "migrate"
        assert last.status == status.get(will.outcome, "open.notrunning.suspended")
        assert [task for task in last.fired if task != "_EXCPT"] == will.fires
        assert [gone["task"] for gone in (last.note or {}).get("removed", [])] == will.removes
    return told


async def version(engine: Engine, instance: int) -> int:
    query = "select v.number from mutirao.instance i join mutirao.version v on v.id = i.version where i.id = %s"
    return int(await engine.one(query, instance))


async def test_instances_move_to_the_newest_version_and_fire_by_it(engine: Engine) -> None:
    await engine.apply("f", **FIRST)
    chosen = await engine.start_many("f", [{"n": n} for n in range(3)])
    await engine.apply(
        "f", {**FIRST["attributes"], "vip": False}, {**FIRST["tasks"], "greet": "n > 0"}, final="stage = 'sent'"
    )
    told = await come_true(engine)
    assert told[chosen[1]] == Foretold("running", None, ["greet"], [], {})
    assert await engine.jobs(chosen[0]) == {"pack": "ready"}
    assert await engine.jobs(chosen[1]) == {"pack": "ready", "greet": "ready"}
    assert await engine.state(chosen[1]) == {"stage": "new", "n": 1, "vip": False}
    assert await version(engine, chosen[1]) == 2
    assert await foretell(engine) == {}


async def test_and_back_again(engine: Engine) -> None:
    await engine.apply("f", **FIRST)
    instance = await engine.start("f")
    await engine.apply(
        "f", {**FIRST["attributes"], "vip": False}, {**FIRST["tasks"], "greet": "n = 0"}, final="stage = 'sent'"
    )
    await migrate(engine)
    await engine.set(instance, vip=True)
    told = await come_true(engine, to=1)
    assert told[instance] == Foretold("running", None, [], ["greet"], {})
    assert await engine.jobs(instance) == {"pack": "ready"}
    await migrate(engine, to=2)
    assert (await engine.state(instance))["vip"] is True


async def test_what_runs_may_finish_and_fires_by_the_new_version(engine: Engine) -> None:
    await engine.apply("f", **FIRST)
    instance = await engine.start("f")
    job = await engine.take("f", "pack")
    await engine.apply("f", FIRST["attributes"], {"ship": "stage = 'packed'"}, final="stage = 'sent'")
    told = await come_true(engine)
    assert told[instance] == Foretold("running", None, [], [], {})
    await engine.complete(job, stage="packed")
    assert await engine.jobs(instance) == {"ship": "ready"}


async def test_unclaimed_jobs_of_tasks_that_are_gone_or_switched_off_go(engine: Engine) -> None:
    await engine.apply("f", {"a": 1}, {"one": "a = 1", "two": "a = 1", "three": "a = 1"}, final="a = 2")
    instance = await engine.start("f")
    await engine.apply("f", {"a": 1}, {"one": {"when": "a = 1", "enabled": False}, "three": "a = 1"}, final="a = 2")
    told = await come_true(engine)
    assert told[instance].removes == ["one", "two"]
    assert await engine.jobs(instance) == {"three": "ready"}


@pytest.mark.parametrize("back", ["given back", "lease lost", "failed", "parked"])
async def test_a_job_that_outlives_its_task_and_comes_back_is_removed(engine: Engine, back: str) -> None:
    await engine.apply("f", {"a": "x"}, {"go": "a = 'x'", "stay": "a = 'x'"}, final="a = 'done'")
    instance, other = await engine.start_many("f", [{}, {}])
    job, fine = await engine.claim("f", "go", room=2)
    await engine.apply("f", {"a": "x"}, {"stay": "a = 'x'"}, final="a = 'done'")
    assert await migrate(engine) == ("finished", 2, 2, 0, 0)
    await engine.renew(fine, lease=timedelta(days=1))
    match back:
        case "given back":
            await engine.release(job)
        case "lease lost":
            await engine.advance(minutes=2)
        case "failed":
            await engine.fail(job)
        case "parked":
            park = "select mutirao.park_attempt(%s, %s, null, %s)"
            await engine.rows(park, job.id, job.attempt, Jsonb({"code": "final_blocked", "error": "later"}))
    await engine.tick()
    await engine.tick()
    assert await engine.jobs(instance) == {"stay": "ready"}
    last = (await engine.trace(instance))[-1]
    assert (last.kind, last.task, last.job, last.note) == ("removed", "go", job.id, {"version": 2})
    await engine.do("f", "stay", a="done")
    assert await engine.status(instance) == "closed.completed"
    assert await engine.complete(fine, a="y") == "ok"
    await engine.tick()
    assert await engine.rows("select from mutirao.stray") == []
    assert await engine.jobs(other) == {"stay": "ready"}


async def test_an_instance_whose_last_job_outlives_its_task_and_comes_back_is_an_exception(engine: Engine) -> None:
    await engine.apply("f", {"a": "x"}, {"go": "a = 'x'", "more": "a = 'y'"}, final="a = 'done'")
    instance = await engine.start("f")
    job = await engine.take("f", "go")
    await engine.apply("f", {"a": "x"}, {"more": "a = 'y'"}, final="a = 'done'")
    await migrate(engine)
    await engine.release(job)
    await engine.tick()
    assert (await engine.codes(instance), await engine.jobs(instance)) == (["nothing_fires"], {"_EXCPT": "ready"})


async def test_a_renamed_task_keeps_its_jobs_whatever_their_state(engine: Engine) -> None:
    await engine.apply("f", **FIRST)
    ready, running, failed = await engine.start_many("f", [{}, {}, {}])
    [_, held, broken] = await engine.claim("f", "pack", room=3)
    await engine.rows("select mutirao.release(%s::bigint[], %s::bigint[])", [_.id], [_.attempt])
    await engine.fail_for_good(broken)
    await engine.apply(
        "f", FIRST["attributes"], {"wrap": "stage = 'new'", "send": "stage = 'packed'"}, final="stage = 'sent'"
    )
    told = await come_true(engine, tasks={"pack": "wrap"})
    assert told[ready] == told[running] == Foretold("running", None, [], [], {"pack": "wrap"})
    assert told[failed] == Foretold("exception", "task_failed: wrap", [], [], {"pack": "wrap"})
    assert await engine.jobs(ready) == {"wrap": "ready"}
    await engine.complete(held, stage="packed")
    assert await engine.jobs(running) == {"send": "ready"}
    await engine.retry(await engine.job(failed, "wrap"))
    assert (await engine.take("f", "wrap")).task == "wrap"


async def test_two_tasks_change_places_and_two_become_one(engine: Engine) -> None:
    await engine.apply("f", {"a": 1}, {"one": "a = 1", "two": "a = 1"}, final="a = 2")
    instance = await engine.start("f")
    both = await engine.start("f")
    await engine.apply("f", {"a": 1}, {"one": "a = 1", "two": "a = 1", "three": "a = 3"}, final="a = 2")
    jobs = {each: await engine.job(instance, each) for each in ("one", "two")}
    told = await come_true(engine, tasks={"one": "two", "two": "one"}, filter={"ids": [instance]})
    assert told[instance].moves == {"one": "two", "two": "one"}
    assert jobs == {"one": await engine.job(instance, "two"), "two": await engine.job(instance, "one")}
    told = await come_true(engine, tasks={"one": "three", "two": "three"})
    assert told[both].removes == ["two"]
    assert await engine.jobs(both) == {"three": "ready", "one": "ready", "two": "ready"}


async def test_two_running_jobs_do_not_become_one(engine: Engine) -> None:
    await engine.apply("f", {"a": 1}, {"one": "a = 1", "two": "a = 1"}, final="a = 2")
    instance = await engine.start("f")
    await engine.claim("f", room=2)
    await engine.apply("f", {"a": 1}, {"three": "a = 1"}, final="a = 2")
    how = {"tasks": {"one": "three", "two": "three"}}
    assert (await foretell(engine, **how))[instance].outcome == "refused"
    batch = await make_migration(engine, **how)
    assert await drive(engine, batch) == Count("finished", 1, 0, 0, 1)
    assert await refusals(engine, batch) == [(instance, "job_running")]
    assert await version(engine, instance) == 1


async def test_what_the_old_version_did_not_keep_is_found_in_the_trace(engine: Engine) -> None:
    tasks: dict[str, Any] = {"first": "a = 1", "last": "a = 3"}
    await engine.apply("f", {"a": 1}, tasks, final="a = 9")
    instance = await engine.start("f")
    await engine.do("f", "first", a=3)
    await engine.apply(
        "f",
        {"a": 1},
        {
            "begin": {"when": "a < 9", "fires": "once"},
            "last": "a = 3",
            "then": after("begin"),
            "so": "task_begin = 'succeeded'",
        },
        final="a = 9",
    )
    told = await come_true(engine, tasks={"first": "begin"})
    assert told[instance].fires == ["then", "so"]
    assert await engine.jobs(instance) == {"last": "ready", "then": "ready", "so": "ready"}


async def test_an_attribute_is_renamed(engine: Engine) -> None:
    await engine.apply("f", **FIRST)
    instance = await engine.start("f", n=7)
    await engine.apply(
        "f", {"stage": "new", "number": 0}, {"pack": "stage = 'new' and number = 7"}, final="stage = 'sent'"
    )
    await come_true(engine, attributes={"n": "number"})
    assert await engine.state(instance) == {"stage": "new", "number": 7}


async def test_a_state_that_does_not_fit_stays_and_the_others_go(engine: Engine) -> None:
    await engine.apply("f", {"stage": "new", "size": ""}, FIRST["tasks"], final="stage = 'sent'")
    chosen = await engine.start_many("f", [{"size": "12"}, {}, {"size": None}])
    await engine.apply("f", {"stage": "new", "size": 0}, FIRST["tasks"], final="stage = 'sent'")
    told = await come_true(engine)
    assert [told[each].outcome for each in chosen] == ["refused", "refused", "running"]
    assert told[chosen[0]].why == 'wrong_type: attribute "size" is of type integer: it cannot be "12"'
    assert [await version(engine, each) for each in chosen] == [1, 1, 2]
    assert await engine.jobs(chosen[0]) == {"pack": "ready"}


async def test_a_state_larger_than_a_change_may_be_moves_and_one_larger_than_a_state_may_be_stays(
    engine: Engine,
) -> None:
    await engine.apply("f", {**FIRST["attributes"], "text": ""}, FIRST["tasks"], final="stage = 'sent'")
    moves, stays = await engine.start_many("f", [{"text": "x" * 2000}, {"text": "x" * 4000}])
    await engine.rows("select mutirao.limit_size('f', state => 3000, change => 1000)")
    await engine.apply(
        "f", {**FIRST["attributes"], "text": ""}, {**FIRST["tasks"], "more": "n > 5"}, final="stage = 'sent'"
    )
    told = await come_true(engine)
    assert (told[moves].outcome, told[stays].outcome) == ("running", "refused")
    assert (told[stays].why or "").startswith("too_large: the state would have 40")
    assert [await version(engine, each) for each in (moves, stays)] == [2, 1]


async def test_what_becomes_final_stuck_or_raises_is_told_and_comes_true(engine: Engine) -> None:
    await engine.apply("f", {"a": 1, "b": 1}, {"go": "a = 1"}, final="a = 9")
    done, stuck, raising, still, held = await engine.start_many("f", [{"b": b} for b in (2, 3, 0, 1, 1)])
    await engine.suspend(held)
    await engine.apply("f", {"a": 1, "b": 1}, {"stay": "6 / b = 6"}, final="b = 2")
    told = await come_true(engine)
    assert told[done].outcome == "completed"
    assert told[stuck][:2] == ("exception", "nothing_fires")
    assert told[raising].why == "condition_failed: condition of stay: division by zero"
    assert told[still] == Foretold("running", None, ["stay"], ["go"], {})
    assert told[held].outcome == "suspended"
    # And back: what the exceptions were about is gone.
    await come_true(engine, to=1)
    assert await engine.jobs(stuck) == {"go": "ready"}
    assert await engine.reasons(raising) == []


async def test_a_failure_that_the_new_version_handles_is_no_exception_any_more(engine: Engine) -> None:
    await engine.apply("f", {"a": 1}, {"go": "a = 1"}, final="a = 9")
    instance = await engine.start("f")
    await engine.fail_for_good(await engine.take("f", "go"))
    assert await engine.status(instance) == "open.exception"
    await engine.apply("f", {"a": 1}, {"go": "a = 1", "mend": after("go", "failed")}, final="a = 9")
    await come_true(engine)
    assert await engine.jobs(instance) == {"go": "failed", "mend": "ready"}
    assert await engine.status(instance) == "open.running"
    await come_true(engine, to=1)
    assert await engine.codes(instance) == ["task_failed"]


async def test_from_and_where_choose(engine: Engine) -> None:
    await engine.apply("f", **FIRST)
    old = await engine.start_many("f", [{"n": 1}, {"n": 2}])
    await engine.apply("f", {**FIRST["attributes"], "b": 1}, FIRST["tasks"], final="stage = 'sent'")
    newer = await engine.start("f", n=2)
    await engine.apply("f", {**FIRST["attributes"], "c": 1}, FIRST["tasks"], final="stage = 'sent'")
    assert list(await come_true(engine, leaving=1, filter={"where": "n = 2"})) == [old[1]]
    assert [await version(engine, each) for each in (*old, newer)] == [1, 3, 2]


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ({"flow": "nope"}, "unknown_flow", '"nope"'),
        ({"flow": "live"}, "flow_live", "follow the newest version by themselves"),
        ({"to": 9}, "unknown_version", "no version 9; its newest is 2"),
        ({"leaving": 9}, "unknown_version", "no version 9"),
        ({"leaving": 2}, "wrong_call", "nothing to migrate"),
        ({"tasks": {"pack": "nope"}}, "unknown_task", 'to the task "nope", which the version lacks; it has pack'),
        ({"tasks": {"nope": "pack"}}, "unknown_task", 'from the task "nope"'),
        ({"tasks": ["pack"]}, "wrong_call", "{"),
        ({"attributes": {"n": "nope"}}, "unknown_attribute", 'to the attribute "nope"'),
        ({"filter": {"where": "colour = 1"}}, "unknown_attribute", "colour"),
    ],
)
async def test_a_bad_migration_is_refused_and_nothing_is_made(
    engine: Engine, how: dict[str, Any], code: str, says: str
) -> None:
    await engine.apply("f", **FIRST)
    await engine.start("f")
    await engine.apply("f", FIRST["attributes"], {"pack": "stage = 'new'"}, final="stage = 'sent'")
    await engine.create("live", {"a": "x"}, {"go": "a = 'x'"}, final="a = 'done'")
    async with engine.refused(code, says):
        await make_migration(engine, **how)
    async with engine.refused(code, says):
        await foretell(engine, **how)


async def test_a_migration_is_not_made_by_make_batch(engine: Engine) -> None:
    await engine.apply("f", **FIRST)
    async with engine.refused("wrong_call", "is made by mutirao.migrate_flow"):
        await engine.rows("""select mutirao.make_batch('migrate', '{"flow": "f"}', '{"to": 1}')""")


# ------------------------------------------------------------------------------------------------------ who does a task


async def test_a_task_that_people_come_to_do_is_offered_to_them(engine: Engine) -> None:
    await engine.rows("select mutirao.add_role(null, 'packers')")
    await engine.apply("f", **FIRST)
    instance = await engine.start("f")
    offered = {"when": "stage = 'new'", "offer": {"role": "packers", "deadline": 180_000}}
    await engine.apply("f", FIRST["attributes"], {"pack": offered, "send": "stage = 'packed'"}, final=FIRST["final"])
    await migrate(engine)
    [item] = await engine.rows(
        "select role is not null, finish_by - created_at > interval '49 hours', alert_at < finish_by, size is not null "
        "from mutirao.job where instance = %s",
        instance,
    )
    assert item == (True, True, True, True)
    await migrate(engine, to=1)
    [job] = await engine.rows("select role, finish_by, alert_at, size from mutirao.job where instance = %s", instance)
    assert job == (None, None, None, None)
    assert [each.task for each in await engine.claim("f", "pack")] == ["pack"]


async def test_a_task_that_another_flow_comes_to_do_starts_it(engine: Engine) -> None:
    await engine.apply("packing", {"stage": "new"}, {"wrap": "stage = 'new'"}, final="stage = 'packed'")
    await engine.apply("f", **FIRST)
    instance = await engine.start("f")
    child = {"when": "stage = 'new'", "child": "packing"}
    await engine.apply("f", FIRST["attributes"], {"pack": child, "send": "stage = 'packed'"}, final=FIRST["final"])
    await migrate(engine)
    await engine.tick()
    await engine.do("packing", "wrap", stage="packed")
    await engine.tick()
    assert await engine.jobs(instance) == {"send": "ready"}


async def test_a_task_that_a_worker_comes_to_do_again_waits_for_no_child(engine: Engine) -> None:
    await engine.apply("packing", {"stage": "new"}, {"wrap": "stage = 'new'"}, final="stage = 'packed'")
    child = {"when": "stage = 'new'", "child": "packing"}
    await engine.apply("f", FIRST["attributes"], {"pack": child, "send": "stage = 'packed'"}, final=FIRST["final"])
    await engine.start("f")
    await engine.apply("f", **FIRST)
    await migrate(engine)
    await engine.tick()
    assert await engine.rows("select from mutirao.child") == []
    assert [each.task for each in await engine.claim("f", "pack")] == ["pack"]

"""Rolling back: compensations, in which order, how far, and what stands in the way."""

from typing import Any

from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`

TRIP: dict[str, Any] = {
    "hotel": {"when": "true", "fires": "once", "compensation": "free_hotel"},
    "flight": after("hotel", compensation="free_flight", retries=0),
    "car": after("hotel", compensation="free_car"),
    "pay": after("flight", retries=0),
    "free_hotel": {},
    "free_flight": {},
    "free_car": {},
}


async def on_the_way(engine: Engine, *done: str, **changed: Any) -> int:
    tasks = {name: TRIP.get(name, {}) | changed.get(name, {}) for name in TRIP | changed}
    await engine.apply("trip", {"log": ""}, tasks, ends="quiet")
    instance = await engine.start("trip")
    for task in done:
        await engine.do("trip", task)
    return instance


async def roll_back(engine: Engine, instance: int, safe_point: str | None = None) -> None:
    await engine.rows("select mutirao.roll_back(%s, %s)", instance, safe_point)


async def test_what_was_done_is_undone_the_last_first(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel", "flight", "car")
    await roll_back(engine, instance)
    assert await engine.jobs(instance) == {"free_flight": "ready", "free_car": "ready"}
    await engine.do("trip", "free_flight", log="flight")
    assert await engine.jobs(instance) == {"free_car": "ready"}
    await engine.do("trip", "free_car")
    assert await engine.jobs(instance) == {"free_hotel": "ready"}
    await engine.do("trip", "free_hotel")
    assert await engine.status(instance) == "closed.terminated"
    assert (await engine.kinds(instance))[-5:] == ["roll_back", "compensate", "compensate", "compensate", "rolled_back"]
    assert (await engine.trace(instance))[-1].state == {"log": "flight"}


async def test_nothing_done_is_nothing_to_undo(engine: Engine) -> None:
    instance = await on_the_way(engine)
    await roll_back(engine, instance)
    assert await engine.status(instance) == "closed.terminated"


async def test_what_runs_ends_first(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel")
    flight = await engine.take("trip", "flight")
    await roll_back(engine, instance)
    assert await engine.jobs(instance) == {"flight": "running"}
    await engine.complete(flight)
    assert await engine.jobs(instance) == {"free_flight": "ready"}


async def test_what_ran_and_failed_is_not_undone(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel")
    flight = await engine.take("trip", "flight")
    await roll_back(engine, instance)
    await engine.fail(flight, "no")
    assert await engine.jobs(instance) == {"free_hotel": "ready"}


async def test_a_failure_rolls_back(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel", "flight", pay={"on_failure": "roll_back"})
    await engine.fail(await engine.take("trip", "pay"), "no")
    assert await engine.status(instance) == "open.running"
    assert await engine.jobs(instance) == {"free_flight": "ready"}


async def test_a_partial_rollback_stops_at_the_safe_point(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel", "flight", hotel={"safe_point": True}, pay={"on_failure": "safe_point"})
    await engine.fail(await engine.take("trip", "pay"), "no")
    assert await engine.jobs(instance) == {"free_flight": "ready"}
    await engine.do("trip", "free_flight")
    assert await engine.jobs(instance) == {"flight": "ready", "car": "ready"}
    assert await engine.status(instance) == "open.running"


async def test_what_does_not_follow_the_safe_point_rests_and_goes_on(engine: Engine) -> None:
    aside = {"when": "true", "fires": "once"}
    instance = await on_the_way(engine, "hotel", "flight", hotel={"safe_point": True}, aside=aside)
    await roll_back(engine, instance, "hotel")
    assert await engine.jobs(instance) == {"aside": "held", "free_flight": "ready"}
    await engine.do("trip", "free_flight")
    assert await engine.jobs(instance) == {"aside": "ready", "flight": "ready", "car": "ready"}


async def test_what_fails_meanwhile_beside_the_safe_point_is_not_lost(engine: Engine) -> None:
    aside = {"when": "true", "fires": "once"}
    instance = await on_the_way(engine, "hotel", hotel={"safe_point": True}, aside=aside)
    job = await engine.take("trip", "aside")
    await roll_back(engine, instance, "hotel")
    await engine.fail_for_good(job)
    assert await engine.jobs(instance) == {"aside": "failed", "flight": "ready", "car": "ready", "_EXCPT": "ready"}
    assert await engine.codes(instance) == ["task_failed"]


async def test_a_failure_before_the_safe_point_stays_one(engine: Engine) -> None:
    aside = {"when": "true", "fires": "once", "retries": 0}
    instance = await on_the_way(engine, "hotel", hotel={"safe_point": True}, aside=aside)
    await engine.fail(await engine.take("trip", "aside"))
    await roll_back(engine, instance, "hotel")
    assert await engine.codes(instance) == ["task_failed"]
    assert await engine.status(instance) == "open.exception"


async def test_who_undid_a_contingency_waits_for_it_again(engine: Engine) -> None:
    more = {"contingency": "sail", "retries": 0}
    instance = await on_the_way(engine, "hotel", hotel={"safe_point": True}, flight=more, sail={})
    await engine.fail(await engine.take("trip", "flight"))
    await engine.do("trip", "sail")
    assert (await engine.jobs(instance))["pay"] == "ready"
    await roll_back(engine, instance, "hotel")
    assert await engine.jobs(instance) == {"flight": "ready", "car": "ready"}


async def test_who_was_replaced_before_the_safe_point_has_still_succeeded(engine: Engine) -> None:
    tasks = {
        "fly": {"when": "true", "fires": "once", "retries": 0, "contingency": "sail"},
        "sail": {},
        "arrive": after("fly", safe_point=True),
        "rest": after("arrive"),
        "boast": {"when": "task_fly = 'succeeded' and n = 1"},
    }
    await engine.apply("trip", {"n": 0}, tasks, ends="quiet")
    instance = await engine.start("trip")
    await engine.fail(await engine.take("trip", "fly"))
    for task in ("sail", "arrive"):
        await engine.do("trip", task)
    await roll_back(engine, instance, "arrive")
    assert await engine.one("select latest from mutirao.instance where id = %s", instance) == {"fly": "succeeded"}


async def test_what_has_failed_since_it_succeeded_has_still_failed(engine: Engine) -> None:
    tasks = {
        "knock": {"when": "n < 2", "retries": 0},
        "enter": {"when": "n = 1", "fires": "once", "safe_point": True},
        "sit": after("enter"),
        "leave": {"when": "task_knock = 'failed' and n = 5"},
    }
    await engine.apply("visit", {"n": 0}, tasks, ends="quiet")
    instance = await engine.start("visit")
    await engine.do("visit", "knock", n=1)
    await engine.fail(await engine.take("visit", "knock"))
    await engine.do("visit", "enter")
    await roll_back(engine, instance, "enter")
    assert await engine.one("select latest from mutirao.instance where id = %s", instance) == {"knock": "failed"}


async def test_a_failure_of_an_interrupted_instance_rolls_back_when_it_is_resumed(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel", "flight", pay={"on_failure": "roll_back", "retries": 0})
    job = await engine.take("trip", "pay")
    await engine.suspend(instance)
    await engine.fail(job)
    assert await engine.status(instance) == "open.notrunning.suspended"
    await engine.resume(instance)
    assert await engine.jobs(instance) == {"free_flight": "ready"}


async def test_only_compensations_change_what_is_undone(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel")
    await roll_back(engine, instance)
    async with engine.refused("instance_undoing", "only compensations"):
        await engine.set(instance, log="x")


async def test_a_lost_job_is_not_done_again_while_undoing(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel")
    await engine.take("trip", "flight")
    await roll_back(engine, instance)
    await engine.advance(minutes=5)
    await engine.tick()
    assert await engine.jobs(instance) == {"free_hotel": "ready"}


async def test_a_rollback_after_which_nothing_fires_is_an_exception(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel", "flight", "pay", car={"safe_point": True})
    await engine.do("trip", "car")
    assert await engine.status(instance) == "closed.completed"
    await engine.apply(
        "short",
        {"n": 0},
        {
            "a": {"when": "n = 0", "safe_point": True},
            "b": {"when": "n = 1", "compensation": "c"},
            "c": {},
        },
        ends="quiet",
    )
    short = await engine.start("short")
    await engine.do("short", "a", n=1)
    await engine.do("short", "b", n=1)
    await roll_back(engine, short, "a")
    await engine.do("short", "c", n=3)
    assert await engine.status(short) == "open.exception"
    assert await engine.codes(short) == ["nothing_fires"]


async def test_a_compensation_that_fails_is_for_a_person(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel", "flight", free_flight={"retries": 0})
    await roll_back(engine, instance)
    await engine.fail(await engine.take("trip", "free_flight"), "no")
    assert await engine.status(instance) == "open.exception"
    assert await engine.jobs(instance) == {"free_flight": "failed", "_EXCPT": "held"}
    [(job,)] = await engine.rows("select id from mutirao.job where status = 'failed'")
    await engine.skip(job)
    assert await engine.jobs(instance) == {"free_hotel": "ready"}
    assert await engine.status(instance) == "open.running"


async def test_a_failure_that_would_roll_back_across_a_critical_task_is_an_exception(engine: Engine) -> None:
    instance = await on_the_way(
        engine, "hotel", "flight", "pay", pay={"critical": True}, car={"on_failure": "roll_back", "retries": 0}
    )
    await engine.fail(await engine.take("trip", "car"), "no")
    assert await engine.status(instance) == "open.exception"
    assert [reason["code"] for reason in await engine.reasons(instance)] == ["task_failed", "critical_task"]


async def test_an_interrupted_rollback_goes_on_when_it_is_resumed(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel", "flight")
    await roll_back(engine, instance)
    await engine.suspend(instance)
    assert await engine.jobs(instance) == {"free_flight": "held"}
    await engine.resume(instance)
    assert await engine.jobs(instance) == {"free_flight": "ready"}
    assert await engine.status(instance) == "open.running"


async def test_a_cancelled_rollback_undoes_nothing_more(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel", "flight")
    await roll_back(engine, instance)
    await engine.cancel(instance)
    assert await engine.status(instance) == "closed.aborted"


async def test_a_child_is_undone_with_its_parent(engine: Engine) -> None:
    await on_the_way(engine)
    await engine.apply(
        "tour",
        {"log": ""},
        {"go": {"when": "true", "fires": "once", "child": "trip"}, "end": after("go")},
        ends="quiet",
    )
    parent = await engine.start("tour")
    await engine.tick()
    child = parent + 1
    for task in ("hotel", "flight", "car", "pay"):
        for job in await engine.claim("trip", task, room=2):
            if job.instance == child:
                await engine.complete(job)
    assert await engine.status(child) == "closed.completed"
    await engine.tick()
    assert await engine.jobs(parent) == {"end": "ready"}
    await roll_back(engine, parent)
    await engine.tick()
    assert await engine.status(child) == "open.running"
    assert await engine.jobs(child) == {"free_flight": "ready", "free_car": "ready"}
    for task in ("free_flight", "free_car", "free_hotel"):
        await engine.do("trip", task)
    assert await engine.status(child) == "closed.terminated"
    await engine.tick()
    assert await engine.status(parent) == "closed.terminated"


async def standing(engine: Engine, instance: int) -> dict[str, str]:
    return dict(await engine.rows("select task, state from mutirao.task_states(%s)", instance))


async def test_each_task_tells_how_it_stands(engine: Engine) -> None:
    instance = await on_the_way(engine, "hotel", "flight")
    await engine.fail(await engine.take("trip", "pay"), "no")
    stands = {"hotel": "succeeded", "flight": "succeeded", "car": "ready", "pay": "failed"}
    idle = dict.fromkeys(("free_hotel", "free_flight", "free_car"), "not_ready")
    assert await standing(engine, instance) == stands | idle
    await roll_back(engine, instance)
    await engine.do("trip", "free_flight")
    now = {"flight": "compensated", "car": "not_ready", "pay": "not_ready", "free_hotel": "ready"}
    assert await standing(engine, instance) == stands | idle | now | {"free_flight": "succeeded"}

"""Classes: jobs that exclude each other, whoever does them."""

from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb


async def classes(engine: Engine, **conflicts: list[str]) -> None:
    for name in conflicts:
        await engine.rows("select mutirao.put_class(%s, '{}')", name)
    for name, others in conflicts.items():
        await engine.rows("select mutirao.put_class(%s, %s)", name, others)


async def states(engine: Engine, flow: str) -> list[tuple[int, str, str | None]]:
    return await engine.rows(
        "select instance, j.status::text, gate from mutirao.job j join mutirao.flow f on f.id = j.flow where f.name = %s order by j.id",
        flow,
    )


async def test_a_class_that_conflicts_with_itself_runs_one_at_a_time(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("lift", {"n": 0}, {"up": {"when": "n = 0", "task_class": "crane"}}, final="n = 1")
    one, two = await engine.start_many("lift", [{}, {}])
    assert await states(engine, "lift") == [(one, "ready", "holds"), (two, "waiting", "waits")]
    job = await engine.take("lift", "up")
    assert await engine.claim("lift", "up") == []
    await engine.complete(job, n=1)
    assert await states(engine, "lift") == [(two, "ready", "holds")]
    await engine.do("lift", "up", n=1)
    assert await engine.status(two) == "closed.completed"


async def test_conflicting_classes_wait_for_each_other_and_others_do_not(engine: Engine) -> None:
    await classes(engine, read=[], write=["read", "write"])
    for name in ("read", "write"):
        await engine.apply(f"flow_{name}", {"n": 0}, {"go": {"when": "n = 0", "task_class": name}}, final="n = 1")
    await engine.start_many("flow_read", [{}, {}])
    await engine.start_many("flow_write", [{}])
    assert [gate for _, _, gate in await states(engine, "flow_read")] == ["holds", "holds"]
    assert [gate for _, _, gate in await states(engine, "flow_write")] == ["waits"]
    await engine.do("flow_read", "go", n=1)
    assert [gate for _, _, gate in await states(engine, "flow_write")] == ["waits"]
    await engine.do("flow_read", "go", n=1)
    assert [gate for _, _, gate in await states(engine, "flow_write")] == ["holds"]


async def test_nobody_starves(engine: Engine) -> None:
    await classes(engine, read=[], write=["read"])
    for name in ("read", "write"):
        await engine.apply(f"flow_{name}", {"n": 0}, {"go": {"when": "n = 0", "task_class": name}}, final="n = 1")
    await engine.start("flow_read")
    await engine.start("flow_write")
    await engine.start("flow_read")
    assert [gate for _, _, gate in await states(engine, "flow_read")] == ["holds", "holds"]
    await engine.advance(seconds=31)
    await engine.start("flow_read")
    assert [gate for _, _, gate in await states(engine, "flow_read")] == ["holds", "holds", "waits"]
    await engine.do("flow_read", "go", n=1)
    await engine.do("flow_read", "go", n=1)
    assert [gate for _, _, gate in await states(engine, "flow_write")] == ["holds"]
    assert [gate for _, _, gate in await states(engine, "flow_read")] == ["waits"]
    await engine.do("flow_write", "go", n=1)
    assert [gate for _, _, gate in await states(engine, "flow_read")] == ["holds"]


async def test_a_retry_gives_the_class_to_others(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("lift", {"n": 0}, {"up": {"when": "n = 0", "task_class": "crane", "backoff": 60}}, final="n = 1")
    one, two = await engine.start_many("lift", [{}, {}])
    await engine.fail(await engine.take("lift", "up"), "no")
    assert await states(engine, "lift") == [(one, "waiting", None), (two, "ready", "holds")]
    await engine.advance(minutes=3)
    await engine.tick()
    assert await states(engine, "lift") == [(one, "waiting", "waits"), (two, "ready", "holds")]


async def test_a_lost_lease_keeps_the_class(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("lift", {"n": 0}, {"up": {"when": "n = 0", "task_class": "crane"}}, final="n = 1")
    one, two = await engine.start_many("lift", [{}, {}])
    await engine.take("lift", "up")
    await engine.advance(minutes=3)
    await engine.tick()
    assert await states(engine, "lift") == [(one, "ready", "holds"), (two, "waiting", "waits")]


async def test_a_dropped_class_holds_nobody(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("lift", {"n": 0}, {"up": {"when": "n = 0", "task_class": "crane"}}, final="n = 1")
    one, two = await engine.start_many("lift", [{}, {}])
    await engine.rows("select mutirao.drop_class('crane')")
    assert await states(engine, "lift") == [(one, "ready", "holds"), (two, "ready", "holds")]
    assert not await engine.rows("select from mutirao.classes()")
    async with engine.refused("unknown_class", '"crane"'):
        await engine.rows("select mutirao.drop_class('crane')")


async def test_suspended_instances_hold_nothing(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("lift", {"n": 0}, {"up": {"when": "n = 0", "task_class": "crane"}}, final="n = 1")
    one, two = await engine.start_many("lift", [{}, {}])
    await engine.suspend(one)
    assert await states(engine, "lift") == [(one, "held", None), (two, "ready", "holds")]
    await engine.resume(one)
    assert await states(engine, "lift") == [(one, "waiting", "waits"), (two, "ready", "holds")]


async def test_who_waits_for_whom_is_seen(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("lift", {"n": 0}, {"up": {"when": "n = 0", "task_class": "crane"}}, final="n = 1")
    one, two = await engine.start_many("lift", [{}, {}])
    assert await engine.rows("select instance, place, kind, holder_instance from mutirao.gate_waits()") == [
        (two, 1, "class", one)
    ]


async def test_an_unknown_class_is_refused(engine: Engine) -> None:
    async with engine.refused("unknown_class", '"crane"'):
        await engine.apply("lift", {"n": 0}, {"up": {"when": "n = 0", "task_class": "crane"}}, final="n = 1")
    async with engine.refused("unknown_class", '"ship"'):
        await engine.rows("select mutirao.put_class('crane', '{ship}')")


async def test_why_a_job_is_synchronizing(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    await engine.apply("lift", {"n": 0}, {"up": {"when": "n = 0", "task_class": "crane"}}, final="n = 1")
    one, two = await engine.start_many("lift", [{}, {}])
    [(job,)] = await engine.rows("select (e).job from mutirao.why(%s, 'up') e", two)
    assert job["waits_for"] == "class"
    assert f'"up" of instance {one} holds a class that conflicts with "crane"' in job["says"]


async def test_who_changed_a_class_is_kept(engine: Engine) -> None:
    await engine.rows("select mutirao.put_class('crane', '{}', null, 'manager')")
    await engine.rows("select mutirao.put_class('crane', '{crane}', null, 'technician_1')")
    signature = await engine.one("select mutirao.signed('technician_1')")
    assert await engine.rows("select made_by from mutirao.class") == [(signature,)]
    await engine.rows("select mutirao.drop_class('crane', 'technician_2')")
    assert await engine.rows("select kind, name, conflicts from mutirao.class_trace order by id") == [
        ("put", "crane", []),
        ("put", "crane", ["crane"]),
        ("drop", "crane", ["crane"]),
    ]
    writers = [writer for (writer,) in await engine.rows("select writer from mutirao.class_trace order by id")]
    assert writers == [
        await engine.one("select mutirao.signed(%s)", f"{each}") for each in ("manager", "technician_1", "technician_2")
    ]


async def test_how_many_wait_counts_those_who_wait_by_an_ordering(engine: Engine) -> None:
    await classes(engine, crane=["crane"])
    for p in (1, 2):
        tasks = {"up": {"when": "true", "fires": "once", "task_class": "crane"}}
        await engine.apply(f"lift_{p}", {}, tasks, ends="quiet")
    document = {"first": "lift_1", "second": "lift_2", "pairs": [["up", "up"]]}
    await engine.rows("select mutirao.put_ordering(%s)", Jsonb(document))
    await engine.start("lift_1")
    await engine.start("lift_2")
    await engine.start("lift_1")
    assert await engine.rows("select holding, waiting from mutirao.classes()") == [(1, 2)]


async def test_a_class_that_is_changed_keeps_what_it_is_for_unless_that_is_given(engine: Engine) -> None:
    await engine.rows("select mutirao.put_class('crane', '{}', 'the large one')")
    await engine.rows("select mutirao.put_class('crane', '{crane}')")
    assert await engine.one("select description from mutirao.classes()") == "the large one"
    await engine.rows("select mutirao.put_class('crane', '{crane}', '')")
    assert await engine.one("select description from mutirao.classes()") is None


async def test_a_class_that_is_refused_is_not_told_among_those_there_are(engine: Engine) -> None:
    async with engine.refused("unknown_class", 'there is no class "ghost"; there are none'):
        await engine.rows("select mutirao.put_class('crane', '{ghost}')")
    await engine.rows("select mutirao.put_class('crane', '{}')")
    async with engine.refused("unknown_class", 'there is no class "ghost"; there are "crane"'):
        await engine.rows("select mutirao.put_class('crane', '{ghost}')")

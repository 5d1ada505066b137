"""Work items with a class: whoever selects one takes the class, or is refused."""

from typing import Any

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb
from staff import Office

PAINT: dict[str, Any] = {"paint": {"when": "not done", "offer": {"role": "painter"}, "task_class": "room"}}


@pytest.fixture(name="site")
async def building_site(engine: Engine) -> Office:
    """Two painters, and a manager who starts things; one room, in which one of them works."""
    office = Office(engine)
    for name, role in (("painter_1", "painter"), ("painter_2", "painter"), ("manager", "administrator")):
        await office.hire(name, role)
    await engine.rows("select mutirao.put_class('room', '{}')")
    await engine.rows("select mutirao.put_class('room', '{room}')")
    await engine.apply("painting", {"done": False}, PAINT, final="done")
    return office


async def away(site: Office) -> tuple[int, int]:
    """Two instances of the like, to be done within a day: the item of the first is taken away. Answers both items."""
    offer = {"role": "painter", "deadline": 86400, "disconnected": True}
    await site.engine.apply("outside", {"done": False}, {"paint": PAINT["paint"] | {"offer": offer}}, final="done")
    await site.create("outside")
    await site.create("outside")
    first, second = await items(site)
    await site.select("painter_1", first, lock=True)
    async with site.engine.refused("class_held"):
        await site.select("painter_2", second)
    return first, second


async def items(site: Office) -> list[int]:
    return [job for (job,) in await site.engine.rows("select id from mutirao.job order by id")]


async def test_an_item_is_on_offer_and_its_class_is_taken_by_who_selects_it(site: Office) -> None:
    one, two = await site.create("painting"), await site.create("painting")
    first, second = await items(site)
    assert await site.engine.jobs(one) == await site.engine.jobs(two) == {"paint": "ready"}
    await site.select("painter_1", first)
    async with site.engine.refused("class_held", f'"paint" of instance {one} is being done'):
        await site.select("painter_2", second)
    assert await site.engine.jobs(two) == {"paint": "ready"}
    await site.give_back("painter_1", first)
    await site.select("painter_2", second)


async def test_next_passes_over_what_is_held_back(site: Office) -> None:
    await site.engine.apply(
        "tidying", {"done": False}, {"tidy": {"when": "not done", "offer": {"role": "painter"}}}, final="done"
    )
    await site.create("painting")
    await site.create("painting")
    await site.create("tidying")
    first, _, third = await items(site)
    await site.select("painter_1", first)
    [(job, _)] = await site.engine.rows("select * from mutirao.claim_next(%s)", site.numbers["painter_2"])
    assert job == third


async def test_next_passes_over_what_has_to_go_second(site: Office) -> None:
    for flow in ("priming", "varnishing"):
        await site.engine.apply(
            flow, {"done": False}, {"do": {"when": "not done", "offer": {"role": "painter"}}}, final="done"
        )
    document = {"first": "priming", "second": "varnishing", "pairs": [["do", "do"]]}
    await site.engine.rows("select mutirao.put_ordering(%s)", Jsonb(document))
    await site.create("varnishing")
    await site.create("varnishing")
    await site.create("priming")
    first, _, third = await items(site)
    attempt = await site.select("painter_1", third)
    assert await site.engine.rows("select * from mutirao.claim_next(%s)", site.numbers["painter_2"]) == []
    await site.finish("painter_1", third, attempt, done=True)
    [(job, _)] = await site.engine.rows("select * from mutirao.claim_next(%s)", site.numbers["painter_2"])
    assert job == first


async def test_why_nobody_can_take_an_item(site: Office) -> None:
    one, two = await site.create("painting"), await site.create("painting")
    first, _ = await items(site)
    await site.select("painter_1", first)
    [(job,)] = await site.engine.rows("select (e).job from mutirao.why(%s, 'paint') e", two)
    assert (job["waits_for"], job["instance"]) == ("class", one)
    assert f'cannot be taken: "paint" of instance {one} is being done, and its class "room" excludes' in job["says"]
    await site.give_back("painter_1", first)
    [(job,)] = await site.engine.rows("select (e).job from mutirao.why(%s, 'paint') e", two)
    assert job["waits_for"] == "person"


async def test_programs_wait_for_a_person(site: Office) -> None:
    await site.engine.apply(
        "airing", {"done": False}, {"air": {"when": "not done", "task_class": "room"}}, final="done"
    )
    await site.create("painting")
    [item] = await items(site)
    attempt = await site.select("painter_1", item)
    airing = await site.engine.start("airing")
    assert await site.engine.rows("select gate from mutirao.job where instance = %s", airing) == [("waits",)]
    await site.engine.rows(
        "select mutirao.finish_item(%s, %s, %s, %s)", site.numbers["painter_1"], item, attempt, '{"done": true}'
    )
    assert await site.engine.rows("select gate from mutirao.job where instance = %s", airing) == [("holds",)]


async def test_who_is_passed_over_keeps_nobody_out(site: Office) -> None:
    """Whoever got nothing has let go of the gate and of the items, though their transaction goes on."""
    await site.create("painting")
    await site.create("painting")
    first, second = await items(site)
    await site.select("painter_1", first)
    async with site.engine.session() as session:
        await session.execute("begin")
        taken = await session.execute("select * from mutirao.claim_next(%s)", [site.numbers["painter_2"]])
        assert await taken.fetchall() == []
        locks = await session.execute("select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()")
        assert await locks.fetchall() == []
        assert await site.engine.rows("select id from mutirao.job where id = %s for update skip locked", second) == [
            (second,)
        ]
        await session.execute("commit")
    assert await site.engine.rows("select status, person, attempt from mutirao.job where id = %s", second) == [
        ("ready", None, None)
    ]


async def test_an_item_that_is_refused_is_not_running_for_those_who_wait_for_that(site: Office) -> None:
    tasks = PAINT | {"watch": {"depends": {"task": "paint", "state": "running"}}}
    await site.engine.apply("watched", {"done": False}, tasks, final="done")
    await site.create("painting")
    await site.create("watched")
    first, second = await items(site)
    await site.select("painter_1", first)
    async with site.engine.refused("class_held"):
        await site.select("painter_2", second)
    await site.give_back("painter_1", first)
    await site.select("painter_2", second)
    assert await site.engine.rows("select count(*) from mutirao.job") == [(3,)]


async def test_an_item_taken_away_holds_its_class_until_it_returns(site: Office) -> None:
    first, second = await away(site)
    await site.engine.advance(hours=1)
    await site.engine.tick()
    async with site.engine.refused("class_held"):
        await site.select("painter_2", second)
    await site.give_back("painter_1", first)
    await site.select("painter_2", second)


async def test_an_item_taken_away_holds_its_class_until_its_time_runs_out(site: Office) -> None:
    _, second = await away(site)
    await site.engine.advance(days=2)
    await site.engine.tick()
    await site.select("manager", second)


@pytest.mark.parametrize("act", ["cancel", "suspend", "roll_back"])
async def test_the_time_of_an_item_runs_out_whatever_becomes_of_its_instance(site: Office, act: str) -> None:
    first, second = await away(site)
    instance = await site.engine.one("select instance from mutirao.job where id = %s", first)
    await site.engine.rows(f"select mutirao.{act}(%s)", instance)
    await site.engine.advance(days=2)
    await site.engine.tick()
    assert await site.messages("painter_1", "transferred") != []
    ends = {"cancel": "closed.aborted", "suspend": "open.notrunning.suspended", "roll_back": "closed.terminated"}
    assert await site.engine.status(instance) == ends[act]
    await site.select("manager", second)
    if act == "suspend":
        await site.engine.resume(instance)
        assert await site.engine.jobs(instance) == {"paint": "ready"}


async def test_whoever_came_after_one_that_waits_for_long_lets_it_go_first(site: Office) -> None:
    """A reader has the room, a writer waits for it, and more readers are on offer: an older and a younger one."""
    engine = site.engine
    await engine.rows("select mutirao.put_class('look', '{}')")
    await engine.rows("select mutirao.put_class('change', '{look}')")
    await engine.apply("look", {"done": False}, {"look": PAINT["paint"] | {"task_class": "look"}}, final="done")
    await engine.apply("change", {"done": False}, {"go": {"when": "not done", "task_class": "change"}}, final="done")
    await site.create("look")
    await site.create("look")
    writer = await engine.start("change")
    assert await engine.jobs(writer) == {"go": "ready"}
    await engine.suspend(writer)
    first, older, _ = await items(site)
    await site.select("painter_1", first)
    await engine.resume(writer)
    await engine.advance(minutes=1)
    await site.create("look")
    younger = (await items(site))[-1]
    async with engine.refused("class_held", f'"go" of instance {writer} has waited for long and goes first'):
        await site.select("painter_2", younger)
    await site.select("painter_2", older)
    [(says,)] = await engine.rows("select (e).job ->> 'says' from mutirao.why(%s, 'look') e", younger)
    assert "has waited for long" in says

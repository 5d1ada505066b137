"""Limits of a task: how many of its jobs run at once, how many begin per second, how many at once for each value."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from driver import Engine, Job, fresh_engine  # noqa: F401 gives the fixture `engine`


async def limited(engine: Engine, instances: int | list[dict[str, Any]], **limit: Any) -> list[int]:
    tasks = {"call": {"when": "n = 0", "limit": limit or None}}
    await engine.apply("f", {"n": 0, "customer": ""}, tasks, final="n = 1")
    return await engine.start_many("f", instances if isinstance(instances, list) else [{}] * instances)


def customers(jobs: list[Job]) -> list[str]:
    return [job.state["customer"] for job in jobs]


# ------------------------------------------------------------------------------------------------------------- at once


async def test_no_more_run_at_once_than_the_limit_allows(engine: Engine) -> None:
    started = await limited(engine, 5, at_once=2)
    first, second = await engine.claim("f", room=9)
    assert await engine.claim("f", room=9) == []
    await engine.complete(first, n=1)
    (third,) = await engine.claim("f", room=9, worker="another")
    assert [first.instance, second.instance, third.instance] == started[:3]


async def test_a_worker_gets_the_place_it_frees_in_the_same_turn(engine: Engine) -> None:
    await limited(engine, 5, at_once=1)
    (job,) = await engine.claim("f", room=9)
    _, got = await engine.turn([(job, {"n": 1})], flow="f", room=9)
    assert len(got) == 1


@pytest.mark.parametrize("how", ["fail", "release", "lost"])
async def test_whatever_ends_an_attempt_frees_its_place(engine: Engine, how: str) -> None:
    await limited(engine, 3, at_once=1)
    job = await engine.take("f", "call")
    if how == "fail":
        await engine.fail(job)
    elif how == "release":
        await engine.release(job)
    else:
        await engine.advance(seconds=61)
        assert await engine.claim("f", room=9) == []  # whoever has it may still be at work
        await engine.tick()
    assert len(await engine.claim("f", room=9)) == 1


async def test_priority_comes_before_age_within_a_limit(engine: Engine) -> None:
    await limited(engine, 2, at_once=1)
    urgent = await engine.start("f", priority=5)
    assert (await engine.take("f", "call")).instance == urgent


async def test_the_oldest_goes_first_and_no_follow_up_passes_it(engine: Engine) -> None:
    await engine.apply("f", {"n": 0}, {"call": {"when": "n < 2", "limit": {"at_once": 1}}}, final="n = 2")
    one, two = await engine.start_many("f", [{}, {}])
    jobs = await engine.claim("f", room=9)
    order = []
    while jobs:
        (job,) = jobs
        order.append(job.instance)
        _, jobs = await engine.turn([(job, {"n": job.state["n"] + 1})], flow="f", room=9)
    assert order == [one, two, one, two]


async def test_a_task_without_a_limit_is_not_kept_back_by_one_that_has(engine: Engine) -> None:
    tasks = {"call": {"when": "n = 0", "limit": {"at_once": 1}}, "free": "n = 0"}
    await engine.apply("f", {"n": 0}, tasks, final="n = 1")
    await engine.start_many("f", [{}] * 4)
    for _ in range(8):  # whichever kind is first
        jobs = await engine.claim("f", room=9)
        assert sorted(job.task for job in jobs) == ["call", *["free"] * 4]
        await engine.release(*jobs)


async def test_psql_takes_no_more_than_the_limit_allows(engine: Engine) -> None:
    one, two, _ = await limited(engine, 3, at_once=1)
    flow = await engine.one("select id from mutirao.flow")
    took = await engine.rows("select wid, lease_until is not null from mutirao.take_job(%s, 'call', %s)", flow, two)
    assert took == [(two, True)]
    assert await engine.rows("select * from mutirao.take_job(%s, 'call', %s)", flow, one) == []
    assert await engine.rows("select * from mutirao.take_job(%s, 'call', null)", flow) == []


# ---------------------------------------------------------------------------------------------------------- per second


async def test_no_more_begin_in_any_second_than_the_limit_allows(engine: Engine) -> None:
    await limited(engine, 100, per_second=5)
    begun: list[tuple[datetime, datetime]] = []
    for _ in range(40):
        before = await engine.one("select mutirao.now()")
        jobs = await engine.claim("f", room=50)
        begun += [(before, await engine.one("select mutirao.now()"))] * len(jobs)
        await engine.advance(milliseconds=100)
    assert len(begun) >= 15
    assert len({before for before, _ in begun[:5]}) == 1
    a_second = timedelta(seconds=1)
    assert all(begun[at + 5][1] - begun[at][0] >= a_second for at in range(len(begun) - 5))


async def test_a_rate_below_one_is_one_in_so_many_seconds(engine: Engine) -> None:
    await limited(engine, 3, per_second=0.01)
    assert len(await engine.claim("f", room=9)) == 1
    await engine.advance(seconds=90)
    assert await engine.claim("f", room=9) == []
    await engine.advance(seconds=20)
    assert len(await engine.claim("f", room=9)) == 1


# ---------------------------------------------------------------------------------------------------------- each value


async def test_each_value_has_its_own_limit(engine: Engine) -> None:
    await limited(engine, [{"customer": name} for name in "aaaabbc"], per="customer", each=2)
    first = await engine.claim("f", room=9)
    assert sorted(customers(first)) == ["a", "a", "b", "b", "c"]
    assert await engine.claim("f", room=9) == []
    await engine.complete(next(job for job in first if job.state["customer"] == "a"), n=1)
    assert customers(await engine.claim("f", room=9)) == ["a"]


async def test_values_take_turns(engine: Engine) -> None:
    """However many jobs one customer has, and however early it came."""
    await limited(engine, [{"customer": name} for name in "aaaaaaaabbcd"], per="customer", each=1)
    served = []
    for _ in range(8):
        (job,) = await engine.claim("f")
        served.append(job.state["customer"])
        await engine.complete(job, n=1)
    assert served == ["a", "b", "c", "d", "a", "b", "a", "a"]


async def test_a_value_that_is_kept_back_does_not_hide_the_others(engine: Engine) -> None:
    await limited(engine, [{"customer": "a"}] * 200 + [{"customer": "b"}], per="customer", each=1)
    assert customers(await engine.claim("f", room=9)) == ["a", "b"]


async def test_the_value_is_the_one_with_which_the_job_fired(engine: Engine) -> None:
    one, _ = await limited(engine, [{"customer": "a"}, {"customer": "a"}], per="customer", each=1)
    await engine.set(one, customer="z")
    assert len(await engine.claim("f", room=9)) == 1


async def test_what_is_retried_counts_for_the_value_it_has_by_then(engine: Engine) -> None:
    one, _ = await limited(engine, [{"customer": "a"}, {"customer": "b"}], per="customer", each=1)
    first, second = await engine.claim("f", room=9)
    await engine.fail(first, final=True)
    await engine.set(one, customer="b")
    await engine.retry(first.id)
    assert await engine.claim("f", room=9) == []
    await engine.complete(second, n=1)
    assert customers(await engine.claim("f", room=9)) == ["b"]


async def test_all_limits_hold_together(engine: Engine) -> None:
    await limited(engine, [{"customer": name} for name in "aabbccdd"], per="customer", each=1, at_once=3, per_second=2)
    assert len(await engine.claim("f", room=9)) == 2
    await engine.advance(seconds=2)
    assert len(await engine.claim("f", room=9)) == 1
    await engine.advance(seconds=2)
    assert await engine.claim("f", room=9) == []


# -------------------------------------------------------------------------------------------------------------- clocks


async def look_at(engine: Engine) -> Any:
    return await engine.one("select look_at from mutirao.throttle")


async def test_a_clock_looks_while_somebody_waits_and_only_then(engine: Engine) -> None:
    await limited(engine, 2, at_once=1)
    assert await look_at(engine) is None
    job = await engine.take("f", "call")
    assert await engine.claim("f") == []
    assert await look_at(engine) is not None
    await engine.advance(seconds=1)
    await engine.tick()
    assert await look_at(engine) is not None
    await engine.complete(job, n=1)
    await engine.advance(seconds=1)
    async with engine.hearing() as heard:
        await engine.tick()
    assert str(await engine.one("select id from mutirao.flow")) in heard
    assert await look_at(engine) is None


async def test_a_clock_turns_again_when_the_rate_allows(engine: Engine) -> None:
    await limited(engine, 2, per_second=0.01)
    await engine.take("f", "call")
    assert await engine.claim("f") == []
    left = await engine.one(
        "select extract(epoch from next_at - mutirao.now())::float8 from mutirao.turn_clock(500, 'limits')"
    )
    assert 95 < left <= 105


# ----------------------------------------------------------------------------------------------------------- by hand


async def test_a_limit_set_by_hand_holds_until_the_definition_says_something_else(engine: Engine) -> None:
    await limited(engine, 9, at_once=2)
    await engine.rows("select mutirao.limit_task('f', 'call', at_once => 3)")
    assert len(await engine.claim("f", room=9)) == 3
    await engine.apply(
        "f", {"n": 0, "customer": ""}, {"call": {"when": "n < 1", "limit": {"at_once": 2}}}, final="n = 1"
    )
    await engine.rows("select from mutirao.throttle where at_once = 3")
    assert await engine.one("select at_once from mutirao.throttle") == 3
    await engine.apply(
        "f", {"n": 0, "customer": ""}, {"call": {"when": "n < 1", "limit": {"at_once": 5}}}, final="n = 1"
    )
    assert len(await engine.claim("f", room=9)) == 2
    await engine.rows("select mutirao.limit_task('f', 'call')")
    assert len(await engine.claim("f", room=9)) == 4


async def test_jobs_that_run_or_wait_when_a_limit_comes_count_as_well(engine: Engine) -> None:
    await limited(engine, [{"customer": name} for name in "aabbb"])
    early = await engine.claim("f", room=3)
    assert customers(early) == ["a", "a", "b"]
    await engine.rows("select mutirao.limit_task('f', 'call', at_once => 4, per => 'customer', each => 2)")
    assert await engine.claim("f", room=9) == []  # until a clock has seen which are whose
    await engine.tick()
    assert customers(await engine.claim("f", room=9)) == ["b"]


async def test_jobs_that_fire_after_a_limit_set_by_hand_are_counted_by_value(engine: Engine) -> None:
    await limited(engine, 0)
    await engine.rows("select mutirao.limit_task('f', 'call', per => 'customer', each => 1)")
    await engine.tick()
    await engine.start_many("f", [{"customer": name} for name in "aab"])
    assert customers(await engine.claim("f", room=9)) == ["a", "b"]


async def test_instances_that_keep_an_older_version_are_counted_by_value(engine: Engine) -> None:
    tasks = {"first": "n = 0", "call": "n = 1"}
    await engine.apply("f", {"n": 0, "customer": "a"}, tasks, final="n = 2")
    old, older = await engine.start_many("f", [{}, {}])
    await engine.apply(
        "f",
        {"n": 0, "customer": "a"},
        {**tasks, "call": {"when": "n = 1", "limit": {"per": "customer", "each": 1}}},
        final="n = 2",
    )
    await engine.tick()
    for instance in (old, older):
        job = next(job for job in await engine.claim("f", "first"))
        await engine.complete(job, n=1)
        assert job.instance == instance
    assert len(await engine.claim("f", "call", room=9)) == 1


async def test_a_limit_by_another_attribute_counts_by_that(engine: Engine) -> None:
    await limited(engine, [{"customer": name} for name in "abc"], per="customer", each=1)
    await engine.rows("select mutirao.limit_task('f', 'call', per => 'n', each => 1)")
    await engine.tick()
    assert len(await engine.claim("f", room=9)) == 1


async def test_a_very_long_value_counts_by_its_beginning(engine: Engine) -> None:
    long = "".join(chr(33 + n * 7919 % 94) for n in range(20_000))
    await limited(engine, [{"customer": long}, {"customer": long}], per="customer", each=1)
    assert len(await engine.claim("f", room=9)) == 1
    await engine.rows("select mutirao.limit_task('f', 'call', per => 'customer', each => 2)")
    await engine.tick()
    assert len(await engine.claim("f", room=9)) == 1


async def test_a_limit_by_hand_goes_with_its_attribute(engine: Engine) -> None:
    await engine.create("f", {"stage": "a", "customer": "x"}, {"go": "stage = 'a'"}, "stage = 'b'")
    await engine.rows("select mutirao.limit_task('f', 'go', per => 'customer', each => 1)")
    await engine.rows("delete from f.wed_attr where aname = 'customer'")
    assert await engine.one("select count(*) from mutirao.throttle") == 0


async def test_a_flow_that_drops_its_limit_is_free(engine: Engine) -> None:
    await limited(engine, 3, at_once=1)
    await limited(engine, 0)
    assert len(await engine.claim("f", room=9)) == 3
    assert await engine.one("select count(*) from mutirao.throttle") == 0


# ------------------------------------------------------------------------------------------------------------- looking


async def test_a_job_says_which_limit_keeps_it_back(engine: Engine) -> None:
    _, second = await limited(engine, 2, at_once=1)
    await engine.take("f", "call")
    limit = await engine.one("select mutirao.limit_of(%s)", await engine.job(second, "call"))
    assert limit == {"at_once": 1, "running": 1, "keeps_back": "at_once"}


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ({"at_once": 0}, "limits are more than zero"),
        ({"per_second": -1}, "limits are more than zero"),
        ({"each": 1}, "each goes with per"),
        ({"per": "customer"}, "each goes with per"),
        ({"at_once": "many"}, 'task "call"'),
    ],
)
async def test_a_limit_that_is_none_is_refused(engine: Engine, limit: dict[str, Any], says: str) -> None:
    async with engine.refused("flow_invalid", says):
        await limited(engine, 0, **limit)


async def test_a_limit_per_what_is_no_attribute_is_refused(engine: Engine) -> None:
    async with engine.refused(
        "unknown_attribute",
        'task "call" is limited per "client", which is no attribute of the flow; it has n, customer',
    ):
        await limited(engine, 0, per="client", each=1)
    await limited(engine, 0)
    for wrong in ("at_once => 0", "per => 'customer'", "per_second => -1"):
        async with engine.refused("wrong_call", "more than zero"):
            await engine.rows(f"select mutirao.limit_task('f', 'call', {wrong})")
    async with engine.refused("unknown_task", '"cal"'):
        await engine.rows("select mutirao.limit_task('f', 'cal', at_once => 1)")

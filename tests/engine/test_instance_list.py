"""Instances looked for by what is known of them: each filter, page by page, for whoever sees all and for one person."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from desk import Desk, fresh_desk  # noqa: F401 gives the fixture `desk`
from office import one, refused, rows

from mutirao.database.charge import Creation
from mutirao.database.find import InstanceFilter
from mutirao.testing import advance


async def found(desk: Desk, *, actor: int | None = None, limit: int = 50, **wanted: Any) -> list[int]:
    """All pages of them."""
    numbers: list[int] = []
    before = None
    while True:
        page, before = await desk.engine.find_instances(
            InstanceFilter(**wanted), actor=actor, before=before, limit=limit
        )
        numbers += [each.id for each in page]
        if before is None:
            return numbers


async def test_each_filter_finds_its_instances_newest_first(desk: Desk) -> None:
    await desk.put_letters()
    await desk.put_letters(name="memo")
    first = await desk.engine.charges.create(
        desk.manager, Creation(flow="letter", key="Order-1", state={"topic": "tea"})
    )
    second = await desk.letter(topic="coffee")
    third = await desk.engine.charges.create(
        desk.administrator, Creation(flow="memo", key="order-2", in_charge="clerk_1", state={"topic": "tea"})
    )
    await desk.engine.cancel(second)
    await desk.engine.set(third, {"topic": "milk"})
    assert await found(desk) == await found(desk, limit=1) == [third, second, first]
    assert await found(desk, flow="letter") == await found(desk, flow="letter", limit=1) == [second, first]
    assert await found(desk, status="open") == [third, first]
    assert await found(desk, status="closed") == await found(desk, flow="letter", status="closed.aborted") == [second]
    assert await found(desk, status="open.exception") == []
    assert await found(desk, in_charge="manager") == await found(desk, in_charge="MANAGER", limit=1) == [second, first]
    assert await found(desk, in_charge="manager", status="open") == [first]
    assert await found(desk, person="clerk_1") == [third]
    assert await found(desk, flow="letter", attribute="topic", value="tea") == [first]
    assert await found(desk, flow="memo", attribute="topic", value="tea") == []
    assert await found(desk, text="order-") == await found(desk, text="ORDER", limit=1) == [third, first]
    assert await found(desk, text=str(second)) == [second]
    assert await found(desk, text="order-", in_charge="manager", flow="letter") == [first]
    assert await found(desk, text="rder") == await found(desk, text="100%") == []


async def test_instances_are_found_by_when_they_were_started(desk: Desk) -> None:
    """One that was put off has an earlier number, and was started later."""
    await desk.put_letters()
    now = await one(desk.engine, "select mutirao.now()")
    later = now + timedelta(days=3)
    put_off = await desk.engine.charges.create(desk.manager, Creation(flow="letter", at=later))
    old = await desk.letter()
    async with desk.engine.connection() as connection:
        await advance(connection, timedelta(days=4))
    await one(desk.engine, "select mutirao.start_due(10)")
    new = await desk.letter()
    assert await found(desk, started_before=now + timedelta(days=1)) == [old]
    assert await found(desk, started_after=now + timedelta(days=1)) == [new, put_off]
    assert await found(desk, started_after=now - timedelta(days=1), started_before=now + timedelta(days=9)) == [
        new,
        old,
        put_off,
    ]


async def test_whoever_asks_for_theirs_is_told_of_no_others(desk: Desk) -> None:
    await desk.put_letters()
    mine = await desk.engine.charges.create(desk.manager, Creation(flow="letter", key="k-1", state={"topic": "tea"}))
    others = await desk.engine.charges.create(
        desk.administrator, Creation(flow="letter", key="k-2", in_charge="clerk_1", state={"topic": "tea"})
    )
    assert await found(desk) == [others, mine]
    everything: tuple[dict[str, Any], ...] = (
        {},
        {"text": "k-"},
        {"flow": "letter", "attribute": "topic", "value": "tea"},
        {"status": "open"},
    )
    for wanted in everything:
        assert await found(desk, actor=desk.manager, **wanted) == [mine]
        assert await found(desk, actor=desk.clerks[1], **wanted) == []
    assert await found(desk, actor=desk.manager, person="clerk_1") == []


async def test_whoever_looks_for_a_busy_colleague_is_led_by_their_own(desk: Desk) -> None:
    """A clerk has had to do with more than a call looks at, all of it newer than what the manager has had to do with, too."""
    await desk.put_letters()
    shared, _ = await desk.letter(), await desk.letter()
    async with desk.engine.connection() as connection:
        await connection.execute(
            "insert into mutirao.closed (id, flow, version, status, state, fired, reached, firings, priority, started_at, closed_at)"
            " select 1000 + i, f.id, f.version, 'closed.completed', '{}', '{}', '{}', 1, 0, now(), now() from mutirao.flow f, generate_series(1, 30) i"
        )
        await connection.execute(
            "insert into mutirao.participation (instance, person) select n, %s from (select id from mutirao.closed union all select %s) x(n)",
            [desk.clerks[0], shared],
        )
    ask = "select ids, further from mutirao.find_instances(%s, %s::jsonb, null, 5, 20)"
    assert await rows(desk.engine, ask, desk.manager, '{"person": "clerk_1"}') == [([shared], None)]
    assert await rows(desk.engine, ask, desk.clerks[0], '{"person": "manager"}') == [([shared], None)]
    theirs = list(range(1030, 1025, -1))
    assert await rows(desk.engine, ask, desk.clerks[0], '{"person": "clerk_1"}') == [(theirs, theirs[-1])]


@pytest.mark.parametrize(
    ("wanted", "code", "says"),
    [
        ({"flow": "leter"}, "unknown_flow", "leter"),
        ({"status": "finished"}, "wrong_call", "closed.completed"),
        ({"in_charge": "nobody"}, "unknown_person", "nobody"),
        ({"attribute": "topic", "value": "tea"}, "wrong_call", "needs the flow"),
        ({"flow": "letter", "attribute": "pages", "value": "3"}, "not_searchable", "those that are: topic"),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused(
    desk: Desk, wanted: dict[str, Any], code: str, says: str
) -> None:
    await desk.put_letters()
    async with refused(code, says):
        await desk.engine.find_instances(InstanceFilter(**wanted))


async def test_whoever_goes_on_passes_over_any_number_that_do_not_fit(desk: Desk) -> None:
    """A call looks at twenty here; what it does not reach, those that follow do, and nothing comes twice."""
    await desk.put_letters()
    await desk.put_letters(name="memo")
    async with desk.engine.connection() as connection:
        await connection.execute(
            "insert into mutirao.closed (id, flow, version, status, state, fired, reached, firings, priority, started_at, closed_at)"
            " select 1000 + i, f.id, f.version, 'closed.completed', '{}', '{}', '{}', 1, 0, s.at, s.at + interval '1 hour'"
            " from generate_series(1, 20000) i, mutirao.flow f, lateral (select %s::timestamptz + i * interval '1 minute') s(at)"
            " where f.name = case when i between 3000 and 9000 or i %% 1000 = 0 then 'memo' else 'letter' end",
            [datetime(2020, 1, 1, tzinfo=UTC)],
        )
        await connection.execute(
            "insert into mutirao.key (flow, key, instance) select c.flow, 'k' || c.id, c.id from mutirao.closed c where c.id % 700 = 0"
        )
    memos = [
        row[0]
        for row in await rows(
            desk.engine,
            "select c.id from mutirao.closed c join mutirao.flow f on f.id = c.flow where f.name = 'memo' order by 1 desc",
        )
    ]
    for wanted, numbers in (
        ('{"flow": "memo"}', memos),
        ('{"text": "k"}', [n for n in range(21000, 1000, -1) if n % 700 == 0]),
        ('{"started_before": "2020-01-02T00:00:00Z"}', list(range(2439, 1000, -1))),
        ('{"flow": "memo", "started_before": "2020-01-03T12:00:00Z"}', [n for n in memos if n - 1000 < 3600]),
    ):
        told: list[int] = []
        before = None
        while True:
            [(ids, before)] = await rows(
                desk.engine,
                "select ids, further from mutirao.find_instances(null, %s::jsonb, %s, 7, 20)",
                wanted,
                before,
            )
            told += ids
            if before is None:
                break
        assert told == numbers, wanted

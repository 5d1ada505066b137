"""Instances over HTTP: created, looked at and steered by those who may."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from site_kit import Site, fresh_site, newest_site, refused  # noqa: F401 gives the fixtures

from mutirao.model import Attribute, Definition, Offer, Task


async def test_whoever_is_in_the_creator_role_creates_and_is_in_charge(site: Site) -> None:
    client = await site.client("clerk_1")
    made = await client.instances.create("request", {"city": "Recife"}, reason="by phone")
    assert (made.in_charge, made.may_steer, made.state["city"]) == ("clerk_1", True, "Recife")
    first = await anext(client.instances.trace(made.id))
    assert first.writer == "clerk_1"
    assert first.note == {"reason": "by phone"}


async def test_numbers_are_exact_both_ways(site18: Site) -> None:
    client = await site18.client("clerk_1")
    amount = Decimal("12345678901234567890.123456789")
    made = await client.instances.create("request", {"amount": amount})
    assert (await client.instances.get(made.id)).state["amount"] == amount


async def test_one_who_is_not_in_the_creator_role_may_not(site18: Site) -> None:
    client = await site18.client("outsider")
    async with refused("forbidden", 403, 'members of the role "clerk"'):
        await client.instances.create("request")
    assert await client.flows.startable() == []
    assert [flow.name for flow in await (await site18.client("clerk_1")).flows.startable()] == ["request"]


async def test_lists_go_by_pages_and_have_only_ones_own(site: Site) -> None:
    client = await site.client("clerk_1")
    made = [(await client.instances.create("request", {"city": str(n)})).id for n in range(5)]
    other = await (await site.client("clerk_2")).instances.create("request")
    found = [each.id async for each in client.instances.all(flow="request", status="open", limit=2)]
    assert found == list(reversed(made))
    boss = await site.client("boss")
    assert [each.id async for each in boss.instances.all()] == []
    assert [each.id async for each in boss.instances.all(everybody=True, limit=3)] == [other.id, *reversed(made)]
    assert [each.id async for each in boss.instances.all(flow="request", where="city=3")] == [made[3]]
    async with refused("forbidden", 403):
        await anext(client.instances.all(everybody=True))
    async with refused("wrong_call", 422):
        await anext(boss.instances.all(status="shut"))


async def test_the_next_page_is_linked(site18: Site) -> None:
    client = await site18.client("clerk_1")
    for _ in range(3):
        await client.instances.create("request")
    http = await site18.http("clerk_1")
    first = await http.get("/api/instances?limit=2")
    assert first.links["next"]["url"].startswith(site18.url)
    second = await http.get(first.links["next"]["url"])
    assert len(second.json()["items"]) == 1
    assert second.json()["next"] is None
    assert "Link" not in second.headers
    assert (await http.get("/api/instances?cursor=nonsense")).json()["code"] == "wrong_call"


async def test_it_is_steered_by_whoever_is_in_charge(site: Site) -> None:
    client = await site.client("clerk_1")
    instance, _ = await site.item()
    assert (await client.instances.suspend(instance, reason="wait")).status == "open.notrunning.suspended"
    async with refused("instance_suspended", 409):
        await (await site.client("clerk_2")).worklist.select((await site.item())[1] - 1)
    assert (await client.instances.resume(instance)).status == "open.running"
    async with refused("not_suspended", 409):
        await client.instances.resume(instance)
    async with refused("not_an_exception", 409):
        await client.instances.repair(instance)
    assert (await client.instances.set(instance, {"city": "Olinda"})).state["city"] == "Olinda"
    assert (await client.instances.hand_over(instance, "clerk_2")).in_charge == "clerk_2"
    async with refused("forbidden", 403, "only the person in charge"):
        await client.instances.cancel(instance)
    assert (await (await site.client("clerk_2")).instances.cancel(instance)).status == "closed.aborted"
    async with refused("instance_closed", 409):
        await (await site.client("boss")).instances.cancel(instance)


async def test_a_change_of_what_was_changed_meanwhile_is_told_what_was(site: Site) -> None:
    client = await site.client("clerk_1")
    instance, _ = await site.item(city="Recife")
    seen = (await client.instances.get(instance)).revision
    await (await site.client("boss")).instances.set(instance, {"city": "Olinda"}, seen=seen)
    async with refused("changed_meanwhile", 412) as told:
        await client.instances.set(instance, {"city": "Natal"}, seen=seen)
    [change] = told.error.details["changes"]
    assert change["by"] == "boss"
    assert change["attributes"] == {"city": {"before": "Recife", "after": "Olinda"}}
    http = await site.http("clerk_1")
    answer = await http.post(f"/api/instances/{instance}/set", json={"change": {"city": "Natal"}, "revision": seen})
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_meanwhile")
    assert (await client.instances.get(instance)).state["city"] == "Olinda"


async def test_whatever_steers_may_name_what_was_seen(site: Site) -> None:
    client, boss = await site.client("clerk_1"), await site.client("boss")
    instance, job = await site.item(city="Recife")
    taker = await site.client("clerk_2")
    await taker.worklist.fail(job, await taker.worklist.select(job), "nobody knows")
    seen = (await client.instances.get(instance)).revision
    await boss.instances.hand_over(instance, "clerk_2", reason="on leave", seen=seen)
    now = (await boss.instances.get(instance)).revision
    assert now > seen
    steering = boss.instances
    for steer in (
        steering.set(instance, {}, seen=seen),
        steering.repair(instance, {}, seen=seen),
        steering.suspend(instance, seen=seen),
        steering.resume(instance, seen=seen),
        steering.cancel(instance, seen=seen),
        steering.hand_over(instance, "clerk_1", seen=seen),
        boss.jobs.retry(job, seen=seen),
        boss.jobs.skip(job, {"answer": "no"}, seen=seen),
    ):
        async with refused("changed_meanwhile", 412, 'last by "boss"') as told:
            await steer
        [change] = told.error.details["changes"]
        assert (change["what"], change["by"], change["attributes"]) == ("hand_over", "boss", {})
    found = await boss.instances.get(instance)
    assert (found.status, found.in_charge, found.revision) == ("open.exception", "clerk_2", now)
    http = await site.http("boss")
    for path in (f"instances/{instance}/cancel", f"jobs/{job}/retry"):
        answer = await http.post(f"/api/{path}", json={"revision": seen})
        assert (answer.status_code, answer.json()["code"]) == (409, "changed_meanwhile")
    await boss.jobs.retry(job, seen=now)
    assert (await boss.instances.cancel(instance)).status == "closed.aborted"


async def test_why_and_jobs_are_for_those_who_see_it(site18: Site) -> None:
    instance, job = await site18.item()
    client = await site18.client("clerk_2")
    assert [why.task for why in await client.instances.why(instance)][:2] == [None, "approve"]
    assert (await client.jobs.get(job)).task == "approve"
    outsider = await site18.client("outsider")
    for asked in (outsider.instances.why(instance), outsider.instances.get(instance)):
        async with refused("unknown_instance", 404):
            await asked
    async with refused("unknown_job", 404):
        await outsider.jobs.get(job)


async def test_a_start_may_be_put_off_and_have_policies_and_a_key(site18: Site) -> None:
    client = await site18.client("clerk_1")
    later = datetime.now(UTC) + timedelta(days=1)
    made = await client.instances.create(
        "request", at=later, instance_key="a", policies={"approve": {"kind": "round_robin"}}
    )
    assert made.status == "open.notrunning"
    assert made.due_at == later
    assert (await client.instances.create("request", instance_key="a")).id == made.id
    async with refused("unknown_task", 422):
        await client.instances.create("request", policies={"nothing": {"kind": "everyone"}})
    async with refused("unknown_flow", 404):
        await client.instances.create("nothing")
    async with refused("wrong_type", 422):
        await client.instances.create("request", {"amount": "much"})


async def test_parent_and_child_are_shown_to_whoever_may_see_them(site: Site) -> None:
    asking = Task(name="ask", when="answer is null", child="request", outputs=("answer",))
    order = Definition(
        name="order",
        creator="clerk",
        attributes=(Attribute("city", "text"), Attribute("answer", "text")),
        tasks=(asking,),
        final="answer is not null",
    )
    await site.engine.apply(order)
    client, other = await site.client("clerk_1"), await site.client("clerk_2")
    parent = await client.instances.create("order", {"city": "Recife"})
    async with site.engine.connection() as connection:
        await connection.execute("select mutirao.turn_clock(duty => 'children')")
    [child] = (await client.instances.get(parent.id)).children
    assert (await client.instances.get(child)).parent == parent.id
    [job] = [each async for each in client.instances.jobs(parent.id)]
    assert job.child == child
    found = {each.id: (each.parent, list(each.children)) async for each in client.instances.all()}
    assert found == {parent.id: (None, [child]), child: (parent.id, [])}
    # One who may do the child's item, but has nothing to do with the order.
    seen = await other.instances.get(child)
    assert (seen.parent, list(seen.children)) == (None, [])


async def test_of_a_job_that_an_instance_does_its_number_is_told_to_whoever_may_see_it(site: Site) -> None:
    """A person who may do an item of the order, and has nothing to do with the request that is a part of it."""
    await site.engine.roles.add(None, "packer")
    await site.engine.roles.put(None, "packer", ["outsider"])
    order = Definition(
        name="order",
        creator="clerk",
        attributes=(Attribute("city", "text"), Attribute("answer", "text"), Attribute("box", "text")),
        tasks=(
            Task(name="ask", when="answer is null", child="request", outputs=("answer",)),
            Task(name="pack", when="box is null", offer=Offer(role="packer"), outputs=("box",)),
        ),
        final="answer is not null",
    )
    await site.engine.apply(order)
    client, packer = await site.client("clerk_1"), await site.client("outsider")
    parent = await client.instances.create("order", {"city": "Recife"})
    async with site.engine.connection() as connection:
        await connection.execute("select mutirao.turn_clock(duty => 'children')")
    [child] = (await client.instances.get(parent.id)).children
    [asking] = [each async for each in client.instances.jobs(parent.id) if each.task == "ask"]
    assert (asking.child, (await client.jobs.get(asking.id)).child) == (child, child)
    [seen] = [each async for each in packer.instances.jobs(parent.id) if each.task == "ask"]
    assert (seen.child, (await packer.jobs.get(asking.id)).child) == (None, None)


async def test_each_step_stands_beside_the_state_before_it_wherever_a_page_begins(site: Site) -> None:
    instance, _ = await site.item(city="0")
    clerk = await site.engine.persons.number("clerk_1")
    for number in range(1, 4):
        await site.engine.set(instance, {"city": str(number)})
        await site.engine.charges.hand_over(clerk, instance, "clerk_1")
    rows = await site.engine.trace(instance)
    before: dict[int, Any] = {}
    was: dict[str, Any] | None = None
    for row in rows:
        before[row.id] = None if row.state is None else was
        was = row.state or was
    assert any(row.state is None for row in rows)
    assert len([each for each in before.values() if each]) > 2
    sight = site.engine.seen_by(clerk)
    for start in (None, *before):
        for limit in (1, 2, 5, 50):
            found = await sight.steps(instance, before=start, limit=limit)
            expected = [row.id for row in reversed(rows) if start is None or row.id < start][:limit]
            assert {each.id: each.was for each in found} == {number: before[number] for number in expected}
            assert [each.id for each in found] == expected


async def test_one_that_is_being_cancelled_says_so(site: Site) -> None:
    instance, job = await site.item()
    client, other = await site.client("clerk_1"), await site.client("clerk_2")
    attempt = await other.worklist.select(job)
    [held] = [each async for each in client.instances.jobs(instance)]
    assert (held.role, held.holder, held.finish_by) == ("clerk", "clerk_2", None)
    found = await client.instances.cancel(instance)
    assert (found.status, found.hold) == ("open.running", "cancelled")
    assert [each.hold async for each in client.instances.all()] == ["cancelled"]
    await other.worklist.finish(job, attempt, {"answer": "yes"})
    found = await client.instances.get(instance)
    assert (found.status, found.hold) == ("closed.aborted", None)


async def test_a_page_looks_at_so_many_and_says_where_to_go_on(site: Site) -> None:
    """Few that fit among very many: a page may be empty, and still there is more."""
    instance, _ = await site.item(city="Recife")
    clerk = await site.engine.persons.number("clerk_1")
    async with site.engine.connection() as connection:
        await connection.execute(
            "insert into mutirao.participation (instance, person) select %s + n, %s from generate_series(1, 5500) n",
            [instance, clerk],
        )
    http = await site.http("clerk_1")
    first = (await http.get("/api/instances", params={"status": "open"})).json()
    assert first["items"] == []
    second = (await http.get("/api/instances", params={"status": "open", "cursor": first["next"]})).json()
    assert ([each["id"] for each in second["items"]], second["next"]) == ([instance], None)
    client = await site.client("clerk_1")
    assert [each.id async for each in client.instances.all(status="open")] == [instance]
    assert [each.id for each in await site.engine.seen_by(clerk).instances(status="open")] == [instance]


async def test_instances_are_found_by_the_same_filters_as_on_the_page(site: Site) -> None:
    clerk, boss = await site.client("clerk_1"), await site.client("boss")
    first = await clerk.instances.create("request", {"city": "Recife"}, instance_key="order-1")
    second = await boss.instances.create("request", {"city": "Natal"}, in_charge="clerk_2")
    for asked, wanted in (
        ({"in_charge": "clerk_1"}, [first.id]),
        ({"person": "clerk_2"}, [second.id]),
        ({"text": "ORDER"}, [first.id]),
        ({"text": str(second.id)}, [second.id]),
        ({"started_before": first.started_at}, []),
        ({"started_after": first.started_at}, [second.id, first.id]),
        ({"flow": "request", "where": "city=Natal"}, [second.id]),
        ({"status": "closed"}, []),
    ):
        assert [each.id async for each in boss.instances.all(everybody=True, **asked)] == wanted
        assert [each.id async for each in clerk.instances.all(**asked)] == [n for n in wanted if n == first.id]
    async with refused("forbidden", 403):
        await anext(clerk.instances.all(everybody=True))
    async with refused("unknown_person", 404, "nobody"):
        await anext(boss.instances.all(everybody=True, in_charge="nobody"))
    assert [each async for each in clerk.instances.all(flow="rquest")] == []
    [counted] = await boss.instances.counts()
    assert (counted.flow, counted.open, counted.closed, counted.is_exact) == ("request", 2, 0, True)
    async with refused("forbidden", 403):
        await clerk.instances.counts()


ASK = Definition(
    name="ask",
    creator="clerk",
    attributes=(Attribute("answer", "text"),),
    tasks=(Task(name="decide", when="answer is null", offer=Offer(role="administrator"), outputs=("answer",)),),
    final="answer is not null",
)


async def test_whoever_starts_an_instance_for_somebody_else_sees_it_and_a_known_key_shows_nothing(site: Site) -> None:
    clerk, boss = await site.client("clerk_1"), await site.client("boss")
    await site.engine.apply(ASK)
    made = await clerk.instances.create("ask", in_charge="clerk_2", instance_key="a")
    assert (made.in_charge, made.may_steer) == ("clerk_2", False)
    await boss.instances.create("ask", instance_key="b")
    async with refused("unknown_instance", 404):
        await clerk.instances.create("ask", in_charge="clerk_2", instance_key="b")

"""What persons do with a work item: select, lock, return, finish, delegate, put into lists and take out of them."""

import pytest
from desk import HOUR, Desk, fresh_desk  # noqa: F401 gives the fixture `desk`
from office import move, refused, rows

from mutirao.database.charge import Creation
from mutirao.model import Attribute, Definition, Offer, Policy, Task, Term


async def test_whoever_selects_an_item_takes_it_out_of_the_other_lists(desk: Desk) -> None:
    await desk.put_letters()
    job = await desk.item()
    first, second, _ = desk.clerks
    assert [await desk.seen(clerk) for clerk in desk.clerks] == [[job]] * 3
    attempt = await desk.engine.worklists.select(first, job)
    assert [await desk.seen(clerk) for clerk in desk.clerks] == [[job], [], []]
    assert await desk.engine.worklists.select(first, job) == attempt
    async with refused("item_taken", '"clerk_1" holds work item'):
        await desk.engine.worklists.select(second, job)


async def test_an_item_is_finished_with_what_it_writes(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter(topic="tax")
    job = await desk.item_of(instance)
    attempt = await desk.engine.worklists.select(desk.clerks[0], job)
    assert await desk.engine.worklists.finish(desk.clerks[0], job, attempt, {"answer": "yes"}) == "done"
    closed = await desk.engine.instance(instance)
    assert (closed.status, closed.state["answer"]) == ("closed.completed", "yes")
    assert await desk.story(instance) == [("start", "manager"), ("select", "clerk_1"), ("finish", "clerk_1")]
    async with refused("item_finished", "you have finished work item"):
        await desk.engine.worklists.finish(desk.clerks[0], job, attempt, {"answer": "no"})
    assert (await desk.engine.instance(instance)).state["answer"] == "yes"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"topic": "x"}, "wrong_output"),
        ({"answer": 3}, "wrong_type"),
        ({"nothing": 3}, "wrong_output"),
    ],
)
async def test_a_result_that_does_not_fit_is_refused_and_the_item_stays(desk: Desk, change: object, code: str) -> None:
    await desk.put_letters()
    job = await desk.item()
    attempt = await desk.engine.worklists.select(desk.clerks[0], job)
    async with refused(code):
        await desk.engine.worklists.finish(desk.clerks[0], job, attempt, change)  # type: ignore[arg-type]
    assert await desk.engine.worklists.finish(desk.clerks[0], job, attempt, {"answer": "yes"}) == "done"


async def test_it_is_told_why_an_item_cannot_be_taken_or_finished(desk: Desk) -> None:
    await desk.put_letters()
    job = await desk.item()
    first, second, _ = desk.clerks
    lists = desk.engine.worklists
    async with refused("forbidden", 'it is for the role "clerk"'):
        await lists.select(desk.manager, job)
    await lists.delegate(desk.manager, job, first)
    async with refused("forbidden", 'it is offered to "clerk_1" alone'):
        await lists.select(desk.administrator, job)
    await lists.remove(desk.manager, job, desk.administrator)
    async with refused("forbidden", "it was taken out of your list"):
        await lists.select(desk.administrator, job)
    attempt = await lists.select(first, job)
    async with refused("item_not_held", f"by attempt {attempt}, and not by {attempt + 1}"):
        await lists.finish(first, job, attempt + 1)
    async with refused("item_not_held", '"clerk_1" holds work item'):
        await lists.finish(desk.manager, job, attempt)
    async with refused("item_not_held", f"you do not hold work item {job}"):
        await lists.finish(second, job, attempt)
    await lists.finish(first, job, attempt, {"answer": "yes"})
    for late in (lists.show(first, job), lists.select(first, job), lists.give_back(first, job)):
        async with refused("item_finished", "you have finished work item"):
            await late
    async with refused("unknown_job"):
        await lists.select(second, job)


async def test_an_item_that_failed_is_for_the_person_in_charge_to_retry(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    job = await desk.item_of(instance)
    attempt = await desk.engine.worklists.select(desk.clerks[0], job)
    await desk.engine.worklists.fail(desk.clerks[0], job, attempt, "the letter cannot be read")
    assert (await desk.engine.instance(instance)).status == "open.exception"
    assert await desk.seen(desk.clerks[0]) == []
    async with refused("item_not_ready", "is failed"):
        await desk.engine.worklists.select(desk.clerks[0], job)
    async with refused("forbidden"):
        await desk.engine.charges.retry(desk.clerks[0], job)
    await desk.engine.charges.retry(desk.manager, job, reason="look again")
    assert await desk.seen(desk.clerks[1]) == [job]
    assert (await desk.engine.instance(instance)).status == "open.running"


async def test_a_returned_item_is_in_all_lists_again(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    job = await desk.item_of(instance)
    first, second, _ = desk.clerks
    async with refused("item_not_held", "nobody holds it"):
        await desk.engine.worklists.give_back(first, job)
    old = await desk.engine.worklists.select(first, job)
    async with refused("item_not_held", '"clerk_1" holds it'):
        await desk.engine.worklists.give_back(second, job)
    await desk.engine.worklists.give_back(first, job, reason="lunch")
    assert [await desk.seen(clerk) for clerk in desk.clerks] == [[job]] * 3
    assert await desk.engine.worklists.select(second, job) != old
    await desk.engine.worklists.give_back(desk.manager, job)
    assert await desk.story(instance) == [
        ("start", "manager"), ("select", "clerk_1"), ("return", "clerk_1"), ("select", "clerk_2"), ("return", "manager"),
    ]  # fmt: skip


async def test_only_a_task_that_allows_it_is_locked(desk: Desk) -> None:
    away = Task(name="visit", when="answer is null", offer=Offer(role="clerk", disconnected=True))
    await desk.put_letters(away)
    await desk.put_letters(name="office_letter")
    job = await desk.item()
    clerk = desk.clerks[0]
    async with refused("not_disconnected"):
        await desk.engine.worklists.select(clerk, await desk.item("office_letter"), lock=True)
    attempt = await desk.engine.worklists.select(clerk, job, lock=True)
    shown = (await desk.engine.worklists.show(clerk, job)).item
    assert (shown.locked, shown.disconnected, shown.status, shown.attempt) == (True, True, "running", attempt)
    async with refused("item_taken"):
        await desk.engine.worklists.select(desk.clerks[1], job)
    assert await desk.engine.worklists.select(clerk, job) == attempt
    assert not (await desk.engine.worklists.show(clerk, job)).item.locked
    await desk.engine.worklists.select(clerk, job, lock=True)
    await desk.engine.worklists.finish(clerk, job, attempt, {"answer": "seen"})


async def test_an_item_of_a_suspended_instance_waits_and_what_runs_may_finish(desk: Desk) -> None:
    second = Task(name="sign", depends=Term("answer", "succeeded"), offer=Offer(role="clerk"))
    first = Task(name="answer", when="answer is null", offer=Offer(role="clerk"))
    await desk.put_letters(first, second, final=None, ends="quiet")
    ready, running = await desk.letter(), await desk.letter()
    clerk = desk.clerks[0]
    held = await desk.item_of(running)
    attempt = await desk.engine.worklists.select(clerk, held)
    for instance in (ready, running):
        await desk.engine.charges.suspend(desk.manager, instance, reason="strike")
    async with refused("instance_suspended", "when it is resumed"):
        await desk.engine.worklists.select(clerk, await desk.item_of(ready))
    assert await desk.seen(clerk) == [held]
    assert await desk.engine.worklists.finish(clerk, held, attempt, {"answer": "yes"}) == "done"
    assert await desk.seen(clerk) == []
    for instance in (ready, running):
        await desk.engine.charges.resume(desk.manager, instance)
    assert set(await desk.seen(clerk)) == {await desk.item_of(ready), await desk.item_of(running, "sign")}


async def test_an_item_of_a_cancelled_instance_is_gone_and_what_runs_may_finish(desk: Desk) -> None:
    await desk.put_letters()
    ready, running = await desk.letter(), await desk.letter()
    clerk = desk.clerks[0]
    gone, held = await desk.item_of(ready), await desk.item_of(running)
    attempt = await desk.engine.worklists.select(clerk, held)
    for instance in (ready, running):
        await desk.engine.charges.cancel(desk.manager, instance, reason="withdrawn")
    async with refused("unknown_job"):
        await desk.engine.worklists.select(clerk, gone)
    assert await desk.engine.worklists.finish(clerk, held, attempt, {"answer": "yes"}) == "done"
    assert [(await desk.engine.instance(each)).status for each in (ready, running)] == ["closed.aborted"] * 2


async def test_an_item_returned_to_a_cancelled_instance_lets_it_close(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    job = await desk.item_of(instance)
    await desk.engine.worklists.select(desk.clerks[0], job)
    await desk.engine.charges.cancel(desk.manager, instance)
    assert (await desk.engine.instance(instance)).is_open
    await desk.engine.worklists.give_back(desk.clerks[0], job)
    assert (await desk.engine.instance(instance)).status == "closed.aborted"


async def test_a_delegated_item_is_for_one_person_and_the_old_result_is_kept(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    job = await desk.item_of(instance)
    first, second, third = desk.clerks
    async with refused("forbidden", "not yours to delegate"):
        await desk.engine.worklists.delegate(first, job, second)
    old = await desk.engine.worklists.select(first, job)
    async with refused("forbidden", '"manager" is not in the role "clerk"'):
        await desk.engine.worklists.delegate(first, job, "manager")
    await desk.engine.worklists.delegate(first, job, "clerk_2", reason="knows more")
    assert [await desk.seen(clerk) for clerk in desk.clerks] == [[], [job], []]
    async with refused("unknown_job"):
        await desk.engine.worklists.select(third, job)
    for answer in ("mine", "mine after all"):  # sent again, it takes the place of the first
        async with refused("item_moved", 'it was given to "clerk_2"'):
            await desk.engine.worklists.finish(first, job, old, {"answer": answer})
    kept = (await desk.engine.worklists.show(second, job)).attachments
    assert [(each.kind, each.person, each.content) for each in kept] == [
        ("late_result", "clerk_1", {"change": {"answer": "mine after all"}})
    ]
    attempt = await desk.engine.worklists.select(second, job)
    await desk.engine.worklists.finish(second, job, attempt, {"answer": "yes"})
    assert (await desk.engine.instance(instance)).state["answer"] == "yes"
    async with refused("item_moved", "kept as attachment"):
        await desk.engine.worklists.finish(first, job, old, {"answer": "late"})


async def test_a_late_result_is_kept_also_when_its_task_has_fired_again(desk: Desk) -> None:
    again = Task(name="answer", when="answer is null", offer=Offer(role="clerk"))
    await desk.put_letters(again)
    instance = await desk.letter()
    first, second, _ = desk.clerks
    lists = desk.engine.worklists
    job = await desk.item_of(instance)
    old = await lists.select(first, job)
    await lists.delegate(desk.manager, job, "clerk_1")
    newer = await lists.select(first, job)
    async with refused("item_not_held", f"by attempt {newer}, and not by {old}"):
        await lists.finish(first, job, old, {"answer": "mine"})
    await lists.delegate(desk.manager, job, "clerk_2")
    await lists.finish(second, job, await lists.select(second, job), {"pages": 1})
    next_job = await desk.item_of(instance)
    attempt = await lists.select(first, next_job)
    for late in (newer, old):
        async with refused("item_moved", "kept as attachment"):
            await lists.finish(first, job, late, {"answer": f"by {late}"})
    [kept] = await lists.attachments(first, instance)
    assert (kept.person, kept.content) == ("clerk_1", {"change": {"answer": f"by {old}"}})
    await lists.finish(first, next_job, attempt, {"answer": "yes"})
    async with refused("item_finished"):
        await lists.finish(first, next_job, attempt, {"answer": "yes"})


async def test_the_person_in_charge_delegates_to_anybody(desk: Desk) -> None:
    await desk.put_letters()
    job = await desk.item()
    attempt = await desk.engine.worklists.select(desk.clerks[0], job)
    await desk.engine.worklists.delegate(desk.manager, job, desk.manager)
    assert (await desk.seen(desk.manager), await desk.seen(desk.clerks[0])) == ([job], [])
    async with refused("forbidden", 'it is offered to "manager" alone'):
        await desk.engine.worklists.select(desk.clerks[0], job)
    async with refused("item_moved"):
        await desk.engine.worklists.fail(desk.clerks[0], job, attempt, "no")
    assert [row for (row,) in await rows(desk.engine, "select content from mutirao.attachment")] == [
        {"change": {}, "error": "no"}
    ]


async def test_an_item_is_inserted_into_a_list_and_removed_from_it(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    job = await desk.item_of(instance)
    stranger = (await desk.engine.persons.add(None, "technician_1")).id
    async with refused("unknown_job"):
        await desk.engine.worklists.select(stranger, job)
    async with refused("unknown_job"):
        await desk.engine.worklists.insert(stranger, job, stranger)
    async with refused("forbidden", "only the person in charge"):
        await desk.engine.worklists.insert(desk.clerks[0], job, "technician_1")
    await desk.engine.worklists.insert(desk.manager, job, "technician_1")
    assert (await desk.seen(stranger), await desk.seen(desk.clerks[0])) == ([job], [job])
    await desk.engine.worklists.remove(desk.manager, job, desk.clerks[0])
    assert [await desk.seen(clerk) for clerk in desk.clerks] == [[], [job], [job]]
    async with refused("unknown_job"):
        await desk.engine.worklists.select(desk.clerks[0], job)
    await desk.engine.worklists.select(stranger, job)
    await desk.engine.worklists.remove(desk.administrator, job, stranger)
    assert (await desk.seen(stranger), await desk.seen(desk.clerks[1])) == ([], [job])
    await desk.engine.worklists.insert(desk.manager, job, desk.clerks[0])
    assert await desk.seen(desk.clerks[0]) == [job]
    assert [kind for kind, _ in await desk.story(instance)] == [
        "start",
        "insert",
        "remove",
        "select",
        "remove",
        "insert",
    ]


async def test_removing_an_item_from_one_list_leaves_it_in_the_hands_of_another(desk: Desk) -> None:
    """It is offered to one, and an invited one holds it."""
    await desk.put_letters()
    job = await desk.item()
    first, second, _ = desk.clerks
    await desk.engine.worklists.delegate(desk.manager, job, first)
    await desk.engine.worklists.insert(desk.manager, job, second)
    attempt = await desk.engine.worklists.select(second, job)
    await desk.engine.worklists.remove(desk.manager, job, first)
    assert (await desk.engine.worklists.show(second, job)).item.attempt == attempt
    assert await desk.engine.worklists.finish(second, job, attempt, {"answer": "yes"}) == "done"


async def test_a_late_item_goes_back_to_the_person_in_charge(desk: Desk) -> None:
    await desk.put_letters()
    job = await desk.item()
    async with desk.engine.connection() as connection:
        await connection.execute("update mutirao.job set transferred = true, offered_to = %s", [desk.manager])
    await desk.engine.worklists.delegate(desk.manager, job, desk.clerks[0])
    await desk.engine.worklists.select(desk.clerks[0], job)
    await desk.engine.worklists.give_back(desk.clerks[0], job)
    assert (await desk.seen(desk.manager), await desk.seen(desk.clerks[0])) == ([job], [])


async def test_a_finish_that_would_be_final_too_early_is_parked(desk: Desk) -> None:
    answer = Task(name="answer", when="answer is null", fires="once", offer=Offer(role="clerk"), outputs=("answer",))
    count = Task(name="count", when="pages is null", fires="once", offer=Offer(role="clerk"), outputs=("pages",))
    await desk.put_letters(answer, count)
    instance = await desk.letter()
    jobs = {each.task: each.id for each in await desk.engine.jobs(instance)}
    clerk, other, _ = desk.clerks
    attempts = {task: await desk.engine.worklists.select(clerk, job) for task, job in jobs.items()}
    done = await desk.engine.worklists.finish(clerk, jobs["answer"], attempts["answer"], {"answer": "yes"})
    assert done == "parked"
    assert await desk.seen(clerk) == [jobs["count"]]
    async with refused("item_not_ready", "is parked"):
        await desk.engine.worklists.select(other, jobs["answer"])
    async with refused("item_finished"):
        await desk.engine.worklists.finish(clerk, jobs["answer"], attempts["answer"], {"answer": "no"})
    await desk.engine.worklists.finish(clerk, jobs["count"], attempts["count"], {"pages": 3})
    closed = await desk.engine.instance(instance)
    assert (closed.status, closed.state["answer"], closed.state["pages"]) == ("closed.completed", "yes", 3)


async def test_a_substitute_sees_and_does_what_is_another_persons(desk: Desk) -> None:
    await desk.put_letters()
    offered, role, held = await desk.items(3)
    first, second, _ = desk.clerks
    stand_in = (await desk.engine.persons.add(None, "technician_1")).id
    await desk.engine.worklists.delegate(desk.manager, offered, first)
    attempt = await desk.engine.worklists.select(first, held)
    assert await desk.seen(stand_in) == []
    await desk.away(first, stand_in)
    assert set(await desk.seen(stand_in)) == {offered, role, held}
    shown = {each.job: each.instead_of for each in (await desk.engine.worklists.page(stand_in)).items}
    assert set(shown.values()) == {"clerk_1"}
    await desk.engine.worklists.select(stand_in, offered)
    async with refused("item_taken"):
        await desk.engine.worklists.select(stand_in, held)
    async with refused("item_not_held"):
        await desk.engine.worklists.give_back(second, held)
    await desk.engine.worklists.give_back(stand_in, held, reason="nobody is there")
    taken = await desk.engine.worklists.select(stand_in, held)
    async with refused("item_moved"):
        await desk.engine.worklists.finish(first, held, attempt, {"answer": "late"})
    await desk.away(first, None)
    assert set(await desk.seen(stand_in)) == {offered, held}
    await desk.engine.worklists.finish(stand_in, held, taken, {"answer": "yes"})


async def test_what_is_barred_for_a_person_is_barred_for_them_as_a_substitute(desk: Desk) -> None:
    await desk.put_letters()
    job = await desk.item()
    first, second, third = desk.clerks
    await desk.away(first, second)
    await desk.engine.worklists.remove(desk.manager, job, second)
    assert await desk.seen(second) == []
    async with refused("unknown_job"):
        await desk.engine.worklists.select(second, job)
    await desk.engine.worklists.insert(desk.manager, job, second)
    await desk.engine.worklists.remove(desk.manager, job, first)
    assert (await desk.seen(second), await desk.seen(third)) == ([job], [job])


async def test_a_person_who_asked_cannot_let_themselves_approve(desk: Desk) -> None:
    ask = Task(name="ask", when="true", fires="once", offer=Offer(role="manager"))
    approve = Task(
        name="approve", depends=Term("ask", "succeeded"), offer=Offer(role="manager", policy=Policy("not_as", "ask"))
    )
    await desk.put_letters(ask, approve, final=None, ends="quiet")
    other = (await desk.engine.persons.add(None, "manager_2", roles=["manager"])).id
    instance = await desk.letter()
    job = await desk.item_of(instance)
    await desk.engine.worklists.finish(desk.manager, job, await desk.engine.worklists.select(desk.manager, job))
    approval = await desk.item_of(instance, "approve")
    assert (await desk.seen(desk.manager), await desk.seen(other)) == ([], [approval])
    for act in (desk.engine.worklists.insert, desk.engine.worklists.delegate):
        async with refused("forbidden"):
            await act(desk.manager, approval, desk.manager)
    async with refused("forbidden", 'whoever did "ask" may not do it, and you did'):
        await desk.engine.worklists.select(desk.manager, approval)
    await desk.away(other, desk.manager)
    assert await desk.seen(desk.manager) == []
    await desk.engine.worklists.insert(desk.administrator, approval, desk.manager)
    assert await desk.seen(desk.manager) == [approval]


async def test_what_is_nobodys_business_is_not_there(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    job = await desk.item_of(instance)
    stranger = (await desk.engine.persons.add(None, "technician_1")).id
    lists = desk.engine.worklists
    for refusal in (
        lists.show(stranger, job),
        lists.select(stranger, job),
        lists.give_back(stranger, job),
        lists.delegate(stranger, job, stranger),
        lists.remove(stranger, job, desk.clerks[0]),
        lists.comment(stranger, "hello", job=job),
        lists.move(stranger, job, before=job + 1),
        desk.engine.charges.skip(stranger, job),
    ):
        async with refused("unknown_job"):
            await refusal
    for unseen in (
        lists.comment(stranger, "hello", instance=instance),
        lists.comments(stranger, instance),
        desk.engine.seen_by(stranger).instance(instance),
        desk.engine.charges.cancel(stranger, instance),
    ):
        async with refused("unknown_instance"):
            await unseen
    async with refused("item_not_held"):
        await lists.finish(stranger, job, 1, {"answer": "no"})
    await desk.engine.persons.disable(None, stranger)
    async with refused("person_disabled"):
        await lists.page(stranger)
    async with refused("unknown_person"):
        await lists.page(999)


async def test_a_job_of_a_worker_is_no_item(desk: Desk) -> None:
    await desk.put_letters(Task(name="answer", when="answer is null"))
    job = await desk.item()
    async with refused("not_an_item", "programs do it"):
        await desk.engine.worklists.select(desk.manager, job)


async def test_a_policy_chosen_at_creation_counts_for_that_instance(desk: Desk) -> None:
    await desk.put_letters()
    new = Creation(flow="letter", policies={"answer": Policy("round_robin")})
    jobs = [await desk.item_of(await desk.engine.charges.create(desk.manager, new)) for _ in range(4)]
    everyone = await desk.item()
    first, second, third = desk.clerks
    assert await desk.seen(first) == [jobs[0], jobs[3], everyone]
    assert (await desk.seen(second), await desk.seen(third)) == ([jobs[1], everyone], [jobs[2], everyone])
    for wrong, code in (({"sign": Policy()}, "unknown_task"), ({"answer": Policy("same_as", "sign")}, "wrong_call")):
        async with refused(code):
            await desk.engine.charges.create(desk.manager, Creation(flow="letter", policies=wrong))


async def test_an_item_that_waits_for_a_time_is_offered_when_it_comes(desk: Desk) -> None:
    later = Task(name="answer", when="answer is null", wait="at", offer=Offer(role="clerk"), outputs=("answer",))
    attributes = (Attribute("at", "timestamp"), Attribute("answer", "text"))
    await desk.engine.apply(
        Definition(name="later", attributes=attributes, tasks=(later,), ends="quiet", creator="manager")
    )
    (((now,),)) = await rows(desk.engine, "select mutirao.now()")
    await desk.engine.charges.create(desk.manager, Creation(flow="later", state={"at": now + HOUR}))
    assert await desk.seen(desk.clerks[0]) == []
    await move(desk.engine, HOUR * 2)
    await rows(desk.engine, "select done from mutirao.turn_clock()")
    assert len(await desk.seen(desk.clerks[0])) == 1


async def test_no_call_of_a_worker_touches_an_item_that_somebody_holds(desk: Desk) -> None:
    await desk.put_letters()
    instance = await desk.letter()
    job = await desk.item_of(instance)
    attempt = await desk.engine.worklists.select(desk.clerks[0], job)
    async with refused("lease_lost"):
        await rows(desk.engine, 'select mutirao.complete(%s, %s, \'{"answer": "by the way"}\')', job, attempt)
    async with refused("lease_lost"):
        await rows(desk.engine, "select mutirao.fail(%s, %s, 'no')", job, attempt)
    assert await rows(desk.engine, "select mutirao.renew(array[%s]::bigint[], array[%s]::bigint[])", job, attempt) == [
        (attempt,)
    ]
    assert (
        await rows(desk.engine, "select mutirao.release(array[%s]::bigint[], array[%s]::bigint[])", job, attempt) == []
    )
    [kept] = await rows(
        desk.engine, "select status::text, attempt, lease_until = 'infinity' from mutirao.job where id = %s", job
    )
    assert kept == ("running", attempt, True)

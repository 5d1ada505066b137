"""Two who go for one work item, or for its instance, at the same moment: one of them gets it, the other a clear answer."""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from driver import Engine, document, fresh_engine  # noqa: F401 gives the fixture `engine`
from probe import run, running, session, until_it_waits
from psycopg.types.json import Jsonb

ANSWER = {"when": "answer is null", "offer": {"role": "clerk"}, "outputs": ["answer"]}


TAKE = "select mutirao.select_item(%s, %s)"
OUT = "select mutirao.take_out_of_role(null, (select id from mutirao.role where name = 'clerk'), array[%s])"


class Office:
    """An instance with one item, a manager in charge of it, and two clerks."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def open(self, task: dict[str, Any] | None = None, **more: Any) -> None:
        one = self.engine.one
        for role in ("clerk", "manager"):
            await one("select mutirao.add_role(null, %s)", role)
        self.manager, self.first, self.second = [
            int(await one("select mutirao.add_person(null, %s, roles => %s)", name, [role]))
            for name, role in (("manager", "manager"), ("clerk_1", "clerk"), ("clerk_2", "clerk"))
        ]
        attributes: dict[str, Any] = {"answer": None}
        flow = document(
            "letter", attributes, {"answer": task or ANSWER}, creator="manager", final="answer is not null", **more
        )
        await one("select mutirao.apply_flow(%s)", Jsonb(flow))
        await self.renew()

    async def renew(self) -> None:
        self.instance = int(await self.engine.one("select mutirao.create_instance(%s, 'letter')", self.manager))
        self.job = await self.engine.job(self.instance, "answer")

    async def finishing(self) -> tuple[Any, ...]:
        """The call by which the first clerk, who has the item now, finishes it."""
        attempt = await self.engine.one(SELECT, self.first, self.job)
        finish = "select outcome, code from mutirao.finish_item(%s, %s, %s, %s)"
        return finish, self.first, self.job, attempt, Jsonb({"answer": "mine"})

    def delegating(self) -> tuple[Any, ...]:
        return "select mutirao.delegate_item(%s, %s, %s)", self.manager, self.job, self.second


@pytest.fixture(name="office")
async def open_office(engine: Engine) -> Office:
    office = Office(engine)
    await office.open()
    return office


def code_of(error: BaseException) -> str:
    assert isinstance(error, psycopg.Error), error
    return (error.diag.message_primary or "").partition(":")[0]


async def against(
    office: Office, first: Sequence[Any], second: Sequence[Any], *, waits: bool = True
) -> str | list[Any]:
    """The first call is made and not committed; the second meets it. Its rows, or the code by which it was refused."""
    async with session(office.engine) as one, session(office.engine) as other:
        await run(one, *first)
        meeting = running(other, *second)
        if waits:
            await until_it_waits(office.engine, other)
            assert not meeting.done()
        else:
            await asyncio.wait([meeting])
        await one.commit()
        try:
            answer = await meeting
            await other.commit()
        except psycopg.Error as error:
            return code_of(error)
        return answer


SELECT = "select mutirao.select_item(%s, %s)"


async def test_of_two_who_select_at_once_one_has_it(office: Office) -> None:
    assert (
        await against(office, (SELECT, office.first, office.job), (SELECT, office.second, office.job)) == "item_taken"
    )


async def test_whoever_selects_while_the_first_gives_up_gets_it(office: Office) -> None:
    async with session(office.engine) as one, session(office.engine) as other:
        await run(one, SELECT, office.first, office.job)
        meeting = running(other, SELECT, office.second, office.job)
        await until_it_waits(office.engine, other)
        await one.rollback()
        assert await meeting
        await other.commit()
    assert await office.engine.one("select person from mutirao.job where id = %s", office.job) == office.second


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("select mutirao.steer_instance(%s, {instance}, 'cancel')", "unknown_job"),
        ("select mutirao.steer_instance(%s, {instance}, 'suspend')", "instance_suspended"),
        ("select mutirao.delegate_item(%s, {job}, {second})", "forbidden"),
        ("select mutirao.remove_item(%s, {job}, {first})", "forbidden"),
        ("select mutirao.steer_job(%s, {job}, 'skip', '{{\"answer\": \"no\"}}')", "unknown_job"),
    ],
)
async def test_a_select_that_meets_what_takes_the_item_away_is_refused(
    office: Office, statement: str, code: str
) -> None:
    steering = statement.format(instance=office.instance, job=office.job, first=office.first, second=office.second)
    assert await against(office, (steering, office.manager), (SELECT, office.first, office.job)) == code


@pytest.mark.parametrize("act", ["cancel", "suspend"])
async def test_what_was_selected_before_a_cancel_or_suspend_may_finish(office: Office, act: str) -> None:
    engine = office.engine
    steering = ("select mutirao.steer_instance(%s, %s, %s)", office.manager, office.instance, act)
    await against(office, (SELECT, office.first, office.job), steering)
    attempt = await engine.one("select attempt from mutirao.job where id = %s", office.job)
    done = await engine.rows(
        "select * from mutirao.finish_item(%s, %s, %s, %s)", office.first, office.job, attempt, Jsonb({"answer": "yes"})
    )
    assert done[0][0] == "done"
    assert (await engine.state(office.instance))["answer"] == "yes"


async def test_a_finish_that_meets_a_delegation_is_refused_and_kept(office: Office) -> None:
    finishing, delegating = await office.finishing(), office.delegating()
    assert await against(office, delegating, finishing) == [("refused", "item_moved")]
    assert await office.engine.one("select content from mutirao.attachment") == {"change": {"answer": "mine"}}
    assert (await office.engine.state(office.instance))["answer"] is None


async def test_a_delegation_that_meets_a_finish_finds_nothing(office: Office) -> None:
    finishing, delegating = await office.finishing(), office.delegating()
    assert await against(office, finishing, delegating) == "unknown_job"
    assert (await office.engine.state(office.instance))["answer"] == "mine"


async def test_a_select_that_meets_a_finish_finds_nothing(office: Office) -> None:
    finishing = await office.finishing()
    assert await against(office, finishing, (SELECT, office.second, office.job), waits=False) == "item_taken"


@pytest.mark.parametrize("finishes_first", [True, False])
async def test_an_item_whose_time_comes_while_it_is_finished_ends_in_one_way(
    engine: Engine, finishes_first: bool
) -> None:
    """The clock moves it to the person in charge, or finds it done."""
    office = Office(engine)
    await office.open({**ANSWER, "offer": {"role": "clerk", "deadline": 3600}})
    finishing = await office.finishing()
    await engine.advance(hours=2)
    turning = ("select done from mutirao.turn_clock(500, 'deadlines')",)
    if finishes_first:
        await against(office, finishing, turning, waits=False)  # clocks wait for nobody
        assert (await engine.state(office.instance))["answer"] == "mine"
        await engine.tick()
        assert await engine.rows("select from mutirao.attachment") == []
    else:
        assert await against(office, turning, finishing) == [("refused", "item_moved")]
        assert await engine.one("select offered_to from mutirao.job where id = %s", office.job) == office.manager


async def test_two_hundred_go_for_one_item(office: Office) -> None:
    """Twenty sessions, ten tries each: one has it, and nobody waits for longer than it takes."""

    async def tries(person: int) -> list[str]:
        async with await psycopg.AsyncConnection.connect(office.engine.url, autocommit=True) as connected:
            told = []
            for _ in range(10):
                try:
                    await run(connected, SELECT, person, office.job)
                    told.append("got it")
                except psycopg.Error as error:
                    told.append(code_of(error))
            return told

    persons = [
        int(await office.engine.one("select mutirao.add_person(null, %s, roles => '{clerk}')", f"clerk_{n + 10}"))
        for n in range(20)
    ]
    told = await asyncio.gather(*map(tries, persons))
    winners = [each for each in told if "got it" in each]
    assert winners == [["got it"] * 10] or len(winners) == 1
    assert {answer for each in told for answer in each} == {"got it", "item_taken"}


async def test_turns_taken_at_once_wait_for_nobody(engine: Engine) -> None:
    office = Office(engine)
    await office.open({**ANSWER, "offer": {"role": "clerk", "policy": {"kind": "round_robin"}}})
    starting = ("select mutirao.create_instance(%s, 'letter')", office.manager)
    await against(office, starting, starting, waits=False)
    offered = [person for (person,) in await engine.rows("select offered_to from mutirao.job order by id")]
    assert offered[:2] == [office.first, office.second]
    assert offered[2] in (office.first, office.second)


@pytest.mark.parametrize("key", ["one", "another"])
async def test_of_two_who_start_with_one_key_at_once_the_second_does_not_see_what_the_first_has_started(
    office: Office, key: str
) -> None:
    """Each starts it for a clerk, and only whoever did start it has had to do with it."""
    add = "select mutirao.add_person(null, 'manager_2', roles => '{manager}')"
    other = int(await office.engine.one(add))
    start = "select mutirao.create_instance(%s, 'letter', key => %s, in_charge => %s)"
    first = (start, office.manager, "one", office.first)
    answer = await against(office, first, (start, other, key, office.second), waits=key == "one")
    assert not isinstance(answer, str), answer
    [(started,)] = answer
    concerned = await office.engine.rows("select person from mutirao.participation where instance = %s", started)
    by_first, by_second = {office.manager, office.first}, {other, office.second}
    assert {person for (person,) in concerned} == (by_first if key == "one" else by_second)


async def test_whoever_takes_an_item_while_they_leave_its_role_does_not_keep_it(engine: Engine) -> None:
    office = Office(engine)
    await office.open()
    async with session(engine) as leaving, session(engine) as taking:
        await run(leaving, OUT, office.first)
        await run(taking, TAKE, office.first, office.job)  # they are still in it, as far as anybody can see
        await taking.commit()
        await leaving.commit()
    tick = "select (done ->> 'access')::int from mutirao.turn_clock(duty => 'access')"
    holder = "select person from mutirao.job where id = %s"
    assert [await engine.one(tick), await engine.one(holder, office.job)] == [1, None]
    assert await engine.one("select status from mutirao.job where id = %s", office.job) == "ready"
    # What they may do for another reason they keep: that they were in the role does not matter.
    await engine.one("select mutirao.delegate_item(%s, %s, %s)", office.manager, office.job, office.first)
    await engine.one(TAKE, office.first, office.job)
    assert [await engine.one(tick), await engine.one(holder, office.job)] == [0, office.first]
    await engine.advance(minutes=11)
    await engine.one(tick)
    assert await engine.one("select count(*) from mutirao.departure") == 0

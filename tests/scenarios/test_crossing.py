"""Two processes meet, WorkToDo report, sections 6.1 and 6.2: conflicting tasks exclude each other, and whoever goes first with one pair goes first with all."""

from pathlib import Path

import pytest
from command import answer, mutirao
from driver import Engine
from people import items, set_up, tasks
from served import Served, site_on

from mutirao.errors import MutiraoError
from mutirao.server.client import Client

# In the words of the report.
ORDERING = """
WORKFLOW_DEFINITIONS P_1: P_2;
RELATIVE_ORDER{
T_11: T_21;
T_12: T_22;
}
"""
FOR_PEOPLE = """
WORKFLOW P_1 {
  CREATOR clerk;
  TASK T_11 { TYPE MANUAL; ROLE first; DEPENDS; }
  TASK T_12 { TYPE MANUAL; ROLE first; DEPENDS T_11 -> SUCCEEDED; }
}
WORKFLOW P_2 {
  CREATOR clerk;
  TASK T_21 { TYPE MANUAL; ROLE second; DEPENDS; }
  TASK T_22 { TYPE MANUAL; ROLE second; DEPENDS T_21 -> SUCCEEDED; }
}
"""
FOR_PROGRAMS = """
WORKFLOW P_1 {
  TASK T_11 { DEPENDS; TASK_CLASS road; }
  TASK T_12 { DEPENDS T_11 -> SUCCEEDED; }
}
WORKFLOW P_2 {
  TASK T_21 { DEPENDS; TASK_CLASS rail; }
  TASK T_22 { DEPENDS T_21 -> SUCCEEDED; }
}
"""
PERSONS = {"boss": ["administrator"], "clerk_1": ["clerk"], "worker_1": ["first"], "worker_2": ["second"]}


async def take(client: Client) -> tuple[int, int]:
    """Select the one item there is for them."""
    [item] = await items(client)
    return item.job, await client.worklist.select(item.job)


async def do(client: Client) -> None:
    job, attempt = await take(client)
    await client.worklist.finish(job, attempt, {})


async def is_kept_back(client: Client, by: int) -> bool:
    """Their item stays in their list, and they are told who goes first."""
    before = await tasks(client)
    with pytest.raises(MutiraoError, match=f"instance {by} goes first by an ordering") as refused:
        await take(client)
    return refused.value.code == "class_held" and await tasks(client) == before


@pytest.mark.parametrize("goes_first", [1, 2])
async def test_whoever_goes_first_with_one_pair_goes_first_with_the_other(database_url: str, goes_first: int) -> None:
    async with site_on(database_url, Served) as site:
        await set_up(site.engine, PERSONS)
        clerk = await site.client("clerk_1")
        await (await site.client("boss")).library.apply(FOR_PEOPLE + ORDERING)
        numbers = {n: (await clerk.instances.create(f"p_{n}")).id for n in (1, 2)}
        first, second = [await site.client(f"worker_{n}") for n in (goes_first, 3 - goes_first)]
        one, two = numbers[goes_first], numbers[3 - goes_first]
        # To have it in the list reserves nothing: who begins has gone first.
        assert len(await tasks(first)) == len(await tasks(second)) == 1
        job, attempt = await take(first)
        assert await is_kept_back(second, by=one)
        await first.worklist.finish(job, attempt, {})
        # T_11 has ended and lets T_21 go; T_22 waits for T_12, though nobody has begun with that.
        await do(second)
        assert await is_kept_back(second, by=one)
        await do(first)
        await do(second)
        assert {(await clerk.instances.get(each)).status for each in (one, two)} == {"closed.completed"}


async def test_who_is_cancelled_keeps_nobody_waiting(database_url: str) -> None:
    async with site_on(database_url, Served) as site:
        await set_up(site.engine, PERSONS)
        clerk = await site.client("clerk_1")
        await (await site.client("boss")).library.apply(FOR_PEOPLE + ORDERING)
        one, two = [(await clerk.instances.create(f"p_{n}")).id for n in (1, 2)]
        first, second = await site.client("worker_1"), await site.client("worker_2")
        await do(first)
        await do(second)
        assert await is_kept_back(second, by=one)
        await clerk.instances.cancel(one, reason="ordered twice")
        await do(second)
        assert (await clerk.instances.get(two)).status == "closed.completed"


@pytest.fixture
def crossing(database_url: str, tmp_path: Path) -> str:
    """A road and a rail that cross: whoever is on the one keeps others off both."""
    where = ("--database", database_url)
    for name, others in (("road", ()), ("rail", ("road", "rail")), ("road", ("road", "rail"))):
        said = mutirao("class", "put", name, *(word for other in others for word in ("--conflicts", other)), *where)
        assert said.returncode == 0, said.stderr
    file = tmp_path / "crossing.pdl"
    file.write_text(FOR_PROGRAMS + ORDERING)
    said = mutirao("pdl", "apply", str(file), *where)
    assert said.returncode == 0, said.stderr
    return database_url


async def test_conflicting_tasks_exclude_each_other_and_the_pairs_keep_their_order(crossing: str) -> None:
    """P_2 goes whenever it may, and P_1 only when nothing else can: all the same P_1, which began, is first in both pairs."""
    async with Engine(crossing) as engine:
        one, two, three = [await engine.start(flow) for flow in ("p_1", "p_2", "p_2")]
        done, kept_back = [], set()
        while {await engine.status(each) for each in (one, two, three)} != {"closed.completed"}:
            waits = answer("class", "waits", "--database", crossing)
            kept_back |= {(each["instance"], each["task"], each["kind"], each["holder_instance"]) for each in waits}
            assert await engine.one("select count(*) <= 1 from mutirao.job where gate = 'holds' and class is not null")
            [job] = await engine.claim("p_2") or await engine.claim("p_1")
            done.append((job.instance, job.task))
            await engine.complete(job)
        assert done == [
            (one, "t_11"),
            (two, "t_21"),
            (three, "t_21"),
            (one, "t_12"),
            (two, "t_22"),
            (three, "t_22"),
        ]
        assert kept_back == {
            (two, "t_21", "class", one),
            (three, "t_21", "class", one),
            (three, "t_21", "class", two),
            (two, "t_22", "ordering", one),
            (three, "t_22", "ordering", one),
        }
        assert not answer("class", "waits", "--database", crossing)

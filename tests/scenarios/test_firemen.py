"""The firemen of MobiWfMS, section 5.2: the second procedure begins in time, though nobody calls for it. Over HTTP, by examples/rescue.pdl."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from people import EXAMPLES, items, set_up, tasks
from served import Served, site_on

from mutirao.server.client import Client
from mutirao.testing import advance

PERSONS = {
    "boss": ["administrator"],
    "dispatcher_1": ["dispatcher"],
    "fireman_1": ["fireman"],
    "rescuer_1": ["contingency team"],
}


class Brigade:
    """Who is there, after the call has come in and the first procedure has begun."""

    def __init__(self, site: Served, dispatcher: Client, fireman: Client, rescuer: Client, instance: int) -> None:
        self.site = site
        self.dispatcher, self.fireman, self.rescuer = dispatcher, fireman, rescuer
        self.instance = instance
        self.job = self.attempt = 0

    async def let_pass(self, minutes: int) -> None:
        async with self.site.engine.connection() as connection:
            await advance(connection, timedelta(minutes=minutes))
            await connection.execute("select mutirao.turn_clock()")

    async def do(self, client: Client, **change: str) -> str:
        """The one item of theirs, which is answered."""
        [item] = await items(client)
        await client.worklist.finish(item.job, await client.worklist.select(item.job), change)
        return item.task

    async def status(self) -> str:
        return (await self.dispatcher.instances.get(self.instance)).status

    async def states(self) -> dict[str, str]:
        return {each.task: each.state for each in await self.dispatcher.instances.tasks(self.instance)}


@asynccontextmanager
async def called(url: str) -> AsyncIterator[Brigade]:
    async with site_on(url, Served) as site:
        await set_up(site.engine, PERSONS)
        await (await site.client("boss")).library.apply((EXAMPLES / "rescue.pdl").read_text("utf-8"))
        dispatcher, fireman = await site.client("dispatcher_1"), await site.client("fireman_1")
        instance = (await dispatcher.instances.create("rescue", {"place": "1 Main Street"})).id
        brigade = Brigade(site, dispatcher, fireman, await site.client("rescuer_1"), instance)
        [item] = await items(fireman)
        brigade.job, brigade.attempt = item.job, await fireman.worklist.select(item.job)
        yield brigade


async def test_nobody_calls_and_the_second_team_goes_all_the_same(database_url: str) -> None:
    async with called(database_url) as brigade:
        await brigade.let_pass(59)
        assert await tasks(brigade.rescuer) == []
        await brigade.let_pass(1)
        assert await tasks(brigade.rescuer) == ["procedure_2"]
        assert await brigade.states() == {"procedure_1": "running", "procedure_2": "ready", "report": "not_ready"}
        assert await brigade.do(brigade.rescuer, outcome="saved") == "procedure_2"
        # What the first team comes back with, much later, starts nothing a second time.
        await brigade.let_pass(180)
        await brigade.fireman.worklist.fail(brigade.job, brigade.attempt, "the ladder was too short")
        assert await tasks(brigade.rescuer) == []
        assert await brigade.do(brigade.dispatcher) == "report"
        assert await brigade.status() == "closed.completed"
        assert (await brigade.dispatcher.instances.get(brigade.instance)).state["outcome"] == "saved"


async def test_they_call_and_the_second_team_goes_at_once(database_url: str) -> None:
    async with called(database_url) as brigade:
        await brigade.let_pass(20)
        await brigade.fireman.worklist.fail(brigade.job, brigade.attempt, "the ladder is too short")
        assert await tasks(brigade.rescuer) == ["procedure_2"]
        assert await brigade.status() == "open.running"
        await brigade.do(brigade.rescuer, outcome="saved")
        await brigade.do(brigade.dispatcher)
        await brigade.let_pass(60)
        assert await brigade.status() == "closed.completed"
        assert await brigade.states() == {"procedure_1": "failed", "procedure_2": "succeeded", "report": "succeeded"}


async def test_what_is_solved_in_time_needs_no_second_team(database_url: str) -> None:
    async with called(database_url) as brigade:
        await brigade.let_pass(50)
        await brigade.fireman.worklist.finish(brigade.job, brigade.attempt, {"outcome": "saved"})
        await brigade.let_pass(60)
        assert await tasks(brigade.rescuer) == []
        await brigade.do(brigade.dispatcher)
        assert await brigade.status() == "closed.completed"
        assert (await brigade.states())["procedure_2"] == "not_ready"


async def test_the_hour_counts_from_when_the_first_team_begins(database_url: str) -> None:
    """Nobody has gone there yet: there is nothing to be overtaken, and the person in charge sees the item lie."""
    async with called(database_url) as brigade:
        await brigade.fireman.worklist.give_back(brigade.job)
        second = (await brigade.dispatcher.instances.create("rescue", {"place": "2 Main Street"})).id
        await brigade.let_pass(61)
        # The first call was begun once, so its hour runs on; the second one was not.
        assert [item.instance for item in await items(brigade.rescuer)] == [brigade.instance]
        states = {each.task: each.state for each in await brigade.dispatcher.instances.tasks(second)}
        assert states == {"procedure_1": "ready", "procedure_2": "not_ready", "report": "not_ready"}

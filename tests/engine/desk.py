"""Persons at their desks: an administrator, a manager and clerks, and flows whose items they do."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mutirao.database.charge import Creation
from mutirao.database.engine import Engine
from mutirao.database.item import ALL_ITEMS, ItemFilter
from mutirao.model import Attribute, Definition, Offer, Task

CLERKS = ("clerk_1", "clerk_2", "clerk_3")
LETTER = (
    Attribute("topic", "text", searchable=True),
    Attribute("pages", "integer"),
    Attribute("answer", "text"),
)


@dataclass(frozen=True)
class Desk:
    """The numbers of the persons, and an engine to ask."""

    engine: Engine
    administrator: int
    manager: int
    clerks: Sequence[int]

    async def put_letters(self, *tasks: Task, name: str = "letter", **more: Any) -> None:
        """A flow in which letters are answered; by a clerk, unless tasks are given."""
        answer = Task(name="answer", when="answer is null", offer=Offer(role="clerk"), outputs=("answer",))
        settings = {"final": "answer is not null", "creator": "manager", **more}
        await self.engine.apply(Definition(name=name, attributes=LETTER, tasks=tasks or (answer,), **settings))

    async def letter(self, flow: str = "letter", **state: Any) -> int:
        """A new instance, which the manager is in charge of."""
        return await self.engine.charges.create(self.manager, Creation(flow=flow, state=state))

    async def item(self, flow: str = "letter", **state: Any) -> int:
        """The item of a new instance."""
        return await self.item_of(await self.letter(flow, **state))

    async def item_of(self, instance: int, task: str | None = None) -> int:
        [job] = [each.id for each in await self.engine.jobs(instance) if task in (None, each.task)]
        return job

    async def items(self, number: int, **state: Any) -> list[int]:
        return [await self.item(**state) for _ in range(number)]

    async def seen(self, person: int, chosen: ItemFilter = ALL_ITEMS, *, limit: int = 50) -> list[int]:
        """The items in somebody's list, all pages of it."""
        found: list[int] = []
        after = None
        while True:
            page = await self.engine.worklists.page(person, chosen, after=after, limit=limit)
            found += [each.job for each in page.items]
            if (after := page.next) is None:
                return found

    async def away(self, person: int, substitute: int | None) -> None:
        async with self.engine.connection() as connection:
            await connection.execute(
                "update mutirao.person set away_from = case when %(to)s::int is not null then mutirao.now() end, substitute = %(to)s where id = %(who)s",
                {"to": substitute, "who": person},
            )

    async def story(self, instance: int) -> list[tuple[str, str]]:
        """What happened to an instance, and who did it."""
        return [(each.kind, each.writer) for each in await self.engine.trace(instance)]


@pytest.fixture(name="desk")
async def fresh_desk(database_url: str) -> AsyncIterator[Desk]:
    """Three clerks and a manager, who may start what `put_letters` puts in place."""
    async with Engine(database_url, upgrade=False, name="operator") as engine:
        for role in ("clerk", "manager"):
            await engine.roles.add(None, role)
        administrator = await engine.persons.add(None, "administrator", roles=["administrator"])
        manager = await engine.persons.add(None, "manager", roles=["manager"])
        clerks = [await engine.persons.add(None, name, roles=["clerk"]) for name in CLERKS]
        yield Desk(engine, administrator.id, manager.id, [each.id for each in clerks])


HOUR = timedelta(hours=1)

"""Persons of a test: they do work items as people would, through the engine's own worklists.

manager = await person(engine, "manager", "approvers")
await manager.do("approve", approved=True)
"""

from collections.abc import Iterable
from typing import Any

from mutirao.database.charge import Creation
from mutirao.database.engine import Engine
from mutirao.database.item import Item, ItemFilter
from mutirao.database.start import HasDefinition
from mutirao.errors import RequestError
from mutirao.model import Definition
from mutirao.testing.story import StoryError, tell_all


async def make_roles(engine: Engine, flow: type[HasDefinition] | Definition) -> None:
    """The roles that a flow names: in a test they need nobody to set them up."""
    definition = flow if isinstance(flow, Definition) else flow.definition
    named = {each.offer.role for each in definition.tasks if each.offer is not None} | {definition.creator}
    await _ensure_roles(engine, [role for role in named if role is not None])


async def person(engine: Engine, name: str, *roles: str) -> "PersonInTest":
    """A person who is in these roles; made, and the roles too, where they are not there."""
    await _ensure_roles(engine, roles)
    try:
        number = await engine.persons.number(name)
    except RequestError:
        number = (await engine.persons.add(None, name)).id
    for role in roles:
        await engine.roles.put(None, role, [number])
    return PersonInTest(engine, number, name)


class PersonInTest:
    """What `person` gives."""

    def __init__(self, engine: Engine, number: int, name: str) -> None:
        self.engine = engine
        self.number = number
        self.name = name

    async def items(self, instance: int | None = None) -> list[Item]:
        """What they may do and hold, in the order in which it came."""
        return (await self.engine.worklists.page(self.number, ItemFilter(instance=instance), limit=1000)).items

    async def start(self, flow: str, **state: Any) -> int:
        """Start an instance, and be in charge of it."""
        return await self.engine.charges.create(self.number, Creation(flow=flow, state=state))

    async def do(self, task: str, instance: int | None = None, **change: Any) -> None:
        """Take the oldest item of this task and finish it with what it writes."""
        __tracebackhide__ = True
        job, attempt = await self._take(task, instance)
        await self.engine.worklists.finish(self.number, job, attempt, change)

    async def fail(self, task: str, error: str, instance: int | None = None) -> None:
        """Take the oldest item of this task and say that it cannot be done."""
        __tracebackhide__ = True
        job, attempt = await self._take(task, instance)
        await self.engine.worklists.fail(self.number, job, attempt, error)

    async def _take(self, task: str, instance: int | None) -> tuple[int, int]:
        __tracebackhide__ = True
        items = await self.items(instance)
        for item in items:
            if item.task == task:
                return item.job, item.attempt or await self.engine.worklists.select(self.number, item.job)
        has = ", ".join(item.task for item in items) or "nothing"
        raise StoryError(f'"{self.name}" is offered no {task}, but {has}', await tell_all(self.engine))


async def _ensure_roles(engine: Engine, names: Iterable[str]) -> None:
    known = {role.name for role in await engine.roles.all(None)}
    for name in names:
        if name not in known:
            await engine.roles.add(None, name)

"""Where instances meet: classes, whose jobs exclude each other, and who waits for whom. `engine.classes`."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mutirao.database.caller import Face
from mutirao.errors import FlowError, RequestError

MOST_WAITS = 1000

WaitKind = Literal["class", "ordering", "turn"]


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """A synchronisation class: how many jobs hold it, how many wait for it and since when, and which flows use it."""

    name: str
    description: str | None
    conflicts: list[str]
    holding: int
    waiting: int
    waits_since: datetime | None
    flows: list[str]


@dataclass(frozen=True, slots=True)
class Wait:
    """A job that is synchronizing, and at which place of its queue.

    It waits for a job that holds a conflicting class, for an instance that goes first by an ordering, or for its turn.
    """

    job: int
    instance: int
    flow: str
    task: str
    class_name: str | None
    since: datetime
    place: int
    kind: WaitKind
    held_by: int | None
    holder_instance: int | None
    holder_task: str | None
    ordering: str | None = None
    """The two flows, where it waits by an ordering."""


class Classes(Face):
    async def put(self, name: str, conflicts: Collection[str] = (), *, description: str | None = None) -> None:
        """Make a class, or change it: it conflicts with these from now on, with itself if it is among them.

        Without a description it keeps the one that it has.
        """
        await self._call("put_class", name, list(conflicts), description, self.name)

    async def drop(self, name: str) -> None:
        """Take it away: its jobs exclude nobody any more, and those that wait are ready."""
        try:
            await self._call("drop_class", name, self.name)
        except FlowError as error:  # it is no flow that names a class which there is not
            raise RequestError(error.code, error.message) from error

    async def all(self) -> list[ClassRecord]:
        return await self._rows(ClassRecord, "classes", [])

    async def waits(self, name: str | None = None, *, limit: int = MOST_WAITS) -> list[Wait]:
        """Who waits for whom, of a class or in all, in the order of their turns."""
        return await self._rows(Wait, "gate_waits", [name, limit])

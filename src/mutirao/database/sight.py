"""The engine as one person may see it: `engine.seen_by(person)`. What they may not see is not there for them.

Who may see what is decided in sql/functions/38_actor.sql and 52_sight.sql.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from mutirao.database.caller import Face
from mutirao.database.explanation import Why
from mutirao.database.find import InstanceFilter
from mutirao.database.meeting import ClassRecord, Wait
from mutirao.database.record import Instance, JobRecord, TaskStanding, TraceRow, TraceStep
from mutirao.database.sql import query
from mutirao.errors import RequestError
from mutirao.model import Definition

if TYPE_CHECKING:
    from mutirao.database.engine import Engine

Found = TypeVar("Found", bound=Instance)


@dataclass(frozen=True, slots=True)
class SeenInstance(Instance):
    """One run of a flow, as a person sees it.

    `may_steer` is whether they steer it; `revision` is the row of the trace that changed it last, or put another
    person in charge: by it a change can say what it has seen.
    """

    may_steer: bool = False
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenException(SeenInstance):
    """An instance that is an exception, and `since` when."""

    since: datetime


@dataclass(frozen=True, slots=True)
class SeenFlow:
    """A flow that a person may start."""

    name: str
    version: int
    description: str | None
    creator_role: str | None


class Sight(Face):
    """What one person sees."""

    def __init__(self, engine: "Engine", person: int) -> None:
        super().__init__(engine)
        self._all = engine
        self._person = person

    async def instance(self, instance: int) -> SeenInstance:
        found = await self._rows(SeenInstance, "seen_instance", {"actor": self._person, "id": instance})
        if not found:
            raise RequestError("unknown_instance", f"there is no instance {instance}")
        return (await self._seen_reasons(found))[0]

    async def among(self, instances: Iterable[int]) -> frozenset[int]:
        """Which of these they may see."""
        return frozenset(await self._call("seen_among", self._person, sorted(set(instances))))

    async def instances(
        self, flow: str | None = None, *, status: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[Instance]:
        """A page of the instances they have had to do with, newest first."""
        wanted = InstanceFilter(flow=flow, status=status)
        found, further = await self.find_instances(wanted, before=before, limit=limit)
        while further is not None and len(found) < limit:
            more, further = await self.find_instances(wanted, before=further, limit=limit - len(found))
            found += more
        return found

    async def find_instances(
        self, wanted: InstanceFilter, *, before: int | None = None, limit: int = 50
    ) -> tuple[list[Instance], int | None]:
        """The same of those that fit, among some thousand; and before which to go on, if there may be more."""
        found, further = await self._all.find_instances(wanted, actor=self._person, before=before, limit=limit)
        return await self._seen_reasons(found), further

    async def flows(self) -> list[SeenFlow]:
        """The flows they may start."""
        return await self._rows(SeenFlow, "seen_flows", {"actor": self._person})

    async def definition(self, flow: str, version: int | None = None) -> Definition:
        await self._check("check_see_flow", flow)
        return await self._all.definition(flow, version)

    async def sees_flow(self, flow: str) -> bool:
        """Whether `definition` would answer: whoever has had to do with an instance may still not start its flow."""
        try:
            await self._check("check_see_flow", flow)
        except RequestError as error:
            if error.code != "unknown_flow":
                raise
            return False
        return True

    async def trace(self, instance: int, *, after: int = 0, limit: int = 1000) -> list[TraceRow]:
        """A page of what happened, oldest first: the rows after this one."""
        await self._check("check_see", instance)
        return await self._rows(TraceRow, "trace_page", {"instance": instance, "after": after, "limit": limit})

    async def lately(self, instance: int, *, limit: int = 30) -> list[TraceRow]:
        """The last things that happened, newest first, each without the state it wrote, which may be large, and what it fired."""
        await self._check("check_see", instance)
        return await self._rows(TraceRow, "trace_lately", {"instance": instance, "limit": limit})

    async def steps(self, instance: int, *, before: int | None = None, limit: int = 50) -> list[TraceStep]:
        """What happened, newest first, each with the state before it: those before a row of the trace."""
        await self._check("check_see", instance)
        asked = {"instance": instance, "before": before, "limit": limit}
        # Of all but the oldest, the state before is that of another row, and need not be sent once more.
        found: list[TraceStep] = []
        was: dict[str, Any] | None = None
        for row in reversed(await self._rows(TraceStep, "trace_steps", asked)):
            found.append(row if was is None or row.state is None else replace(row, was=was))
            was = was if row.state is None else row.state
        return found[::-1]

    async def why(self, instance: int, task: str | None = None, *, at: int | None = None) -> list[Why]:
        await self._check("check_see", instance)
        return await self._all.why(instance, task, at=at)

    async def task_states(self, instance: int) -> list[TaskStanding]:
        await self.instance(instance)
        return await self._all.task_states(instance)

    async def jobs(self, instance: int, *, after: int = 0, limit: int = 100) -> list[JobRecord]:
        await self._check("check_see", instance)
        return await self._seen_jobs(await self._all.jobs(instance, after=after, limit=limit))

    async def job(self, job: int) -> JobRecord:
        await self._check("check_see_job", job)
        [found] = await self._seen_jobs([await self._all.job(job)])
        return found

    async def _seen_jobs(self, jobs: list[JobRecord]) -> list[JobRecord]:
        """Without the numbers of instances that do them, and are not for this person to see."""
        children = {each.child for each in jobs if each.child is not None}
        hidden = children - await self.among(children) if children else ()
        return [replace(each, child=None) if each.child in hidden else each for each in jobs]

    async def exceptions(  # noqa: PLR0913 what makes a kind
        self,
        flow: str | None = None,
        *,
        code: str | None = None,
        task: str | None = None,
        error: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[SeenException]:
        """A page of the exceptions that are theirs to steer, newest first: of those with a reason of this code, task and beginning of its error.

        Of somebody who is no administrator, the newest 10,000 open instances that they are in charge of are looked at.
        """
        kind = {"flow": flow, "code": code, "task": task, "error": error}
        asked = {"actor": self._person, **kind, "before": before, "limit": limit}
        return await self._seen_reasons(await self._rows(SeenException, "seen_exceptions", asked))

    async def exception_count(self) -> int:
        """How many these are; 1000 stands for as many or more."""
        return int(await self._call("count_exceptional", self._person))

    async def classes(self) -> list[ClassRecord]:
        """All classes; of the flows that use them, those that they may start."""
        known = {each.name for each in await self.flows()}
        found = await self._all.classes.all()
        return [replace(each, flows=[flow for flow in each.flows if flow in known]) for each in found]

    async def waits(self, name: str | None = None, *, limit: int = 1000) -> list[Wait]:
        """Who of those they may see waits; and for whom, if they may see that one, too."""
        return await self._rows(Wait, "seen_waits", [self._person, name, limit])

    async def check_unchanged(self, instance: int, seen: int) -> None:
        """Refuse when it was changed since; inside of `engine.together()`, nobody changes it until that ends."""
        await self._check("check_unchanged", instance, seen)

    async def interests(self) -> tuple[frozenset[int], frozenset[int]]:
        """The persons and the roles whose hints concern them."""
        async with self.connection() as connection:
            row = await (await connection.execute(query("interests"), [self._person])).fetchone()
        persons, roles = row or ([self._person], [])
        return frozenset(persons), frozenset(roles)

    async def _seen_reasons(self, found: list[Found]) -> list[Found]:
        """Without the numbers of those that wait with them in a circle, and are not for this person to see."""
        others = {number for each in found for reason in each.reasons or () for number in reason.get("instances") or ()}
        if not others:
            return found
        seen = await self.among(others)
        return [
            replace(each, reasons=each.reasons and [_seen_reason(reason, seen) for reason in each.reasons])
            for each in found
        ]

    async def _check(self, name: str, *values: Any) -> None:
        await self._call(name, self._person, *values)


def _seen_reason(reason: dict[str, Any], seen: Collection[int]) -> dict[str, Any]:
    """None stands for an instance that is not to be seen. The engine's line goes then, too: it names all of them."""
    numbers = reason.get("instances") or ()
    if all(each in seen for each in numbers):
        return reason
    kept = {name: value for name, value in reason.items() if name != "error"}
    return kept | {"instances": [each if each in seen else None for each in numbers]}

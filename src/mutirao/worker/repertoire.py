"""What a worker can do: the tasks that it has functions or applications for, and those whose jobs it claims by now.

Its own flows it puts in place and learns once. What others define while it works is learned again and again: tasks for
the applications of this machine, and which jobs ask another database before they begin.
"""

import logging
from collections.abc import Iterable, Sequence

from mutirao.database.engine import Engine
from mutirao.errors import FlowError
from mutirao.language.handler import Handler, handlers_of
from mutirao.language.python import Flow
from mutirao.worker.application import Applications
from mutirao.worker.asking import Asking
from mutirao.worker.desk import Place

log = logging.getLogger(__name__)


class Repertoire:
    """Tasks are known by their numbers."""

    def __init__(
        self, engine: Engine, worker: str, flows: Sequence[object], applications: Applications | None, asking: Asking
    ) -> None:
        self._engine = engine
        self._worker = worker
        self._flows = flows
        self._applications = applications
        self._asking = asking
        self.handlers: dict[int, Handler] = {}
        """One that is of no use any more stays: jobs of it may be on the desk."""
        self._own: set[int] = set()
        self.claimed: dict[Place, list[int]] = {}
        """The tasks whose jobs are asked for, by where these are done."""
        self._flow_numbers: set[str] = set()

    @property
    def tasks(self) -> list[int]:
        return [number for numbers in self.claimed.values() for number in numbers]

    def has(self, flow: str, task: str) -> bool:
        claimed = [self.handlers[number] for number in self.tasks]
        return any((each.flow, each.task) == (flow, task) for each in claimed)

    def concerns(self, payload: str) -> bool:
        """Whether a notification is about one of these flows."""
        return not self._flow_numbers.isdisjoint(payload.split(","))

    async def learn(self) -> None:
        """Put our flows in place, and find the numbers of the tasks that we have functions for."""
        handlers: dict[str, dict[str, Handler]] = {}
        for flow in self._flows:
            # Putting a flow in place takes more rights than doing its jobs.
            if isinstance(flow, type) and issubclass(flow, Flow) and not await self._engine.knows(flow):
                await self._engine.apply(flow, keep=True)
            for handler in handlers_in(flow):
                handlers.setdefault(handler.flow, {})[handler.task] = handler
        for name, tasks in handlers.items():
            numbers, flow_number = await self._engine.task_numbers(name, list(tasks))
            self._flow_numbers.add(str(flow_number))
            self.handlers |= {numbers[task]: handler for task, handler in tasks.items()}
        self._own = set(self.handlers)
        await self.learn_what_changes()
        await self._warn_of_the_undone()

    async def learn_what_changes(self) -> bool:
        """What others may define while we work. True if other tasks are claimed from now on."""
        claimed = set(self._own)
        for task, handler in [] if self._applications is None else await self._applications.handlers():
            if task.number not in self._own:
                self.handlers[task.number] = handler
                self._flow_numbers.add(str(task.flow_number))
                claimed.add(task.number)
        await self._asking.learn(claimed)
        before, self.claimed = self.claimed, self._by_place(claimed)
        return self.claimed != before

    def _by_place(self, numbers: Iterable[int]) -> dict[Place, list[int]]:
        tasks: dict[Place, list[int]] = {}
        for number in numbers:
            tasks.setdefault(Place.of(self.handlers[number]), []).append(number)
        return tasks

    async def _warn_of_the_undone(self) -> None:
        """A class has all tasks of its own version; instances that keep another one may have jobs that it lacks."""
        whole = [flow.definition.name for flow in self._flows if isinstance(flow, type) and issubclass(flow, Flow)]
        for flow, task, version, jobs in await self._engine.undone(whole, list(self.handlers)):
            log.warning(
                'jobs of task "%s" wait: %s of flow %s, version %s; this program has no such task: keep one running that has',
                *(task, jobs, flow, version),
                extra={"task": task, "flow": flow, "worker": self._worker},
            )


def handlers_in(flow: object) -> Sequence[Handler]:
    if isinstance(flow, Handler):
        return (flow,)
    if isinstance(flow, type) and issubclass(flow, Flow):
        return tuple(flow.handlers.values())
    bound = handlers_of(flow)
    if not bound:
        raise FlowError("not_a_flow", f"a worker takes flows and functions bound by @handles, not {flow!r}")
    return bound

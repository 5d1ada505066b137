"""The model of `model.py`, for a live flow whose definition changes: every instance goes by a version until it follows the newest.

It follows when somebody writes to it, or when a clock comes by; both ways must come to the same. The tasks of these flows start by
conditions that do not name ready or running: what they would see in between is the other model's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from model import (
    Both,
    Compare,
    Condition,
    Depends,
    Divide,
    Either,
    Flow,
    Instance,
    IsNull,
    Model,
    Reason,
    Refused,
    State,
    Step,
    Task,
    mentions,
)

UNCLAIMED = {"ready", "waiting", "held", "failed"}


def attributes_of(condition: Condition) -> set[str]:
    match condition:
        case Compare(attribute) | IsNull(attribute) | Divide(attribute):
            return {attribute}
        case Both(left, right) | Either(left, right):
            return attributes_of(left) | attributes_of(right)
    return set()


@dataclass(frozen=True)
class LiveFlow(Flow):
    """All its tasks, of which some are disabled."""

    disabled: frozenset[str] = frozenset()

    @property
    def enabled(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.name not in self.disabled)

    def as_enabled(self) -> Flow:
        """What can be looked at."""
        return Flow(self.attributes, self.enabled, self.final, self.quiet, self.firing_limit)

    def named_by_any(self) -> tuple[set[str], set[str]]:
        """Attributes and tasks that a condition names, also a disabled one."""
        asked = [task.rule for task in self.tasks if not isinstance(task.rule, Depends)]
        asked += [self.final] if self.final else []
        tasks = {task for each in asked for task, _ in mentions(each)}
        return {name for each in asked for name in attributes_of(each)}, tasks

    def check(self) -> None:
        attributes, tasks = self.named_by_any()
        if not attributes <= set(self.attributes) or not tasks <= {task.name for task in self.tasks}:
            raise Refused("flow_invalid")


@dataclass
class LiveInstance(Instance):
    flow: Flow = field(default_factory=lambda: Flow((), (), None, quiet=False, firing_limit=1))


class LiveModel(Model):
    def __init__(self, flow: LiveFlow) -> None:
        self.tasks_ever = {task.name for task in flow.tasks}
        self.live = flow
        super().__init__(flow.as_enabled())

    def change(self, flow: LiveFlow) -> None:
        flow.check()
        tasks_ever = self.tasks_ever | {task.name for task in flow.tasks}
        self.__init__(flow)  # type: ignore[misc] # all that was worked out about the flow is worked out anew
        self.tasks_ever = tasks_ever

    def gone(self) -> set[str]:
        return self.tasks_ever - {task.name for task in self.flow.tasks}

    def start(self, state: State) -> Instance:
        started = super().start(state)
        return LiveInstance(**vars(started), flow=self.flow)

    # ------------------------------------------------------------------------------------------------------- following

    def follow(self, i: Instance) -> None:
        assert isinstance(i, LiveInstance)
        if not i.is_open:
            return
        self._remove_gone(i)
        if i.flow is not self.flow:
            self._take_over(i)
        if i.status in ("open.running", "open.exception"):
            i.status = self._open_status(i)
        if not i.hold and self._is_telling(i):
            self._settle(i, "look")
        self._show_exception(i)
        if i.is_open and i.parked() and not i.hold:
            self._try_parked(i)

    def follow_if_behind(self, i: Instance) -> None:
        assert isinstance(i, LiveInstance)
        if i.flow is not self.flow:
            self.follow(i)

    def _remove_gone(self, i: Instance) -> None:
        removed = [name for name in i.jobs if name in self.gone() and i.jobs[name].status in UNCLAIMED]
        for name in removed:
            del i.jobs[name]
            i.latest.pop(name, None)
        i.failed = i.failed - set(removed)
        i.fired = i.fired - set(removed)
        i.reasons = [r for r in i.reasons if r.of_job not in removed]
        if i.status == "open.exception" and not i.reasons:
            i.status = "open.running"
        i.trace += [Step("removed", name, (), i.status, None) for name in removed]

    def _take_over(self, i: LiveInstance) -> None:
        once = {task.name for task in self.flow.tasks if task.once}
        i.state = self._state(i.state)
        i.latest = self._latest(i)
        i.fired = (once & (i.fired | i.pending() | i.failed)) | (i.fired & self.gone())
        told = {r.of_job for r in i.reasons if r.code == "task_failed"}
        i.reasons = [r for r in i.reasons if r.code != "task_failed" or r.of_job not in self.handled]
        i.reasons += [Reason("task_failed", task, task) for task in i.failed - self.handled - told]
        for job in i.jobs.values():
            if job.change is not None:
                job.change = {name: value for name, value in job.change.items() if name in self.flow.attributes}
        i.flow = self.flow

    def _state(self, state: State) -> State:
        kept = {name: value for name, value in state.items() if name in self.flow.attributes}
        return {**dict.fromkeys(self.flow.attributes, 1), **kept}

    def _latest(self, i: LiveInstance) -> dict[str, str]:
        latest = {}
        for name in self.named:
            if name in i.flow.named():
                found = i.latest.get(name)
            elif name in i.jobs:
                found = {"running": "running", "parked": "running", "failed": "failed"}.get(
                    i.jobs[name].status, "ready"
                )
            else:
                done = any(step.task == name and step.kind in ("finish", "skip") for step in i.trace)
                found = "succeeded" if done else None
            if found:
                latest[name] = found
        return latest

    def _is_telling(self, i: Instance) -> bool:
        """Whether anything follows from looking at it."""
        pending = i.pending()
        look = self._look(i, pending | i.failed | i.fired)
        codes = {r.code for r in i.reasons}
        at_rest = not pending and i.failed <= self.handled
        return bool(
            look.fires or look.problem or "condition_failed" in codes or (at_rest and (look.final or "nothing_fires" not in codes))
        )  # fmt: skip

    def reopen(self, i: Instance) -> None:
        """A clock comes by one that has ended."""
        assert isinstance(i, LiveInstance)
        if i.status != "closed.completed" or i.flow is self.flow:
            return
        once = {task.name for task in self.flow.tasks if task.once}
        as_open = replace(i, state=self._state(i.state), latest=self._latest(i), fired=i.fired & (once | self.gone()))
        look = self._look(as_open, as_open.fired)
        if not look.final and not look.problem:
            vars(i).update(vars(as_open), flow=self.flow, reasons=[])
            self._settle(i, "reopen")

    def catch_up(self, instances: Iterable[Instance]) -> None:
        """Clocks come by until all have followed."""
        for i in instances:
            assert isinstance(i, LiveInstance)
            ready = any(name in self.gone() and job.status == "ready" for name, job in i.jobs.items())
            if i.is_open and (ready or i.flow is not self.flow):
                self.follow(i)
            self.reopen(i)

    # --------------------------------------------------------------------------------------------------------- writing

    def turn(self, entries: list[tuple[Instance, str, State | None, bool]]) -> list[str]:
        for i, *_ in entries:
            self.follow_if_behind(i)
        there = [e for e in entries if e[1] in e[0].jobs]
        return ["lost"] * (len(entries) - len(there)) + super().turn(there)

    def _tries_again(self, i: Instance, task: str, *, final: bool) -> bool:
        retries = next((each.retries for each in self.live.tasks if each.name == task), 3)
        return i.jobs[task].failures < retries and not final and i.hold != "cancelled"

    def order(self, order: str, i: Instance, *more: Any) -> None:
        """Set, repair, cancel, suspend, resume; retry and skip, whose first argument is a task."""
        self.follow_if_behind(i)
        if not i.is_open:
            raise Refused("instance_closed")
        if order in ("retry", "skip") and more[0] not in i.jobs:
            raise Refused("unknown_job")
        getattr(self, order)(i, *more)

    def end_leases(self, instances: list[Instance]) -> None:
        """So much time passes that every wait is over and every lease and timeout has passed."""
        expired = [(i, name) for i in instances for name, job in i.jobs.items() if job.status == "running"]
        expired.sort(key=lambda e: e[0].jobs[e[1]].id)
        for i in instances:
            for job in i.jobs.values():
                if job.status == "waiting":
                    job.status = "ready"
        timed_out = [(i, name) for i, name in expired if i.hold == "cancelled"]
        self.turn([(i, name, None, False) for i, name in timed_out])
        for i, name in [e for e in expired if e not in timed_out]:
            i.jobs[name].status = "held" if i.hold else "ready"

"""A small model, in memory, of how an instance lives: algorithm 1 of WED-SQL, made exact.

It says the same as the engine's SQL in another way: one instance after another, one job after another, sets and lists
instead of statements over batches. It must not become clever. Conditions are trees that can be written as SQL and
asked in Python, with SQL's logic of three values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

EXCEPTION = "_EXCPT"

# Who writes a state, and so can be refused or parked. The others tell of something that has happened.
WRITERS = {"start", "finish", "set", "repair", "skip"}

# What only a look can tell, and the next look tells anew.
FOUND_BY_LOOKING = {"nothing_fires", "final_blocked", "runaway"}

# ---------------------------------------------------------------------------------------------------------- conditions

Truth = bool | None
State = dict[str, int | None]
Latest = dict[str, str]


@dataclass(frozen=True)
class Compare:
    attribute: str
    operator: Literal["=", "<", "<>"]
    value: int

    def sql(self) -> str:
        return f"{self.attribute} {self.operator} {self.value}"

    def holds(self, state: State, latest: Latest) -> Truth:  # noqa: ARG002 all conditions are asked alike
        have = state[self.attribute]
        if have is None:
            return None
        return {"=": have == self.value, "<": have < self.value, "<>": have != self.value}[self.operator]


@dataclass(frozen=True)
class IsNull:
    attribute: str

    def sql(self) -> str:
        return f"{self.attribute} is null"

    def holds(self, state: State, latest: Latest) -> Truth:  # noqa: ARG002 all conditions are asked alike
        return state[self.attribute] is None


@dataclass(frozen=True)
class Divide:
    """Raises where the attribute is zero."""

    attribute: str

    def sql(self) -> str:
        return f"6 / {self.attribute} > 2"

    def holds(self, state: State, latest: Latest) -> Truth:  # noqa: ARG002 all conditions are asked alike
        have = state[self.attribute]
        return None if have is None else 6 // have > 2


@dataclass(frozen=True)
class TaskIs:
    task: str
    state: str

    def sql(self) -> str:
        return f"task_{self.task} = '{self.state}'"

    def holds(self, state: State, latest: Latest) -> Truth:  # noqa: ARG002 all conditions are asked alike
        return latest.get(self.task, "not_ready") == self.state


@dataclass(frozen=True)
class Both:
    left: Condition
    right: Condition

    def sql(self) -> str:
        return f"({self.left.sql()} and {self.right.sql()})"

    def holds(self, state: State, latest: Latest) -> Truth:
        left = self.left.holds(state, latest)
        if left is False:
            return False
        right = self.right.holds(state, latest)
        return False if right is False else None if left is None or right is None else True


@dataclass(frozen=True)
class Either:
    left: Condition
    right: Condition

    def sql(self) -> str:
        return f"({self.left.sql()} or {self.right.sql()})"

    def holds(self, state: State, latest: Latest) -> Truth:
        left = self.left.holds(state, latest)
        if left is True:
            return True
        right = self.right.holds(state, latest)
        return True if right is True else None if left is None or right is None else False


Condition = Compare | IsNull | Divide | TaskIs | Both | Either


def mentions(condition: Condition) -> set[tuple[str, str]]:
    """The states of tasks that it names."""
    match condition:
        case TaskIs(task, state):
            return {(task, state)}
        case Both(left, right) | Either(left, right):
            return mentions(left) | mentions(right)
    return set()


@dataclass(frozen=True)
class Term:
    task: str
    state: str


@dataclass(frozen=True)
class Depends:
    how: Literal["all", "any"]
    terms: tuple[Term, ...]

    def document(self) -> dict[str, Any]:
        return {self.how: [{"task": term.task, "state": term.state} for term in self.terms]}

    def holds(self, reached: set[tuple[str, str]]) -> bool:
        found = [(term.task, term.state) in reached for term in self.terms]
        return all(found) if self.how == "all" else any(found)


# --------------------------------------------------------------------------------------------------------------- flows


@dataclass(frozen=True)
class Task:
    name: str
    rule: Condition | Depends
    once: bool = False
    retries: int = 1
    timeout: bool = False

    def document(self) -> dict[str, Any]:
        start = {"depends": self.rule.document()} if isinstance(self.rule, Depends) else {"when": self.rule.sql()}
        return {
            "name": self.name,
            **start,
            "fires": "once" if self.once else "each",
            "retries": self.retries,
            "timeout": 5 if self.timeout else None,
        }


@dataclass(frozen=True)
class Flow:
    attributes: tuple[str, ...]
    tasks: tuple[Task, ...]
    final: Condition | None
    quiet: bool
    firing_limit: int

    def document(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "attributes": [{"name": each, "type": "integer", "default": 1} for each in self.attributes],
            "tasks": [task.document() for task in self.tasks],
            "final": self.final.sql() if self.final else None,
            "ends": "quiet" if self.quiet else "final",
            "firing_limit": self.firing_limit,
        }

    def task(self, name: str) -> Task:
        return next(task for task in self.tasks if task.name == name)

    def _conditions(self) -> list[Condition]:
        asked = [task.rule for task in self.tasks if not isinstance(task.rule, Depends)]
        return asked + ([self.final] if self.final else [])

    def terms(self) -> set[tuple[str, str]]:
        return {(t.task, t.state) for task in self.tasks if isinstance(task.rule, Depends) for t in task.rule.terms}

    def handled(self) -> set[str]:
        """Tasks whose failure another task waits for."""
        by_rule = {task for task, state in self.terms() if state == "failed"}
        others = [task for task in self.tasks if not isinstance(task.rule, Depends)]
        return by_rule | {
            failed
            for task in others
            for failed, state in mentions(task.rule)  # type: ignore[arg-type] # no Depends is left
            if state == "failed" and failed != task.name
        }

    def named(self) -> set[str]:
        return {task for each in self._conditions() for task, _ in mentions(each)}

    def followed(self) -> set[str]:
        """Tasks whose going from ready to running and back somebody can see."""
        by_rule = {task for task, state in self.terms() if state == "running"}
        return by_rule | {
            task
            for each in self._conditions()
            if any(state in ("ready", "running") for _, state in mentions(each))
            for task, _ in mentions(each)
        }


# ----------------------------------------------------------------------------------------------------------- instances


@dataclass
class Job:
    status: str
    id: int = 0  # known from the first claim on
    failures: int = 0
    change: State | None = None


@dataclass(frozen=True)
class Reason:
    code: str
    task: str | None = None
    of_job: str | None = None  # the task whose job it is about


@dataclass(frozen=True)
class Step:
    kind: str
    task: str | None
    fired: tuple[str, ...]
    status: str
    state: tuple[tuple[str, int | None], ...] | None


@dataclass
class Instance:
    state: State
    status: str = "open.running"
    jobs: dict[str, Job] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    fired: set[str] = field(default_factory=set)
    reached: set[tuple[str, str]] = field(default_factory=set)
    latest: Latest = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    hold: str | None = None
    firings: int = 0
    trace: list[Step] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.status.startswith("open.")

    def pending(self) -> set[str]:
        return {name for name, job in self.jobs.items() if name != EXCEPTION and job.status != "failed"}

    def parked(self) -> set[str]:
        return {name for name, job in self.jobs.items() if job.status == "parked"}


class Refused(Exception):
    def __init__(self, code: str) -> None:
        self.code = code


@dataclass
class Look:
    final: bool
    fires: list[str]
    problem: str | None = None  # the task whose condition raised


class Model:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.terms = flow.terms()
        self.named = flow.named()
        self.handled = flow.handled()
        self.followed = flow.followed()
        names_ready = any(state == "ready" for _, state in self.terms)
        self.looks_at_ready = names_ready or bool(self.followed)

    # --------------------------------------------------------------------------------------------------------- looking

    def _look_once(self, i: Instance, held: set[str], reached: set[tuple[str, str]], latest: Latest) -> Look:
        try:
            if self.flow.final and self.flow.final.holds(i.state, latest):
                return Look(final=True, fires=[])
        except ZeroDivisionError:
            return Look(final=False, fires=[], problem="_FINAL")
        fires = []
        for task in self.flow.tasks:
            if task.name in held:
                continue
            try:
                rule = task.rule
                if rule.holds(reached) if isinstance(rule, Depends) else rule.holds(i.state, latest):
                    fires.append(task.name)
            except ZeroDivisionError:
                return Look(final=False, fires=[], problem=task.name)
        return Look(final=False, fires=fires)

    def _look(self, i: Instance, held: set[str]) -> Look:
        """Firing makes a task ready; where somebody waits for that, the same look goes on."""
        answer = self._look_once(i, held, i.reached, i.latest)
        while self.looks_at_ready:
            reached = i.reached | {(name, "ready") for name in answer.fires}
            latest = i.latest | dict.fromkeys(answer.fires, "ready")
            more = self._look_once(i, held | set(answer.fires), reached, latest)
            answer.fires += more.fires
            answer.problem = answer.problem or more.problem
            if not more.fires:
                break
        if i.hold and answer.problem:
            return Look(final=False, fires=[])  # nothing fires now, so no condition has a say
        return answer

    # -------------------------------------------------------------------------------------------------------- settling

    def _settle(self, i: Instance, kind: str, task: str | None = None, held: set[str] | None = None) -> str:
        """What follows from the instance as it would be. The caller undoes it where the answer is blocked or a problem."""
        pending = i.pending()
        look = self._look(i, pending | i.failed | i.fired if held is None else held)
        outcome = self._outcome(i, kind, look, pending)
        if outcome in ("problem", "blocked"):
            return f"problem {look.problem}" if outcome == "problem" else outcome
        starts = look.fires if outcome == "running" else []
        if not i.hold:
            found = {
                "stuck": Reason("nothing_fires"),
                "runaway": Reason("runaway"),
                "raised": Reason("condition_failed", look.problem),
            }.get(outcome)
            i.reasons = [r for r in i.reasons if not self._told_by_looking(r)] + ([found] if found else [])
        i.status = {"completed": "closed.completed", "aborted": "closed.aborted"}.get(outcome) or self._open_status(i)
        for name in starts:
            i.jobs[name] = Job("ready")
            i.latest[name] = "ready"
            i.reached.add((name, "ready"))
            if self.flow.task(name).once:
                i.fired.add(name)
        i.firings += len(starts)
        fired = (EXCEPTION,) if outcome in ("stuck", "runaway", "raised") else tuple(starts)
        i.trace.append(Step(kind, task, fired, i.status, tuple(sorted(i.state.items()))))
        if not i.is_open:
            i.jobs.clear()
        self._show_exception(i)
        return outcome

    def _outcome(self, i: Instance, kind: str, look: Look, pending: set[str]) -> str:  # noqa: PLR0911 a table of cases
        settled = i.failed <= self.handled
        if look.problem:
            return "problem" if kind in WRITERS else "raised"
        if i.hold == "cancelled":
            return "kept" if pending else "aborted"
        if look.final and (pending or not settled):
            return "blocked" if kind in WRITERS else "kept"
        if i.hold:
            return "kept"
        if look.final:
            return "completed"
        if not look.fires and not pending and settled:
            return "completed" if self.flow.quiet else "stuck"
        if i.firings + len(look.fires) > self.flow.firing_limit:
            return "runaway"
        return "running"

    @staticmethod
    def _told_by_looking(reason: Reason) -> bool:
        return reason.code in FOUND_BY_LOOKING or (reason.code == "condition_failed" and reason.of_job is None)

    @staticmethod
    def _open_status(i: Instance) -> str:
        if i.hold == "suspended":
            return "open.notrunning.suspended"
        return "open.exception" if i.reasons else "open.running"

    @staticmethod
    def _show_exception(i: Instance) -> None:
        if not i.reasons:
            i.jobs.pop(EXCEPTION, None)
        elif EXCEPTION not in i.jobs:
            i.jobs[EXCEPTION] = Job("held" if i.hold else "ready")

    # -------------------------------------------------------------------------------------------------------- starting

    def start(self, state: State) -> Instance:
        i = Instance({**dict.fromkeys(self.flow.attributes, 1), **state})
        look = self._look(i, set())
        if look.problem:
            raise Refused("condition_failed")
        if not look.final and not look.fires:
            raise Refused("nothing_fires")
        self._settle(i, "start")
        return i

    # --------------------------------------------------------------------------------------------------------- workers

    def claim(self, i: Instance, task: str, job: int) -> None:
        i.jobs[task].status = "running"
        i.jobs[task].id = job
        self._reach(i, task, "running")

    def _reach(self, i: Instance, task: str, state: str) -> None:
        if task in self.followed:
            i.reached.add((task, state))
            i.latest[task] = state
            self._settle(i, "reach", task)

    def release(self, i: Instance, task: str) -> None:
        if i.hold == "cancelled":
            self.turn([(i, task, None, False)])
        else:
            i.jobs[task].status = "held" if i.hold else "ready"
            self._reach(i, task, "ready")

    def turn(self, entries: list[tuple[Instance, str, State | None, bool]]) -> list[str]:
        """Jobs given back in one call: each with a change, or without one for a failure, which may be said to be final."""
        told: list[str] = []
        rest = [e for e in entries if e[1] != EXCEPTION]
        told += [answer for e in entries if e[1] == EXCEPTION and (answer := self._finish_exception(e[0], e[2]))]
        again = [e for e in rest if e[2] is None and self._tries_again(*e[:2], final=e[3])]
        for i, task, _, _ in again:
            job = i.jobs[task]
            job.failures += 1
            job.status = "held" if i.hold else "waiting"
            i.trace.append(Step("retry", task, (), i.status, None))
        for i, task, _, _ in sorted(again, key=lambda e: e[0].jobs[e[1]].id):
            self._reach(i, task, "ready")
        ended: list[Instance] = []
        for i, task, change, _ in [e for e in rest if e not in again]:
            answer = self._fail(i, task) if change is None else self._finish(i, task, change)
            told += [answer] if answer else []
            if not answer and not any(i is each for each in ended):
                ended.append(i)
        for i in ended:
            self._try_parked(i)
        return told

    def _tries_again(self, i: Instance, task: str, *, final: bool) -> bool:
        return i.jobs[task].failures < self.flow.task(task).retries and not final and i.hold != "cancelled"

    def _finish(self, i: Instance, task: str, change: State) -> str | None:
        """One job writes its change; answers why it could not."""
        before = replace(i, jobs=dict(i.jobs), reached=set(i.reached), latest=dict(i.latest), reasons=list(i.reasons))
        job = i.jobs.pop(task)
        i.state = i.state | change
        i.reached.add((task, "succeeded"))
        i.latest[task] = "succeeded"
        i.reasons = [r for r in i.reasons if r.of_job != task]
        outcome = self._settle(i, "finish", task)
        if outcome != "blocked" and not outcome.startswith("problem"):
            return None
        vars(i).update(vars(before))
        self._park(i, task, job, change, outcome)
        return "parked"

    def _park(self, i: Instance, task: str, job: Job, change: State, outcome: str) -> None:
        first_time = job.status != "parked"
        job.status, job.change = "parked", change
        if outcome.startswith("problem"):
            problem = Reason("condition_failed", outcome.removeprefix("problem "), task)
            i.reasons = [r for r in i.reasons if r.of_job != task] + [problem]
        elif i.parked() == i.pending() and Reason("final_blocked") not in i.reasons:
            i.reasons = [*i.reasons, Reason("final_blocked")]
        i.status = self._open_status(i)
        if first_time:
            i.trace.append(Step("parked", task, (), i.status, None))
        self._show_exception(i)

    def _fail(self, i: Instance, task: str) -> str | None:
        """A job fails for good, and keeps its place."""
        i.latest[task] = "failed"
        i.reached.add((task, "failed"))
        if i.hold == "cancelled":
            del i.jobs[task]
            self._settle(i, "drop", task)
            return None
        i.jobs[task].status = "failed"
        i.jobs[task].failures += 1
        i.failed.add(task)
        i.reasons = [r for r in i.reasons if r.of_job != task]
        if task not in self.handled:
            i.reasons.append(Reason("task_failed", task, task))
        self._settle(i, "fail", task)
        return None

    def _try_parked(self, i: Instance) -> None:
        tried: set[int] = set()
        while i.is_open and not i.hold:
            waiting = sorted((i.jobs[name].id, name) for name in i.parked() if i.jobs[name].id not in tried)
            if not waiting:
                break
            job, name = waiting[0]
            change = i.jobs[name].change
            assert change is not None
            if self._finish(i, name, change):
                tried.add(job)
            else:
                tried.clear()
        self._show_exception(i)

    def _finish_exception(self, i: Instance, change: State | None) -> str | None:
        job = i.jobs[EXCEPTION]
        if change is not None:
            try:
                self.repair(i, change)
            except Refused:
                return "refused"
        else:
            i.trace.append(Step("retry", EXCEPTION, (), i.status, None))
        if EXCEPTION in i.jobs:
            i.jobs[EXCEPTION] = replace(job, status="held" if i.hold else "waiting", failures=job.failures + 1)
        return None

    # ---------------------------------------------------------------------------------------------------------- people

    def _write(self, i: Instance, kind: str, task: str | None = None, held: set[str] | None = None) -> None:
        outcome = self._settle(i, kind, task, held)
        if outcome == "blocked":
            raise Refused("final_blocked")
        if outcome.startswith("problem"):
            raise Refused("condition_failed")
        if i.is_open and i.parked() and not i.hold:
            self._try_parked(i)

    def set(self, i: Instance, change: State) -> None:
        i.state = i.state | change
        self._write(i, "set")

    def repair(self, i: Instance, change: State) -> None:
        if not i.reasons:
            raise Refused("not_an_exception")
        before = replace(i, jobs=dict(i.jobs), reached=set(i.reached), latest=dict(i.latest), reasons=list(i.reasons))
        undone = i.failed - self.handled
        for task in undone:
            del i.jobs[task]
            i.latest.pop(task, None)
        i.failed = i.failed - undone
        i.fired = i.fired - undone
        i.reached = {term for term in i.reached if term[0] not in undone}
        i.reasons = [r for r in i.reasons if r.code == "condition_failed" and r.of_job]
        i.firings = 0
        i.state = i.state | change
        try:
            self._write(i, "repair", EXCEPTION)
        except Refused:
            vars(i).update(vars(before))
            raise
        self._show_exception(i)

    def cancel(self, i: Instance) -> None:
        i.jobs = {name: job for name, job in i.jobs.items() if job.status == "running" and name != EXCEPTION}
        i.failed = set()
        i.reasons = []
        i.hold = "cancelled"
        self._write(i, "cancel")

    def suspend(self, i: Instance) -> None:
        for job in i.jobs.values():
            if job.status in ("ready", "waiting"):
                job.status = "held"
        i.hold = "suspended"
        self._write(i, "suspend")

    def resume(self, i: Instance) -> None:
        if not i.hold:
            raise Refused("not_suspended")
        for job in i.jobs.values():
            if job.status == "held":
                job.status = "ready"
        i.hold = None
        self._write(i, "resume")

    def retry(self, i: Instance, task: str) -> None:
        job = i.jobs[task]
        if job.status not in ("failed", "waiting"):
            raise Refused("job_not_failed")
        if job.status == "failed":
            i.failed = i.failed - {task}
            i.reached = {term for term in i.reached if term[0] != task} | {(task, "ready")}
            i.latest[task] = "ready"
            i.reasons = [r for r in i.reasons if r.of_job != task]
        job.status = "held" if i.hold else "ready"
        job.failures = 0
        self._write(i, "retry", task)
        self._show_exception(i)

    def skip(self, i: Instance, task: str, change: State) -> None:
        job = i.jobs[task]
        if job.status == "running":
            raise Refused("job_running")
        if task == EXCEPTION:
            raise Refused("job_not_failed")
        held = i.pending() | i.failed | i.fired
        del i.jobs[task]
        i.failed = i.failed - {task}
        i.reached = {term for term in i.reached if term[0] != task} | {(task, "succeeded")}
        i.latest[task] = "succeeded"
        i.reasons = [r for r in i.reasons if r.of_job != task]
        i.state = i.state | change
        self._write(i, "skip", task, held)
        self._show_exception(i)

    # ------------------------------------------------------------------------------------------------------------ time

    def pass_time(self, instances: list[Instance]) -> None:
        """So much time that every wait is over and every lease and timeout has passed; then a clock comes by."""
        expired = [(i, name) for i in instances for name, job in i.jobs.items() if job.status == "running"]
        expired.sort(key=lambda e: e[0].jobs[e[1]].id)
        for i in instances:
            for job in i.jobs.values():
                if job.status == "waiting":
                    job.status = "ready"
        timed_out = [
            (i, name)
            for i, name in expired
            if i.hold == "cancelled" or (name != EXCEPTION and self.flow.task(name).timeout)
        ]
        self.turn([(i, name, None, False) for i, name in timed_out])
        lost = [e for e in expired if e not in timed_out]
        for i, name in lost:
            i.jobs[name].status = "held" if i.hold else "ready"
        for i, name in lost:
            self._reach(i, name, "ready")

"""A small model, in memory, of how one instance fails, is undone and goes on.

It says the same as the engine's SQL in another way: what has been reached is not kept but read from what has happened. So
whatever a rollback takes back is simply not counted any more. It must not become clever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Term = tuple[str, str]


class Refused(Exception):
    def __init__(self, code: str) -> None:
        self.code = code


class Flow:
    """The tasks of a flow as a document has them, and what they are to each other."""

    def __init__(self, tasks: dict[str, dict[str, Any]], *, quiet: bool) -> None:
        self.tasks = tasks
        self.quiet = quiet
        self.undoing = {task["compensation"] for task in tasks.values() if "compensation" in task}
        self.standing_in = {task["contingency"] for task in tasks.values() if "contingency" in task}
        self.handled = {name for name in tasks if self._is_handled(name)}

    def __repr__(self) -> str:
        return f"Flow({self.tasks}, quiet={self.quiet})"

    def principals(self, name: str) -> set[str]:
        """A task, and those in whose place it runs."""
        found = {name}
        while more := {n for n, task in self.tasks.items() if task.get("contingency") in found} - found:
            found |= more
        return found

    def _is_handled(self, name: str) -> bool:
        action = self.action(name)
        if action in ("roll_back", "safe_point"):
            return False
        waited_for = {term["task"] for task in self.tasks.values() for term in terms(task) if term["state"] == "failed"}
        return action in ("contingency", "release") or bool(self.principals(name) & waited_for)

    def action(self, name: str) -> str:
        task = self.tasks[name]
        return "contingency" if "contingency" in task else str(task.get("on_failure", "block"))

    def is_once(self, name: str) -> bool:
        return "when" not in self.tasks[name] or self.tasks[name].get("fires") == "once"


def terms(task: dict[str, Any]) -> list[dict[str, str]]:
    return [term for how in task.get("depends", {}).values() for term in how]


@dataclass
class Job:
    status: str
    cause: int
    undoes: End | None = None


@dataclass(eq=False)
class End:
    """A job that has ended well: by itself, or because a person took it as done."""

    at: int
    task: str
    cause: int
    is_skipped: bool
    is_undone: bool = False
    is_forgotten: bool = False  # what it fired is as if it had never been


@dataclass
class Instance:
    flow: Flow
    n: int = 0
    at: int = 0
    jobs: dict[str, Job] = field(default_factory=dict)
    ends: list[End] = field(default_factory=list)
    hidden: set[Term] = field(default_factory=set)  # a retry takes back what its task had reached
    critical: set[str] = field(default_factory=set)  # failed, and could not be rolled back
    hold: str | None = None
    since: int | None = None
    status: str = "open.running"
    is_stuck: bool = False

    # ------------------------------------------------------------------------------------------------------- looking

    def reached(self) -> set[Term]:
        found: set[Term] = set()
        for end in self.ends:
            if not end.is_forgotten:
                found |= {(name, "succeeded") for name in self.flow.principals(end.task)}
        for name, job in self.jobs.items():
            if job.status == "failed" and not job.undoes:
                match self.flow.action(name):
                    case "contingency":
                        found.add((name, "aborted"))
                    case "release":
                        found |= {(p, s) for p in self.flow.principals(name) for s in ("succeeded", "failed")}
                    case _:
                        found |= {(p, "failed") for p in self.flow.principals(name)}
        return found - self.hidden

    def _holds(self, name: str, reached: set[Term]) -> bool:
        task = self.flow.tasks[name]
        if name in self.flow.undoing:
            return False
        if name in self.flow.standing_in:
            return any((p, "aborted") in reached for p in self.flow.principals(name) - {name} if self._next(p) == name)
        if "depends" in task:
            [(how, of)] = task["depends"].items()
            found = [(term["task"], term["state"]) in reached for term in of]
            return all(found) if how == "all" else any(found)
        return {"true": True, "n = 1": self.n == 1, "n >= 2": self.n >= 2}[task["when"]]

    def _next(self, name: str) -> str | None:
        return self.flow.tasks[name].get("contingency")

    def _has_fired(self, name: str) -> bool:
        return self.flow.is_once(name) and any(end.task == name and not end.is_forgotten for end in self.ends)

    def _look(self, also: str | None = None, passed_over: str | None = None, *, may_close: bool = True) -> None:
        self.at += 1
        if self.hold:
            return
        reached = self.reached()
        fires = {
            name
            for name in self.flow.tasks
            if name not in self.jobs
            and name != passed_over
            and not self._has_fired(name)
            and self._holds(name, reached)
        } | ({also} if also else set())
        for name in fires:
            self.jobs[name] = Job("ready", self.at)
        failed = {name for name, job in self.jobs.items() if job.status == "failed"}
        is_over = failed == self.jobs.keys() and failed <= self.flow.handled
        self.is_stuck = is_over and not (self.flow.quiet and may_close)
        if is_over and not self.is_stuck:
            self.status = "closed.completed"
            self.jobs.clear()

    def reasons(self) -> list[str]:
        """Why a person is needed."""
        found = [
            "compensation_failed" if job.undoes else "task_failed"
            for name, job in self.jobs.items()
            if job.status == "failed" and (job.undoes or name not in self.flow.handled)
        ]
        found += ["critical_task" for name in self.critical if name in self.jobs and self.jobs[name].status == "failed"]
        return sorted(found + (["nothing_fires"] if self.is_stuck else []))

    def told(self) -> dict[str, Any]:
        status = self.status
        if status.startswith("open."):
            status = "open.exception" if self.reasons() else "open.running"
            status = "open.notrunning.suspended" if self.hold == "suspended" else status
        is_open = status.startswith("open.")
        return {
            "status": status,
            "n": self.n,
            "jobs": {name: job.status for name, job in self.jobs.items()},
            "reasons": self.reasons() if is_open else [],
        }

    # ------------------------------------------------------------------------------------------------------- workers

    def start(self) -> None:
        self._look()
        if self.is_stuck or not self.jobs:
            raise Refused("nothing_fires")

    def finish(self, name: str, change: dict[str, int]) -> None:
        job = self.jobs.pop(name)
        self.n = change.get("n", self.n)
        self._ended(name, job, is_skipped=False)

    def _ended(self, name: str, job: Job, *, is_skipped: bool) -> None:
        if job.undoes:
            job.undoes.is_undone = True
        else:
            self.ends.append(End(self.at + 1, name, job.cause, is_skipped))
            self.hidden -= {(p, "succeeded") for p in self.flow.principals(name)}
        self.critical.discard(name)
        self._look(passed_over=name if is_skipped else None)
        self._go_on()

    def fail(self, name: str) -> None:
        job = self.jobs[name]
        if self._hold_of(job) == "cancelled":
            del self.jobs[name]
            self._look()
            self._go_on()
            return
        if self.flow.tasks[name].get("force"):
            job.status = "held" if self._hold_of(job) == "suspended" else "waiting"
            self._go_on()
            return
        job.status = "failed"
        self.hidden -= {(p, state) for p in self.flow.principals(name) for state in ("failed", "aborted")}
        if self.flow.action(name) == "release":
            self.hidden -= {(p, "succeeded") for p in self.flow.principals(name)}
        self._look()
        action = self.flow.action(name)
        if action in ("roll_back", "safe_point") and not job.undoes:
            since = self._safe_point(job.cause) if action == "safe_point" else 0
            if self._is_critical(since):
                self.critical.add(name)
            else:
                self._undo(since)
        self._go_on()

    def _hold_of(self, job: Job) -> str | None:
        """In a rollback compensations go on, what is to be undone ends when it can, and the rest is interrupted."""
        if self.hold != "undoing":
            return self.hold
        assert self.since is not None
        if job.undoes:
            return None
        return "cancelled" if job.cause >= self.since else "suspended"

    def lose(self, name: str) -> None:
        """Its worker has died, and the lease has run out; or it gave the job back."""
        job = self.jobs[name]
        if self._hold_of(job) == "cancelled":
            self.fail(name)
        else:
            job.status = "held" if self._hold_of(job) == "suspended" else "ready"
            self._go_on()

    def wake(self) -> None:
        for job in self.jobs.values():
            job.status = "ready" if job.status == "waiting" else job.status

    # ------------------------------------------------------------------------------------------------------- undoing

    def _safe_point(self, before: int) -> int:
        of = [end.at for end in self.ends if end.at <= before and self.is_safe_point(end)]
        return max(of, default=0)

    def is_safe_point(self, end: End) -> bool:
        return bool(self.flow.tasks[end.task].get("safe_point")) and not end.is_forgotten and not end.is_undone

    def _is_critical(self, since: int) -> bool:
        done = {end.task for end in self.ends if end.cause >= since and not end.is_skipped}
        running = {name for name, job in self.jobs.items() if job.status == "running" and job.cause >= since}
        return any(self.flow.tasks[name].get("critical") for name in done | running)

    def _undo(self, since: int) -> None:
        self.at += 1
        self.since = since if self.since is None else min(since, self.since)
        self.hold = self.hold or "undoing"
        self.is_stuck = False

    def _go_on(self) -> None:
        """As far as a rollback or a cancel can go now."""
        running = [name for name, job in self.jobs.items() if job.status == "running" and not job.undoes]
        if self.hold == "cancelled":
            if not any(job.status == "running" for job in self.jobs.values()):
                self.status = "closed.aborted"
            return
        if self.hold != "undoing":
            return
        assert self.since is not None
        for name, job in list(self.jobs.items()):
            if not job.undoes and name not in running:
                if job.cause >= self.since:
                    del self.jobs[name]
                elif job.status in ("ready", "waiting"):
                    job.status = "held"
        if not running and not self._compensate():
            self._end_undo(self.since)

    def undoable(self) -> list[End]:
        assert self.since is not None
        return [
            end
            for end in self.ends
            if end.cause >= self.since
            and not end.is_undone
            and not end.is_skipped
            and "compensation" in self.flow.tasks[end.task]
        ]

    def _compensate(self) -> bool:
        todo = self.undoable()
        for end in sorted(todo, key=lambda e: -e.at):
            by = self.flow.tasks[end.task]["compensation"]
            if by not in self.jobs and not any(later.cause >= end.at for later in todo):
                self.jobs[by] = Job("ready", self.at, end)
        return bool(todo)

    def _end_undo(self, since: int) -> None:
        self.since = None
        if since == 0:
            self.status = "closed.terminated"
            self.jobs.clear()
            return
        self._forget(since)
        self.hold = None
        for job in self.jobs.values():
            job.status = "ready" if job.status == "held" else job.status
        self._look(may_close=False)

    def _forget(self, since: int) -> None:
        self.hidden.clear()
        for end in self.ends:
            end.is_forgotten = end.is_forgotten or end.cause >= since

    # -------------------------------------------------------------------------------------------------------- people

    def roll_back(self, to: str | None) -> None:
        self._check_open()
        since = 0
        if to is not None:
            of = [end.at for end in self.ends if end.task == to and self.is_safe_point(end)]
            if not of:
                raise Refused("unknown_safe_point")
            since = max(of)
        if self.since is not None and self.since <= since:
            raise Refused("instance_undoing")
        if self._is_critical(since):
            raise Refused("critical_task")
        self.hold = "undoing"  # also where it is interrupted
        self._undo(since)
        self._go_on()

    def cancel(self) -> None:
        self._check_open()
        self.jobs = {name: job for name, job in self.jobs.items() if job.status == "running"}
        self.hold, self.since, self.is_stuck = "cancelled", None, False
        self._look()
        self._go_on()

    def suspend(self) -> None:
        self._check_open()
        for job in self.jobs.values():
            job.status = "held" if job.status in ("ready", "waiting") else job.status
        self.hold = "suspended"
        self._look()

    def resume(self) -> None:
        self._check_open()
        if self.hold != "suspended":
            raise Refused("not_suspended")
        self.hold = None if self.since is None else "undoing"
        for job in self.jobs.values():
            job.status = "ready" if job.status == "held" else job.status
        self._look()
        self._go_on()

    def retry(self, name: str) -> None:
        self._check_open()
        job = self.jobs[name]
        self._check_not_undoing(job)
        job.status = "held" if self._hold_of(job) else "ready"
        self.critical.discard(name)
        self.hidden |= {(p, state) for p in self.flow.principals(name) for state in ("succeeded", "failed")}
        self._look()
        job.cause = self.at
        self._go_on()

    def skip(self, name: str, change: dict[str, int]) -> None:
        self._check_open()
        self._check_not_undoing(self.jobs[name])
        self.n = change.get("n", self.n)
        self._ended(name, self.jobs.pop(name), is_skipped=True)

    def set(self, change: dict[str, int]) -> None:
        self._check_open()
        if self.since is not None:
            raise Refused("instance_undoing")
        self.n = change.get("n", self.n)
        self._look()

    def start_task(self, name: str) -> None:
        self._check_at_work(name)
        if name in self.jobs:
            raise Refused("job_pending")
        self._look(also=name)

    def go_back(self, name: str) -> None:
        self._check_at_work(name)
        if name in self.jobs and self.jobs[name].status != "failed":
            raise Refused("job_pending")
        of = [end.at for end in self.ends if end.task == name and not end.is_forgotten]
        if not of:
            raise Refused("task_not_done")
        since = max(of)
        gone = {other: job for other, job in self.jobs.items() if job.cause >= since or other == name}
        if any(job.status == "running" for job in gone.values()):
            raise Refused("job_running")
        for other in gone:
            del self.jobs[other]
        self._forget(since)
        for end in self.ends:
            end.is_forgotten = end.is_forgotten or end.task == name
        self._look(also=name)

    def _check_open(self) -> None:
        if self.status.startswith("closed."):
            raise Refused("instance_closed")
        if self.hold == "cancelled":
            raise Refused("instance_cancelled")

    def _check_not_undoing(self, job: Job) -> None:
        if self.since is not None and not job.undoes:
            raise Refused("instance_undoing")

    def _check_at_work(self, name: str) -> None:
        self._check_open()
        if name in self.flow.undoing:
            raise Refused("unknown_task")
        if self.hold == "suspended":
            raise Refused("instance_suspended")
        if self.hold:
            raise Refused("instance_undoing")

"""What the engine tells about flows, instances, jobs and the trace: plain records, as they are in the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from mutirao.model import TaskState


@dataclass(frozen=True, slots=True)
class FlowHead:
    """A flow and its newest version, whatever is going on in it."""

    name: str
    live: bool
    version: int
    description: str | None
    made_at: datetime
    made_by: str
    tasks: int


@dataclass(frozen=True, slots=True)
class FlowRecord(FlowHead):
    """A flow and what is going on in it; where instances are too many to be counted at once, these are estimates."""

    open: int
    exceptions: int
    closed: int
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class InstanceCounts:
    """How many instances of a flow are open, of these exceptions, and closed; and how many have each status.

    Few are counted; of very many it is an estimate, and `is_exact` is false.
    """

    flow: str
    open: int
    exceptions: int
    closed: int
    statuses: dict[str, int]
    is_exact: bool


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """One version of a flow; `open` counts its open instances."""

    number: int
    made_at: datetime
    made_by: str
    newest: bool
    open: int


@dataclass(frozen=True, slots=True)
class Instance:
    """One run of a flow. `reasons` says why it is an exception, each with a `code`; `due_at` when it starts, if later.

    `parent` is the instance that it does a job for, `children` are those that do jobs of it. `hold` is "cancelled" while
    what runs of a cancelled one may still finish, "undoing" while it is rolled back, "suspended" or "delayed" while it rests. `in_charge` is the person who
    steers it, if there is one.
    """

    id: int
    flow: str
    version: int
    status: str
    state: dict[str, Any]
    reasons: list[dict[str, Any]] | None
    started_at: datetime
    closed_at: datetime | None
    priority: int
    key: str | None = None
    due_at: datetime | None = None
    parent: int | None = None
    children: Sequence[int] = ()
    hold: str | None = None
    in_charge: str | None = None

    @property
    def is_open(self) -> bool:
        return self.status.startswith("open")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened outside: what it changes of the instance with that key. Of one `id` only one is written."""

    key: str
    change: Mapping[str, Any]
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of an event.

    The `outcome` is `done`, `repeated` (one of its id was written before), `not_now` (its only_if does not hold, and
    `saw` has the values) or `refused`, for the reason that `code` and `message` tell. Only what is done has changed
    anything.
    """

    key: str
    event: str | None
    instance: int | None
    outcome: str
    code: str | None
    message: str | None
    saw: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ScheduleRecord:
    """A schedule as it stands. `problem` says why its last time started nothing."""

    name: str
    flow: str
    cron: str
    zone: str
    state: dict[str, Any]
    priority: int
    missed: str
    overlap: str
    time_to: str | None
    paused: bool
    next_at: datetime | None
    last_at: datetime | None
    last_instance: int | None
    runs: int
    problem: dict[str, Any] | None
    made_by: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One thing that happened. `state` is None where nothing was written; `cause` is the row whose state the job was given."""

    id: int
    kind: str
    task: str | None
    job: int | None
    attempt: int | None
    cause: int | None
    status: str
    state: dict[str, Any] | None
    writer: str
    note: dict[str, Any] | None
    at: datetime
    fired: list[str]


@dataclass(frozen=True, slots=True)
class TraceStep(TraceRow):
    """The same beside the state before it: what it changed is the difference."""

    was: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class TaskStanding:
    """How a task of an instance stands: its job if it has one, since when, and how often a job of it has ended."""

    task: str
    state: TaskState | Literal["not_ready"]
    job: int | None
    since: datetime | None
    times: int


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job that has not ended.

    Of a work item, `role` is whom it is for, `holder` who has it, `finish_by` its deadline; `child` is the instance that
    does the job; `change` is what a parked one writes when it can. In a list one of more than 2,000 bytes is left out
    (`is_change_left_out`): the job alone has it. `undoes` is the row of the trace that a compensation undoes.
    """

    id: int
    instance: int
    flow: str
    task: str
    status: str
    priority: int
    worker: str | None
    attempt: int | None
    failures: int
    lease_until: datetime | None
    due_at: datetime | None
    error: dict[str, Any] | Any
    """Why it failed: an object whose `error` says it; of the job that stands for an exception, a list of reasons. None: it has not."""
    since: datetime
    """When it was created, or became ready after it had waited."""
    created_at: datetime
    role: str | None = None
    holder: str | None = None
    finish_by: datetime | None = None
    child: int | None = None
    change: dict[str, Any] | None = None
    is_change_left_out: bool = False
    undoes: int | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many jobs of a task there are, and for how many seconds the oldest ready one has waited."""

    flow: str
    task: str
    ready: int
    running: int
    waiting: int
    stuck: int
    oldest: float | None


@dataclass(frozen=True, slots=True)
class LimitRecord:
    """The limits of a task that are in force, how many of its jobs run and are ready, and whether they were set by hand."""

    flow: str
    task: str
    at_once: int | None
    per_second: float | None
    per: str | None
    each: int | None
    running: int
    ready: int
    by_hand: bool


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker that announced itself. One that is silent is taken for dead; `stopped_at` is when it said that it stops."""

    name: str
    host: str | None
    program: str | None
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    alive: bool
    tasks: list[str]
    """As `flow.task`."""
    running: int


@dataclass(frozen=True, slots=True)
class Load:
    """One number about what there is to do: `kind` is jobs, exceptions, instances or overdue.

    `seconds` is the age of the oldest job that is ready, or how late the oldest overdue thing is.
    """

    kind: str
    flow: str
    task: str
    status: str
    count: float
    seconds: float | None


@dataclass(frozen=True, slots=True)
class RetentionRecord:
    """How long finished instances are kept: then they are dropped, or (`export`) as soon as they are exported."""

    flow: str
    status: str
    period: timedelta
    action: str
    set_by: str
    set_at: datetime


@dataclass(frozen=True, slots=True)
class Holder:
    """What holds a value beside instances: a schedule or a batch, and its name."""

    what: str
    name: str


@dataclass(frozen=True, slots=True)
class ErasureRecord:
    """That something of an instance was erased, never what: attributes blanked, or the instance dropped."""

    instance: int
    flow: str
    how: str
    attributes: list[str]
    reason: str | None
    writer: str
    at: datetime

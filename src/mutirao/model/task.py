"""A task: a step of a flow, with what lets it start and how its jobs are run."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, cast

from mutirao.model.dependency import Dependency
from mutirao.model.offer import Offer
from mutirao.model.recovery import Recovery

DEFAULT_BACKOFF = timedelta(milliseconds=100)
MAX_BACKOFF = timedelta(minutes=5)
BACKOFF_FACTOR = 10

MAX_RATE = 1_000_000

# Each time its condition holds with no job of it pending, or once in the life of an instance.
Fires = Literal["each", "once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many jobs of a task the whole engine does, whichever workers do them. None: as many as there are.

    So many run `at_once`, so many begin `per_second`, and so many run at once for `each` value of the attribute `per`.
    """

    at_once: int | None = None
    per_second: float | None = None
    per: str | None = None
    each: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """It starts by `when`, a SQL predicate over the state, or by `depends`, a tree over other tasks' states.

    A job that fails is tried again `retries` times: first after `backoff`, then each time after ten times as long as
    before, but never more than five minutes. A `timeout` counts from each claim. A `transactional` task does its work
    in the job's own transaction. Its jobs are not done before the time in the attribute named by `wait`; one that is
    `by_clock` has nobody who does it, and ends when that time has come.

    Who does a job: a worker that has the task's function; a worker that may run its `application`; people, if it has an
    `offer`; or an instance of the flow `child`, which starts with the `inputs` and gives back the `outputs`. None there
    means the whole state.

    A task with neither `when` nor `depends` stands by: another one names it in its `recovery`. With `time_to_wait` it
    starts so long after the first of those it depends on has started, though they have not ended. Jobs whose classes
    conflict exclude each other.
    """

    name: str
    when: str | None = None
    depends: Dependency | None = None
    fires: Fires = field(default=cast("Fires", None))  # never stays None: see __post_init__
    timeout: timedelta | None = None
    retries: int = 3
    backoff: timedelta = DEFAULT_BACKOFF
    priority: int = 0
    transactional: bool = False
    enabled: bool = True
    description: str | None = None
    wait: str | None = None
    by_clock: bool = False
    limit: Limit | None = None
    offer: Offer | None = None
    application: str | None = None
    child: str | None = None
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    model: str | None = None  # the task model that it was made from
    task_class: str | None = None
    time_to_wait: timedelta | None = None
    recovery: Recovery = field(default_factory=Recovery)

    def __post_init__(self) -> None:
        if self.fires is None:
            object.__setattr__(self, "fires", "each" if self.when is not None and not self.by_clock else "once")

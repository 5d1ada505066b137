"""What becomes of a task that fails, and of one that is to be undone."""

from dataclasses import dataclass
from typing import Literal

# block: what depends on it. release: whoever waits for it. roll_back: the instance, or back to its last safe-point.
OnFailure = Literal["block", "release", "roll_back", "safe_point"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What happens when a job has failed for good, and how one that has ended is undone.

    The `contingency` takes the task's place when it has failed: whoever waits for the task waits for it. A task that is
    `force`d is tried until it succeeds. The `compensation` undoes the task; one that is `critical` cannot be undone, so
    nothing is rolled back across it. A partial rollback stops at a `safe_point`.
    """

    on_failure: OnFailure = "block"
    force: bool = False
    contingency: str | None = None
    compensation: str | None = None
    critical: bool = False
    safe_point: bool = False

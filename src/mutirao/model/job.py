"""A job as its worker sees it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """Given to a task's function that asks for it.

    `attempt` grows with every claim in this database: send it along to an outside system, and that system can turn
    away whoever was thought dead and comes back with a smaller one. `retries_used` counts failed tries of this job.
    """

    id: int
    instance_id: int
    flow: str
    task: str
    attempt: int
    retries_used: int = 0

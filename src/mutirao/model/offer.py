"""How the jobs of a task are offered to people: to which role, to whom of it first, and by when they should be done."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

# Everyone in the role; the one with the fewest items; each in turn; who did a named earlier task; everyone but that one.
PolicyKind = Literal["everyone", "least_loaded", "round_robin", "same_as", "not_as"]

# A person with a program, a group of persons, a person alone.
WorkKind = Literal["semi_automatic", "cooperative", "manual"]


@dataclass(frozen=True, slots=True)
class Policy:
    """Who in the role is offered an item; `task` is the earlier task that `same_as` and `not_as` speak of."""

    kind: PolicyKind = "everyone"
    task: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A job of the task is a work item for the persons of `role`, who have until `deadline` after it became ready.

    It may be taken away from the engine and done there if it is `disconnected`. `users` are the group of a
    cooperative task.
    """

    role: str
    kind: WorkKind = "manual"
    policy: Policy = field(default_factory=Policy)
    deadline: timedelta | None = None
    disconnected: bool = False
    users: tuple[str, ...] = ()

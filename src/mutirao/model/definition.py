"""A definition: what a flow is, whatever language it was written in. One that exists is valid."""

from dataclasses import dataclass
from typing import Literal

from mutirao.model.attribute import Attribute
from mutirao.model.task import Task
from mutirao.model.validation import check_flow, normal_attributes

DEFAULT_FIRING_LIMIT = 10_000

# When the final condition holds, or also when nothing is ready, running or about to fire.
Ends = Literal["final", "quiet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A flow that ends by `final` may have no final condition: it then comes to rest in an exception.

    More than `firing_limit` firings of one instance are a runaway. Of people, only those in the role `creator` start
    instances of it.
    """

    name: str
    attributes: tuple[Attribute, ...] = ()
    tasks: tuple[Task, ...] = ()
    final: str | None = None
    ends: Ends = "final"
    firing_limit: int = DEFAULT_FIRING_LIMIT
    description: str | None = None
    creator: str | None = None

    def __post_init__(self) -> None:
        # What was given as a list or a float is kept as the tuple or the Decimal that a document gives back.
        object.__setattr__(self, "tasks", tuple(self.tasks))
        object.__setattr__(self, "attributes", tuple(self.attributes))
        check_flow(self)
        object.__setattr__(self, "attributes", normal_attributes(self.name, self.attributes))

"""Tasks of a flow's class that no function does: those for people, those of an application, and those that another flow does.

class Purchase(Flow):
    approve = work("manager", when="approved is null", outputs=("approved",), deadline=timedelta(hours=48))
    pay = work("clerk", depends=approve, policy=not_as(approve))
    label = application("Label", depends=pay, inputs=("address",), outputs=("label",), retries=1)
    ship = child("shipping", depends=label, inputs=("address",), outputs=("shipped_at",))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, Unpack, cast

from mutirao.language.place import place_of_caller, placing
from mutirao.language.task import (
    Meant,
    Named,
    RecoveryOptions,
    TaskMethod,
    TaskOptions,
    check_options,
    has_start,
    without_start,
)
from mutirao.model import Change, Offer, Policy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from mutirao.model import Definition, Fires, PolicyKind, WorkKind

Work: TypeAlias = TaskMethod[Any, ..., Change]


@dataclass(frozen=True, slots=True)
class Picked:
    """A policy that speaks of another task, which has no name before its class is made."""

    kind: PolicyKind
    task: Named

    def policy(self) -> Policy:
        return Policy(self.kind, self.task if isinstance(self.task, str) else self.task.name)


def same_as(task: Named) -> Picked:
    """Only whoever did that task in this instance is offered the item."""
    return Picked("same_as", task)


def not_as(task: Named) -> Picked:
    """Everyone is offered the item, but not whoever did that task in this instance."""
    return Picked("not_as", task)


class StartOptions(RecoveryOptions, total=False):
    """When a task starts, and which data it has."""

    when: str
    depends: Meant
    fires: Fires
    priority: int
    enabled: bool
    description: str | None
    inputs: Sequence[str]
    outputs: Sequence[str]


class WorkOptions(StartOptions, total=False):
    """How items are offered; see `mutirao.model.Offer`."""

    wait: str
    kind: WorkKind
    policy: PolicyKind | Picked | Policy
    deadline: timedelta | None
    disconnected: bool
    users: Sequence[str]
    application: str


class ApplicationOptions(StartOptions, total=False):
    """How its jobs are run; see `mutirao.model.Task`."""

    wait: str
    timeout: timedelta | None
    retries: int
    backoff: timedelta


class HasDefinition(Protocol):
    definition: ClassVar[Definition]


_OF_THE_OFFER = ("kind", "deadline", "disconnected")


def work(role: str, **options: Unpack[WorkOptions]) -> Work:
    """A task for the persons of a role. It writes its `outputs`, or any attribute where there are none named.

    approve = work("manager", when="approved is null", outputs=("approved",), policy="least_loaded")
    """
    with placing(place_of_caller()):
        return TaskMethod(None, work_options(f"work({role!r})", role, options))


def child(flow: str | type[HasDefinition], **options: Unpack[StartOptions]) -> Work:
    """A task that an instance of another flow does: it starts with the `inputs`, and gives back the `outputs`.

    ship = child("shipping", depends=pay, inputs=("address",), outputs=("shipped_at",))
    """
    name = flow if isinstance(flow, str) else flow.definition.name
    with placing(place_of_caller()):
        return TaskMethod(None, child_options(f"child({name!r})", name, options))


def application(name: str, **options: Unpack[ApplicationOptions]) -> Work:
    """A task that an executable does, by its name in the library: it is given the `inputs`, and writes the `outputs`.

    label = application("Label", depends=pay, inputs=("address",), outputs=("label",), timeout=timedelta(minutes=5))
    """
    with placing(place_of_caller()):
        return TaskMethod(None, application_options(f"application({name!r})", name, options))


def work_options(place: str, role: str, options: WorkOptions) -> TaskOptions:
    check_options(place, options, WorkOptions)
    _check_start(place, options)
    given: dict[str, Any] = dict(options)
    of_offer = {name: given.pop(name) for name in _OF_THE_OFFER if name in given}
    policy, users = given.pop("policy", "everyone"), given.pop("users", ())

    def offer() -> Offer:
        return Offer(role=role, policy=_policy(policy), users=tuple(users), **of_offer)

    return cast("TaskOptions", {**given, "offer": offer})


def child_options(place: str, flow: str, options: StartOptions) -> TaskOptions:
    check_options(place, options, StartOptions)
    _check_start(place, options)
    return cast("TaskOptions", {**options, "child": flow})


def application_options(place: str, name: str, options: ApplicationOptions) -> TaskOptions:
    check_options(place, options, ApplicationOptions)
    _check_start(place, options)
    return cast("TaskOptions", {**options, "application": name})


def _policy(given: PolicyKind | Picked | Policy) -> Policy:
    if isinstance(given, Picked):
        return given.policy()
    return given if isinstance(given, Policy) else Policy(given)


def _check_start(place: str, options: StartOptions) -> None:
    if not has_start(options):
        raise without_start(place, "add when=… or depends=…, or stands_by=True if another task names it")

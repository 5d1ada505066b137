"""What makes the part of a task wrong that says who does it: people, an application, a child, and with which data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from mutirao.errors import FlowError
from mutirao.model.check import (
    check_choice,
    check_span,
    check_text,
    check_type,
    check_unique,
    named,
)
from mutirao.model.name import check_name, quote, suggest
from mutirao.model.offer import Offer, Policy, PolicyKind, WorkKind

if TYPE_CHECKING:
    from mutirao.model.attribute import Attribute
    from mutirao.model.task import Task

MAX_LABEL = 100


def check_work(place: str, task: Task, names: set[str], attributes: tuple[Attribute, ...]) -> None:
    for field in ("inputs", "outputs"):
        if (chosen := getattr(task, field)) is not None:
            check_unique(f"{place}, {field}", "attribute", list(chosen))
            for name in chosen:
                named(place, field, name, attributes)
    for field in ("application", "model", "task_class"):
        check_label(place, field, getattr(task, field))
    if task.child is not None:
        check_name(f"{place}, child {quote(task.child)}", task.child)
    if task.offer is not None:
        check_type(place, "offer", task.offer, Offer)
        _check_offer(place, task.offer, names)
        check_manual(place, task.offer.kind, task.application)
    _check_one_doer(place, task)


def check_label(place: str, field: str, label: Any) -> None:
    """A name that people give to a role, a database or a program: any one line."""
    if label is None:
        return
    check_text(place, field, label)
    if not label.strip() or label != label.strip() or len(label) > MAX_LABEL or not label.isprintable():
        right = f"one line of 1 to {MAX_LABEL} characters, without spaces around it"
        raise FlowError("flow_invalid", f"{place}: {field} {quote(label)} is no name: it is {right}")


def check_manual(place: str, kind: str, application: str | None) -> None:
    if kind == "manual" and application is not None:
        text = f"a manual task is done without an application, and this one has {quote(application)}"
        raise FlowError("flow_invalid", f"{place}: {text}; make it semi_automatic")


def _check_offer(place: str, offer: Offer, tasks: set[str]) -> None:
    check_label(place, "role", offer.role)
    if offer.role is None:
        raise FlowError("flow_invalid", f"{place}: an offer needs the role of those who do the task")
    check_choice(place, "kind", offer.kind, get_args(WorkKind))
    check_type(place, "disconnected", offer.disconnected, bool)
    check_span(place, "deadline", offer.deadline)
    check_users(place, offer.users)
    check_policy(place, offer.policy)
    if (task := offer.policy.task) is not None and task not in tasks:
        raise FlowError(
            "unknown_task", f"{place}: its policy names the unknown task {quote(task)}{suggest(task, tasks)}"
        )


def check_users(place: str, users: tuple[str, ...]) -> None:
    for user in users:
        check_label(place, "user", user)
    check_unique(place, "user", list(users))


def check_policy(place: str, policy: Policy) -> None:
    check_type(place, "policy", policy, Policy)
    check_choice(place, "policy", policy.kind, get_args(PolicyKind))
    if (policy.task is not None) != (policy.kind in ("same_as", "not_as")):
        raise FlowError("flow_invalid", f"{place}: the policies same_as and not_as name a task, and only these")


def _check_one_doer(place: str, task: Task) -> None:
    """People may be helped by an application; beyond that, one thing does a task."""
    doers = {
        "an offer to people": task.offer is not None,
        "a child flow": task.child is not None,
        "an application": task.application is not None and task.offer is None,
        "a clock": task.by_clock,
        "a transaction": task.transactional,
    }
    given = [doer for doer, is_given in doers.items() if is_given]
    if len(given) > 1:
        raise FlowError("flow_invalid", f"{place}: one thing does a task, and this one has {' and '.join(given)}")
    if task.child is not None and task.wait is not None:
        raise FlowError(
            "flow_invalid", f"{place}: it runs a child flow and waits for a time; let a task before it wait"
        )

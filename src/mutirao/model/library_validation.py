"""What makes a task model, an application or an ordering wrong, each in one line: the place, and what would be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from mutirao.errors import FlowError
from mutirao.model.check import (
    check_choice,
    check_integer,
    check_priority,
    check_span,
    check_text,
    check_type,
)
from mutirao.model.name import check_name, quote
from mutirao.model.offer import WorkKind
from mutirao.model.work_validation import check_label, check_manual, check_policy, check_users

if TYPE_CHECKING:
    from mutirao.model.library import Application, Ordering, TaskModel

_KINDS = ("automatic", *get_args(WorkKind))


def check_task_model(model: TaskModel) -> None:
    place = f"task model {quote(model.name)}"
    _check_named(place, model.name)
    check_choice(place, "kind", model.kind, _KINDS)
    for field in ("role", "application", "task_class"):
        check_label(place, field, getattr(model, field))
    check_text(place, "description", model.description)
    check_priority(place, model.priority)
    check_integer(place, "retries", model.retries, least=0)
    check_type(place, "disconnected", model.disconnected, bool)
    check_span(place, "deadline", model.deadline)
    check_span(place, "timeout", model.timeout)
    check_users(place, model.users)
    check_policy(place, model.policy)
    check_manual(place, model.kind, model.application)


def check_application(application: Application) -> None:
    place = f"application {quote(application.name)}"
    _check_named(place, application.name)
    if not application.filename:
        raise FlowError("flow_invalid", f"{place}: it needs the filename of its executable")
    for field in ("filename", "os", "cpu", "installer"):
        check_text(place, field, getattr(application, field))
    check_integer(place, "size", application.size, least=0)
    for host in application.hosts:
        check_label(place, "host", host)


def check_ordering(ordering: Ordering) -> None:
    place = f"ordering {quote(ordering.first)}: {quote(ordering.second)}"
    on = () if ordering.on is None else (ordering.on,)
    for name in (ordering.first, ordering.second, *(task for pair in ordering.pairs for task in pair), *on):
        check_name(f"{place}, {quote(name)}", name)
    if not ordering.pairs:
        raise FlowError("flow_invalid", f"{place}: it has no pair of tasks")
    for index, pair in enumerate(ordering.pairs):
        if pair in ordering.pairs[:index]:
            raise FlowError("duplicate_name", f"{place}: the pair {pair[0]}: {pair[1]} is there twice")


def _check_named(place: str, name: str) -> None:
    check_label(place, "name", name)
    if name is None:
        raise FlowError("flow_invalid", f"{place}: it needs a name")

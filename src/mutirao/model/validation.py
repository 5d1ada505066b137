"""What makes a definition wrong, each in one line: the place, and what would be right.

Conditions are not looked into: PostgreSQL is their only judge.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from mutirao.errors import FlowError
from mutirao.model.accept import MisfitError
from mutirao.model.attribute import ATTRIBUTE_TYPES, Attribute, Query
from mutirao.model.check import (
    check_choice,
    check_condition,
    check_duration,
    check_integer,
    check_priority,
    check_span,
    check_text,
    check_type,
    check_unique,
    named,
)
from mutirao.model.dependency import TASK_STATES, AllOf, AnyOf, Dependency, Term, walk
from mutirao.model.name import check_attribute_name, check_flow_name, check_name, quote, suggest
from mutirao.model.query import read_expression
from mutirao.model.recovery_validation import check_contingencies, check_recovery, standing_by
from mutirao.model.task import MAX_BACKOFF, MAX_RATE, Fires, Limit, Task
from mutirao.model.value import misfit, normal
from mutirao.model.work_validation import check_label, check_work

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mutirao.model.definition import Definition

MAX_DEPTH = 100


def check_flow(flow: Definition) -> None:
    check_flow_name(flow.name)
    place = f'flow "{flow.name}"'
    check_condition(place, "final", flow.final)
    check_choice(place, "ends", flow.ends, ("final", "quiet"))
    check_integer(place, "firing_limit", flow.firing_limit, least=1)
    check_text(place, "description", flow.description)
    check_label(place, "creator", flow.creator)
    check_unique(place, "task", [task.name for task in flow.tasks])
    tasks = {task.name: task for task in flow.tasks}
    names = set(tasks)
    standing = standing_by(tasks)
    check_contingencies(place, tasks)
    for task in flow.tasks:
        task_place = f'{place}, task "{task.name}"'
        _check_task(task_place, task, names, stands_by=task.name in standing)
        check_recovery(task_place, task, tasks, standing)
        _check_wait(task_place, task, flow.attributes)
        if task.limit is not None:
            _check_limit(task_place, task.limit, flow.attributes)
        check_work(task_place, task, names, flow.attributes)


def normal_attributes(flow: str, attributes: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """Checks them, and brings each default into the form in which the database gives it back."""
    attributes = tuple(attributes)
    names = [each.name for each in attributes]
    check_unique(f'flow "{flow}"', "attribute", names)
    for each in attributes:
        _check_source(f'flow "{flow}", attribute "{each.name}"', each, names)
    return tuple(_normal(f'flow "{flow}", attribute "{each.name}"', each) for each in attributes)


def _normal(place: str, attribute: Attribute) -> Attribute:
    check_attribute_name(place, attribute.name)
    check_choice(place, "type", attribute.type, ATTRIBUTE_TYPES)
    check_type(place, "searchable", attribute.searchable, bool)
    check_type(place, "required", attribute.required, bool)
    try:
        return replace(attribute, default=normal(attribute.type, attribute.default))
    except MisfitError as reason:
        text = misfit(attribute.type, attribute.default, reason)
        raise FlowError("wrong_type", f"{place}: its default {text}") from None


def _check_source(place: str, attribute: Attribute, names: Collection[str]) -> None:
    if attribute.query is not None:
        check_type(place, "query", attribute.query, Query)
        check_label(place, "database", attribute.query.database)
        check_condition(place, "query", attribute.query.expression)
        read_expression(place, attribute.query.expression, names)
        if attribute.type != "json":
            raise FlowError(
                "flow_invalid", f"{place}: its query gives rows, so it is of type json, not {attribute.type}"
            )
    if attribute.type == "file" and (attribute.searchable or attribute.default is not None):
        raise FlowError("flow_invalid", f"{place}: a file has no default and is not searchable")
    if attribute.filename is not None:
        check_text(place, "filename", attribute.filename)
        if attribute.type != "file":
            raise FlowError("flow_invalid", f"{place}: only a file has a filename, and it is of type {attribute.type}")


def _check_task(place: str, task: Task, tasks: Collection[str], *, stands_by: bool) -> None:
    check_name(place, task.name)
    if not (stands_by and task.when is None and task.depends is None):
        _check_start(place, task, tasks)
    check_choice(place, "fires", task.fires, get_args(Fires))
    check_span(place, "timeout", task.timeout)
    check_duration(place, "backoff", task.backoff, most=MAX_BACKOFF)
    check_integer(place, "retries", task.retries, least=0)
    check_priority(place, task.priority)
    check_type(place, "transactional", task.transactional, bool)
    check_type(place, "enabled", task.enabled, bool)
    check_text(place, "description", task.description)


def _check_wait(place: str, task: Task, attributes: Iterable[Attribute]) -> None:
    check_type(place, "by_clock", task.by_clock, bool)
    if task.wait is None:
        if task.by_clock:
            raise FlowError("flow_invalid", f"{place}: by_clock needs wait, the attribute with the time to wait for")
        return
    waited = named(place, "wait", task.wait, attributes)
    if waited.type not in ("timestamp", "date"):
        right = "a wait needs a timestamp or a date"
        raise FlowError(
            "flow_invalid", f"{place}: waits for {quote(waited.name)}, which is of type {waited.type}; {right}"
        )


def _check_limit(place: str, limit: Limit, attributes: Iterable[Attribute]) -> None:
    check_type(place, "limit", limit, Limit)
    for field in ("at_once", "each"):
        if (most := getattr(limit, field)) is not None:
            check_integer(place, f"limit {field}", most, least=1)
    rate = limit.per_second
    if rate is not None and not (isinstance(rate, int | float) and 0 < rate <= MAX_RATE):
        raise FlowError(
            "flow_invalid", f"{place}: limit per_second is more than 0 and at most {MAX_RATE}: got {rate!r}"
        )
    if (limit.per is None) != (limit.each is None):
        raise FlowError("flow_invalid", f"{place}: a limit has per, an attribute, and each, a number, together")
    if limit.per is not None:
        named(place, "limit", limit.per, attributes)
    if limit == Limit():
        raise FlowError("flow_invalid", f"{place}: a limit without a number; give at_once, per_second, or per and each")


def _check_start(place: str, task: Task, tasks: Collection[str]) -> None:
    if (task.when is None) == (task.depends is None):
        given = "neither, and no task names it as its contingency or compensation" if task.when is None else "both"
        raise FlowError("flow_invalid", f"{place}: a task has either when or depends: got {given}")
    if task.depends is None:
        check_condition(place, "when", task.when)
        return
    check_type(place, "depends", task.depends, Dependency)
    for node, depth in walk(task.depends):
        if depth > MAX_DEPTH:
            raise FlowError("flow_invalid", f"{place}: depends is nested more than {MAX_DEPTH} deep")
        _check_node(place, node, tasks)


def _check_node(place: str, node: Dependency, tasks: Collection[str]) -> None:
    match node:
        case Term(task=task) if task not in tasks:
            raise FlowError("unknown_task", f"{place}: depends on the unknown task {quote(task)}{suggest(task, tasks)}")
        case Term(state=state) if state not in TASK_STATES:
            known = suggest(state, TASK_STATES)
            raise FlowError("flow_invalid", f"{place}: depends on the unknown state {quote(state)}{known}")
        case AllOf(parts=()) | AnyOf(parts=()):
            raise FlowError("flow_invalid", f"{place}: depends has a group without a term")

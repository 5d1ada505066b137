"""What makes a definition wrong, each in one line: the place, and what would be right.

Conditions are not looked into: PostgreSQL is their only judge.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

from mutirao.errors import FlowError
from mutirao.model.accept import MisfitError
from mutirao.model.attribute import ATTRIBUTE_TYPES, Attribute
from mutirao.model.dependency import TASK_STATES, AllOf, AnyOf, Dependency, Term, walk
from mutirao.model.name import check_attribute_name, check_flow_name, check_name, quote, suggest
from mutirao.model.task import MAX_BACKOFF, MAX_RATE, Fires, Limit, Task
from mutirao.model.value import misfit, normal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mutirao.model.definition import Definition

MAX_DEPTH = 100
MAX_TIMEOUT = timedelta(days=36_500)  # up to here, seconds in a JSON number are exact to the microsecond
_MAX_INT = 2**31 - 1
_NO_TIME = timedelta(0)


def check_flow(flow: Definition) -> None:
    check_flow_name(flow.name)
    place = f'flow "{flow.name}"'
    _check_condition(place, "final", flow.final)
    _check_choice(place, "ends", flow.ends, ("final", "quiet"))
    _check_integer(place, "firing_limit", flow.firing_limit, least=1)
    _check_text(place, "description", flow.description)
    _check_unique(place, "task", [task.name for task in flow.tasks])
    names = {task.name for task in flow.tasks}
    for task in flow.tasks:
        task_place = f'{place}, task "{task.name}"'
        _check_task(task_place, task, names)
        _check_wait(task_place, task, flow.attributes)
        if task.limit is not None:
            _check_limit(task_place, task.limit, flow.attributes)


def normal_attributes(flow: str, attributes: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """Checks them, and brings each default into the form in which the database gives it back."""
    attributes = tuple(attributes)
    _check_unique(f'flow "{flow}"', "attribute", [each.name for each in attributes])
    return tuple(_normal(f'flow "{flow}", attribute "{each.name}"', each) for each in attributes)


def _normal(place: str, attribute: Attribute) -> Attribute:
    check_attribute_name(place, attribute.name)
    _check_choice(place, "type", attribute.type, ATTRIBUTE_TYPES)
    _check_type(place, "searchable", attribute.searchable, bool)
    _check_type(place, "required", attribute.required, bool)
    try:
        return replace(attribute, default=normal(attribute.type, attribute.default))
    except MisfitError as reason:
        text = misfit(attribute.type, attribute.default, reason)
        raise FlowError("wrong_type", f"{place}: its default {text}") from None


def _check_task(place: str, task: Task, tasks: Collection[str]) -> None:
    check_name(place, task.name)
    _check_start(place, task, tasks)
    _check_choice(place, "fires", task.fires, get_args(Fires))
    _check_duration(place, "timeout", task.timeout or MAX_TIMEOUT, most=MAX_TIMEOUT)
    if task.timeout is not None and task.timeout <= _NO_TIME:
        raise FlowError("flow_invalid", f"{place}: timeout is more than zero, or None for no limit")
    _check_duration(place, "backoff", task.backoff, most=MAX_BACKOFF)
    _check_integer(place, "retries", task.retries, least=0)
    _check_integer(place, "priority", task.priority, least=-_MAX_INT)
    _check_type(place, "transactional", task.transactional, bool)
    _check_type(place, "enabled", task.enabled, bool)
    _check_text(place, "description", task.description)


def _check_wait(place: str, task: Task, attributes: Iterable[Attribute]) -> None:
    _check_type(place, "by_clock", task.by_clock, bool)
    if task.wait is None:
        if task.by_clock:
            raise FlowError("flow_invalid", f"{place}: by_clock needs wait, the attribute with the time to wait for")
        return
    waited = _named(place, "wait", task.wait, attributes)
    if waited.type not in ("timestamp", "date"):
        right = "a wait needs a timestamp or a date"
        raise FlowError(
            "flow_invalid", f"{place}: waits for {quote(waited.name)}, which is of type {waited.type}; {right}"
        )


def _check_limit(place: str, limit: Limit, attributes: Iterable[Attribute]) -> None:
    _check_type(place, "limit", limit, Limit)
    for field in ("at_once", "each"):
        if (most := getattr(limit, field)) is not None:
            _check_integer(place, f"limit {field}", most, least=1)
    rate = limit.per_second
    if rate is not None and not (isinstance(rate, int | float) and 0 < rate <= MAX_RATE):
        raise FlowError(
            "flow_invalid", f"{place}: limit per_second is more than 0 and at most {MAX_RATE}: got {rate!r}"
        )
    if (limit.per is None) != (limit.each is None):
        raise FlowError("flow_invalid", f"{place}: a limit has per, an attribute, and each, a number, together")
    if limit.per is not None:
        _named(place, "limit", limit.per, attributes)
    if limit == Limit():
        raise FlowError("flow_invalid", f"{place}: a limit without a number; give at_once, per_second, or per and each")


def _named(place: str, field: str, name: Any, attributes: Iterable[Attribute]) -> Attribute:
    known = {each.name: each for each in attributes}
    if name not in known:
        text = f"{place}: {field} names the unknown attribute {quote(name)}{suggest(name, known)}"
        raise FlowError("unknown_attribute", text)
    return known[name]


def _check_start(place: str, task: Task, tasks: Collection[str]) -> None:
    if (task.when is None) == (task.depends is None):
        given = "neither" if task.when is None else "both"
        raise FlowError("flow_invalid", f"{place}: a task has either when or depends: got {given}")
    if task.depends is None:
        _check_condition(place, "when", task.when)
        return
    _check_type(place, "depends", task.depends, Dependency)
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


def _check_unique(place: str, kind: str, names: list[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise FlowError("duplicate_name", f"{place}: {kind} {quote(name)} is defined twice; give one another name")


def _check_condition(place: str, field: str, text: Any) -> None:
    _check_text(place, field, text)
    if text is not None and not text.strip():
        raise FlowError("flow_invalid", f"{place}: {field} is empty; write a SQL condition, such as \"stage = 'new'\"")


def _check_text(place: str, field: str, value: Any) -> None:
    if value is not None:
        _check_type(place, field, value, str)
        if "\0" in value:
            raise FlowError("flow_invalid", f"{place}: {field} has a character U+0000, which PostgreSQL cannot keep")


def _check_choice(place: str, field: str, value: Any, choices: Collection[str]) -> None:
    if value not in choices:
        raise FlowError("flow_invalid", f"{place}: unknown {field} {quote(value)}{suggest(value, choices)}")


def _check_integer(place: str, field: str, value: Any, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MAX_INT:
        raise FlowError("flow_invalid", f"{place}: {field} is an integer from {least} to {_MAX_INT}: got {value!r}")


def _check_duration(place: str, field: str, value: Any, *, most: timedelta) -> None:
    if not isinstance(value, timedelta):
        raise FlowError("flow_invalid", f"{place}: {field} is a timedelta, such as timedelta(seconds=5): got {value!r}")
    if not _NO_TIME <= value <= most:
        raise FlowError("flow_invalid", f"{place}: {field} is from {_NO_TIME} to {most}: got {value}")


def _check_type(place: str, field: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise FlowError(
            "flow_invalid", f"{place}: {field} is a {kind.__name__}: got {value!r} ({type(value).__name__})"
        )

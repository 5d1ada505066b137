"""A definition as a JSON document, and back without loss. This is what `mutirao.apply_flow` takes.

The classes below are the document's shape. Reading goes through JSON text even from a dict, so that an exact number
has one way in.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any, TypeAlias

import msgspec

from mutirao.errors import FlowError
from mutirao.model.accept import MisfitError
from mutirao.model.attribute import Attribute, AttributeType, Query
from mutirao.model.definition import DEFAULT_FIRING_LIMIT, Definition, Ends
from mutirao.model.dependency import AllOf, AnyOf, Dependency, Term
from mutirao.model.offer import Offer, Policy, PolicyKind, WorkKind
from mutirao.model.recovery import OnFailure, Recovery
from mutirao.model.task import DEFAULT_BACKOFF, Fires, Limit, Task
from mutirao.model.validation import MAX_DEPTH
from mutirao.model.value import ENCODER, decode_value, misfit, to_json

Document: TypeAlias = dict[str, Any]


class _Query(msgspec.Struct, forbid_unknown_fields=True):
    database: str
    expression: str


class _Attribute(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    type: AttributeType
    default: msgspec.Raw = msgspec.Raw(b"null")
    searchable: bool = False
    required: bool = False
    query: _Query | None = None
    filename: str | None = None


class PolicyDocument(msgspec.Struct, forbid_unknown_fields=True):
    kind: PolicyKind = "everyone"
    task: str | None = None


class _Offer(msgspec.Struct, forbid_unknown_fields=True):
    role: str
    kind: WorkKind = "manual"
    policy: PolicyDocument = msgspec.field(default_factory=PolicyDocument)
    deadline: float | None = None
    disconnected: bool = False
    users: tuple[str, ...] = ()


class _Limit(msgspec.Struct, forbid_unknown_fields=True):
    at_once: int | None = None
    per_second: float | None = None
    per: str | None = None
    each: int | None = None


class _Task(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    when: str | None = None
    depends: dict[str, Any] | None = None
    fires: Fires | None = None
    timeout: float | None = None
    retries: int = 3
    backoff: float = DEFAULT_BACKOFF.total_seconds()
    priority: int = 0
    transactional: bool = False
    enabled: bool = True
    description: str | None = None
    wait: str | None = None
    by_clock: bool = False
    limit: _Limit | None = None
    offer: _Offer | None = None
    application: str | None = None
    child: str | None = None
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    model: str | None = None
    task_class: str | None = None
    time_to_wait: float | None = None
    on_failure: OnFailure = "block"
    force: bool = False
    contingency: str | None = None
    compensation: str | None = None
    critical: bool = False
    safe_point: bool = False


class _Flow(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    description: str | None = None
    ends: Ends = "final"
    final: str | None = None
    firing_limit: int = DEFAULT_FIRING_LIMIT
    creator: str | None = None
    attributes: list[_Attribute] = []
    tasks: list[_Task] = []


_NO_RECOVERY = Recovery()
_decoder = msgspec.json.Decoder(_Flow)


def to_document(definition: Definition) -> Document:
    return {
        "name": definition.name,
        "description": definition.description,
        "ends": definition.ends,
        "final": definition.final,
        "firing_limit": definition.firing_limit,
        **only_said(definition, "creator"),
        "attributes": [_attribute_document(each) for each in definition.attributes],
        "tasks": [_task_document(each) for each in definition.tasks],
    }


def encode_document(definition: Definition) -> bytes:
    return ENCODER.encode(to_document(definition))


def from_document(document: Mapping[str, Any]) -> Definition:
    try:
        return decode_document(ENCODER.encode(document))
    except (TypeError, UnicodeEncodeError) as error:
        raise FlowError("flow_invalid", f"a flow's document is made of JSON values: {error}") from error


def decode_document(document: bytes | str) -> Definition:
    try:
        flow = _decoder.decode(document)
        attributes = tuple(_attribute(flow.name, each) for each in flow.attributes)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FlowError("flow_invalid", f"this is not the document of a flow: {error}") from error
    return Definition(
        name=flow.name,
        attributes=attributes,
        tasks=tuple(_task(each) for each in flow.tasks),
        final=flow.final,
        ends=flow.ends,
        firing_limit=flow.firing_limit,
        description=flow.description,
        creator=flow.creator,
    )


def _attribute_document(attribute: Attribute) -> Document:
    return {
        "name": attribute.name,
        "type": attribute.type,
        "default": to_json(attribute.type, attribute.default),
        "searchable": attribute.searchable,
        "required": attribute.required,
        **only_said(attribute, "filename"),
        **({} if attribute.query is None else {"query": asdict(attribute.query)}),
    }


def _attribute(flow: str, given: _Attribute) -> Attribute:
    try:
        default = decode_value(given.type, given.default)
    except MisfitError as reason:
        text = misfit(given.type, msgspec.json.decode(given.default), reason)
        raise FlowError("wrong_type", f'flow "{flow}", attribute "{given.name}": its default {text}') from None
    query = None if given.query is None else Query(given.query.database, given.query.expression)
    return Attribute(given.name, given.type, default, given.searchable, given.required, query, given.filename)


def _task_document(task: Task) -> Document:
    return {
        "name": task.name,
        "when": task.when,
        "depends": None if task.depends is None else _dependency_document(task.depends),
        "fires": task.fires,
        "timeout": None if task.timeout is None else seconds(task.timeout),
        "retries": task.retries,
        "backoff": seconds(task.backoff),
        "priority": task.priority,
        "transactional": task.transactional,
        "enabled": task.enabled,
        "description": task.description,
        **_time_and_limit(task),
        **only_said(task, "application", "child", "inputs", "outputs", "model", "task_class"),
        **({} if task.offer is None else {"offer": _offer_document(task.offer)}),
        **({} if task.time_to_wait is None else {"time_to_wait": seconds(task.time_to_wait)}),
        **{name: value for name, value in asdict(task.recovery).items() if value != getattr(_NO_RECOVERY, name)},
    }


def only_said(said_by: object, *fields: str) -> Document:
    """Only what is said: a definition without these has the document, and so the fingerprint, that it always had."""
    return {name: value for name in fields if (value := getattr(said_by, name)) is not None}


def _offer_document(offer: Offer) -> Document:
    return {
        "role": offer.role,
        "kind": offer.kind,
        "policy": only_said(offer.policy, "kind", "task"),
        "deadline": None if offer.deadline is None else seconds(offer.deadline),
        "disconnected": offer.disconnected,
        "users": offer.users,
    }


def _time_and_limit(task: Task) -> Document:
    said: Document = {}
    if task.wait is not None:
        said |= {"wait": task.wait, "by_clock": task.by_clock}
    if task.limit is not None:
        said["limit"] = {name: value for name, value in asdict(task.limit).items() if value is not None}
    return said


def _task(given: _Task) -> Task:
    fields = msgspec.structs.asdict(given)
    if given.depends is not None:
        fields["depends"] = _dependency(f'task "{given.name}"', given.depends, MAX_DEPTH)
    fields["timeout"] = None if given.timeout is None else duration(given.timeout)
    fields["backoff"] = duration(given.backoff)
    fields["limit"] = None if given.limit is None else Limit(**msgspec.structs.asdict(given.limit))
    fields["offer"] = None if given.offer is None else _offer(given.offer)
    fields["time_to_wait"] = None if given.time_to_wait is None else duration(given.time_to_wait)
    fields["recovery"] = Recovery(**{name: fields.pop(name) for name in asdict(_NO_RECOVERY)})
    return Task(**fields)


def _offer(given: _Offer) -> Offer:
    return Offer(
        role=given.role,
        kind=given.kind,
        policy=Policy(given.policy.kind, given.policy.task),
        deadline=None if given.deadline is None else duration(given.deadline),
        disconnected=given.disconnected,
        users=given.users,
    )


def _dependency_document(node: Dependency) -> Document:
    match node:
        case AllOf(parts):
            return {"all": [_dependency_document(part) for part in parts]}
        case AnyOf(parts):
            return {"any": [_dependency_document(part) for part in parts]}
        case Term(task, state):
            return {"task": task, "state": state}
    raise TypeError(node)


def _dependency(place: str, given: Any, depth: int) -> Dependency:
    match given:
        case _ if depth == 0:
            raise FlowError("flow_invalid", f"{place}: depends is nested more than {MAX_DEPTH} deep")
        case {"all": [*parts], **rest} if not rest:
            return AllOf(tuple(_dependency(place, part, depth - 1) for part in parts))
        case {"any": [*parts], **rest} if not rest:
            return AnyOf(tuple(_dependency(place, part, depth - 1) for part in parts))
        case {"task": str(task), "state": str(state), **rest} if not rest:
            return Term(task, state)
    right = '{"all": […]}, {"any": […]} or {"task": …, "state": …}'
    raise FlowError("flow_invalid", f"{place}: depends is made of {right}")


def seconds(span: timedelta) -> int | float:
    seconds = span.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def duration(length: float) -> timedelta:
    try:
        return timedelta(seconds=length)
    except (OverflowError, ValueError):
        return timedelta.max  # too long for any rule: the definition's own check says what is allowed

"""Task models, applications and orderings as JSON documents, and back without loss: what the library's SQL functions take."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from mutirao.errors import FlowError
from mutirao.model.document import Document, PolicyDocument, duration, only_said, seconds
from mutirao.model.library import Application, Ordering, TaskKind, TaskModel
from mutirao.model.offer import Policy

_Shape = TypeVar("_Shape")


class _TaskModel(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    kind: TaskKind = "automatic"
    role: str | None = None
    description: str | None = None
    application: str | None = None
    priority: int = 0
    deadline: float | None = None
    disconnected: bool = False
    retries: int = 3
    timeout: float | None = None
    users: tuple[str, ...] = ()
    policy: PolicyDocument = msgspec.field(default_factory=PolicyDocument)
    task_class: str | None = None


class _Application(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    filename: str
    size: int = 0
    os: str | None = None
    cpu: str | None = None
    installer: str | None = None
    hosts: tuple[str, ...] = ()


class _Ordering(msgspec.Struct, forbid_unknown_fields=True):
    first: str
    second: str
    pairs: tuple[tuple[str, str], ...]


def library_document(entry: TaskModel | Application | Ordering) -> Document:
    match entry:
        case TaskModel():
            return _task_model_document(entry)
        case Application():
            return only_said(entry, *(field for field in _Application.__struct_fields__ if field != "hosts")) | {
                "hosts": list(entry.hosts)
            }
        case Ordering(first, second, pairs):
            return {"first": first, "second": second, "pairs": [list(pair) for pair in pairs]}


def task_model(document: Mapping[str, Any]) -> TaskModel:
    given = msgspec.structs.asdict(_read(document, _TaskModel))
    for field in ("deadline", "timeout"):
        given[field] = None if given[field] is None else duration(given[field])
    policy = given["policy"]
    return TaskModel(**given | {"policy": Policy(policy.kind, policy.task)})


def application(document: Mapping[str, Any]) -> Application:
    return Application(**msgspec.structs.asdict(_read(document, _Application)))


def ordering(document: Mapping[str, Any]) -> Ordering:
    return Ordering(**msgspec.structs.asdict(_read(document, _Ordering)))


def _task_model_document(model: TaskModel) -> Document:
    said = only_said(model, "role", "description", "application", "task_class")
    for field in ("deadline", "timeout"):
        if (span := getattr(model, field)) is not None:
            said[field] = seconds(span)
    return {
        "name": model.name,
        "kind": model.kind,
        "priority": model.priority,
        "disconnected": model.disconnected,
        "retries": model.retries,
        "users": list(model.users),
        "policy": only_said(model.policy, "kind", "task"),
        **said,
    }


def _read(document: Mapping[str, Any], shape: type[_Shape]) -> _Shape:
    try:
        return msgspec.convert(document, shape, strict=False)
    except msgspec.ValidationError as error:
        raise FlowError("flow_invalid", f"this is not the document of an entry of the library: {error}") from error

"""Task models, applications and orderings as JSON documents, and back without loss: what the library's SQL functions take."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from mutirao.errors import FlowError
from mutirao.model.document import Document, only_said, seconds
from mutirao.model.library import Application, Ordering, TaskModel
from mutirao.model.offer import Policy

_Entry = TypeVar("_Entry", TaskModel, Application, Ordering)


def library_document(entry: TaskModel | Application | Ordering) -> Document:
    """What is None is left out."""
    return {name: _written(value) for name, value in _values(entry) if value is not None}


def task_model(document: Mapping[str, Any]) -> TaskModel:
    return _read(document, TaskModel)


def application(document: Mapping[str, Any]) -> Application:
    return _read(document, Application)


def ordering(document: Mapping[str, Any]) -> Ordering:
    return _read(document, Ordering)


def _values(entry: TaskModel | Application | Ordering) -> list[tuple[str, Any]]:
    return [(each.name, getattr(entry, each.name)) for each in fields(entry)]


def _written(value: Any) -> Any:
    match value:
        case timedelta():
            return seconds(value)
        case Policy():
            return only_said(value, "kind", "task")
        case tuple():
            return [_written(each) for each in value]
    return value


def _read(document: Mapping[str, Any], kind: type[_Entry]) -> _Entry:
    """Spans of time are numbers of seconds. A field too many would be passed over without a word."""
    wrong = "this is not the document of an entry of the library"
    if unknown := document.keys() - {each.name for each in fields(kind)}:
        raise FlowError("flow_invalid", f"{wrong}: it cannot have {', '.join(sorted(unknown))}")
    try:
        return msgspec.convert(document, kind, strict=False)
    except msgspec.ValidationError as error:
        raise FlowError("flow_invalid", f"{wrong}: {error}") from error

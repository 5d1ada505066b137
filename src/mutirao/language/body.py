"""The body of a flow's class, read: attributes from annotations, tasks from `@task`, settings from plain names.

A class is read when it is made, once, with the names that are known at its place; what it inherits was read before.
"""

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from mutirao.errors import FlowError
from mutirao.language.annotation import is_class_variable, read_annotation, resolve
from mutirao.language.task import TaskMethod, make_task
from mutirao.model import Attribute, Definition
from mutirao.model.name import suggest

SETTINGS = ("name", "final", "ends", "firing_limit", "creator")
# With an annotation they are attributes like any other.
_ALSO_ATTRIBUTES = ("name", "creator")

_OWN_FIELDS = "__mutirao_fields__"
_ATTRIBUTE_NAME = re.compile("[a-z][a-z0-9_]*")
_VALUES = (str, int, Decimal, date, dict, list)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Body:
    fields: dict[str, Attribute]
    methods: dict[str, TaskMethod[Any, ..., Any]]


def read_body(cls: type, names: Mapping[str, Any], reserved: frozenset[str]) -> Body:
    """`names` are those known at the class statement, `reserved` those that the base class needs for itself."""
    fields = _inherited_fields(cls)
    annotations = _own_annotations(cls, names)
    own = {name: _read_field(cls, name, annotation) for name, annotation in annotations.items()}
    _check_plain_values(cls, fields)
    setattr(cls, _OWN_FIELDS, own)
    fields |= own
    methods = _read_methods(cls)
    _check_names(fields, methods, reserved)
    return Body(fields, methods)


def make_definition(cls: type, body: Body) -> Definition:
    settings = {name: getattr(cls, name) for name in ("final", "firing_limit") if hasattr(cls, name)}
    if "creator" not in body.fields and hasattr(cls, "creator"):
        settings["creator"] = cls.creator
    doc = cls.__dict__.get("__doc__")
    # Without a final condition and without a word about it, a flow is over when it has nothing more to do.
    settings["ends"] = getattr(cls, "ends", "final" if "final" in settings else "quiet")
    return Definition(
        name=_flow_name(cls, body.fields),
        attributes=tuple(body.fields.values()),
        tasks=tuple(make_task(name, each.options, _description(each)) for name, each in body.methods.items()),
        description=inspect.cleandoc(doc) if doc else None,
        **settings,
    )


def _own_annotations(cls: type, names: Mapping[str, Any]) -> dict[str, Any]:
    known = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    found = {}
    for name, annotation in inspect.get_annotations(cls).items():
        try:
            resolved = resolve(annotation, known, names)
        except (NameError, AttributeError, TypeError, SyntaxError) as error:
            why = f"its annotation cannot be read: {error}; what it names is needed when the program runs"
            raise FlowError("flow_invalid", f'attribute "{name}": {why}') from error
        if not is_class_variable(resolved):
            found[name] = resolved
    return found


def _inherited_fields(cls: type) -> dict[str, Attribute]:
    fields: dict[str, Attribute] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= base.__dict__.get(_OWN_FIELDS, {})
    return fields


def _read_field(cls: type, name: str, annotation: Any) -> Attribute:
    place = f'attribute "{name}"'
    if name in SETTINGS and name not in _ALSO_ATTRIBUTES:
        raise FlowError("attribute_reserved", f"{place}: {name} is a setting of the flow; write it without annotation")
    default = cls.__dict__.get(name, _MISSING)
    if isinstance(default, TaskMethod):
        raise FlowError("duplicate_name", f"{place} is a task as well; give one another name")
    reading = read_annotation(place, annotation)
    if default is None and not reading.optional:
        raise FlowError("wrong_type", f"{place}: its default is None; annotate it with | None")
    default = None if default is _MISSING else default
    required = not reading.optional
    return Attribute(name, reading.type, default, reading.searchable, required=required, query=reading.query)


def _check_plain_values(cls: type, inherited: Mapping[str, Attribute]) -> None:
    """A plain value in the body is a setting, or a slip: without annotation it would be silently left out."""
    annotated = inspect.get_annotations(cls)
    for name, value in vars(cls).items():
        if name in annotated or name in SETTINGS or isinstance(value, TaskMethod):
            continue
        if name in inherited or (isinstance(value, _VALUES) and _ATTRIBUTE_NAME.fullmatch(name)):
            right = f'annotate it: "{name}: {type(value).__name__} = …", or with ClassVar if it is none'
            advice = suggest(name, (*SETTINGS, *annotated))
            raise FlowError("flow_invalid", f'"{name}" is neither an attribute nor a setting; {right}{advice}')


def _read_methods(cls: type) -> dict[str, TaskMethod[Any, ..., Any]]:
    methods: dict[str, TaskMethod[Any, ..., Any]] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, TaskMethod):
                _check_method_name(name, value)
                methods[name] = value
            elif name in methods and value is None:  # as Python drops an inherited __hash__
                del methods[name]
            elif name in methods:
                raise FlowError("flow_invalid", f'task "{name}" is overridden without @task; add it, or set it to None')
    return methods


def _check_method_name(name: str, method: TaskMethod[Any, ..., Any]) -> None:
    if name != method.name:
        raise FlowError("flow_invalid", f'task "{name}" has a function of another name, "{method.name}"')


def _check_names(fields: Mapping[str, Attribute], methods: Mapping[str, Any], reserved: frozenset[str]) -> None:
    for name in (*fields, *methods):
        if name in reserved:
            kind = "attribute" if name in fields else "task"
            raise FlowError(
                "attribute_reserved", f'{kind} "{name}": every flow has a {name} of its own; choose another'
            )
    for name in fields:
        if name in methods:
            raise FlowError("duplicate_name", f'attribute "{name}" is a task as well; give one another name')


def _flow_name(cls: type, fields: Mapping[str, Attribute]) -> str:
    # Not inherited: two flows would have one name.
    given = None if "name" in fields else cls.__dict__.get("name")
    return given if given is not None else _WORD_START.sub("_", cls.__name__).lower()


def _description(method: TaskMethod[Any, ..., Any]) -> str | None:
    return inspect.cleandoc(method.__doc__) if method.__doc__ else None

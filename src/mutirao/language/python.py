"""Flows as Python classes: attributes are annotations, tasks are methods, and a state is an object of the class.

    class Travel(Flow):
        stage: str = "requested"
        hotel: str | None = None
        final = "stage = 'booked'"

        @task(when="stage = 'requested' and hotel is null")
        async def book_hotel(self) -> Change:
            return {"hotel": await hotels.book(self.stage)}

`body` reads the class, `task` has the decorator, `annotation` and `signature` say what may be written where. Flows
made by programs, without a class statement, are made by `builder`.
"""

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType, MappingProxyType
from typing import Any, ClassVar, NoReturn, Self, dataclass_transform

from mutirao.errors import FlowError, RequestError
from mutirao.language.body import make_definition, read_body
from mutirao.language.handler import Handler
from mutirao.language.place import place_of_frame, placed
from mutirao.language.signature import read_signature
from mutirao.model import Change, Definition, StateCodec, Task


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Flow:
    """The base of every flow. `class Audited(Flow, abstract=True)` is no flow itself, only what flows share.

    Without annotation the class may set `final`, a SQL condition; `ends`, "final" or "quiet"; `firing_limit`;
    `creator`, the role of those who may start it; and `name`, which otherwise is the name of the class in snake_case.
    Its docstring describes the flow.
    """

    definition: ClassVar[Definition]
    handlers: ClassVar[Mapping[str, Handler]]
    _codec: ClassVar[StateCodec]
    _needed: ClassVar[tuple[str, ...]]
    _mutable: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls, *, abstract: bool = False, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        frame = _class_statement()
        try:
            body = read_body(cls, frame.f_locals, RESERVED)
            if abstract:
                return
            definition = make_definition(cls, body)
        except FlowError as error:
            raise placed(error, place_of_frame(frame)) from error.__cause__
        functions = {name: each.function for name, each in body.methods.items() if each.function is not None}
        finish(cls, definition, functions, frame.f_locals)

    def __init__(self, /, **values: Any) -> None:
        cls = type(self)
        if "definition" not in cls.__dict__:
            raise TypeError(f"{cls.__name__} is not a flow, only what flows are made of")
        for name in cls._needed:
            if values.get(name) is None:
                text = f'attribute "{name}" of flow "{cls.definition.name}" has no default: give it a value'
                raise RequestError("missing_attribute", text)
        self.__dict__.update(cls.load_state(cls._codec.encode(values)).__dict__)

    @classmethod
    def load_state(cls, state: bytes | str) -> Self:
        """The state of an instance, from its JSON. What is missing there has its default here."""
        self = cls.__new__(cls)
        values = cls._codec.decode(state)
        for name, default in cls._mutable.items():
            if name not in values:
                values[name] = copy.deepcopy(default)
        # The object takes the decoder's dict as its own: nothing is copied. Defaults are found in the class.
        object.__setattr__(self, "__dict__", values)
        return self

    @classmethod
    def encode_change(cls, change: Change) -> bytes:
        """What a task returned, checked, as the JSON that is merged into the instance's state."""
        return cls._codec.encode(change)

    def encode_state(self) -> bytes:
        """The values that this object was given, as JSON."""
        return self._codec.encode(self.__dict__)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f'a state is read-only: return the change, such as {{"{name}": …}}')

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a state is read-only")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _values(self) == _values(other)

    __hash__ = None  # type: ignore[assignment] # as with any object that holds lists and dicts

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in _values(self).items())
        return f"{type(self).__name__}({values})"


RESERVED = frozenset(name for name in (*vars(Flow), *Flow.__annotations__) if not name.startswith("_"))


def finish(
    cls: type[Flow],
    definition: Definition,
    functions: Mapping[str, Callable[..., Any]],
    names: Mapping[str, Any],
) -> None:
    """Make a flow of a class: what its definition is, which functions do its tasks, how its states are read."""
    attributes = definition.attributes
    cls.definition = definition
    cls._codec = StateCodec(definition.name, attributes)
    cls._needed = tuple(each.name for each in attributes if each.required and each.default is None)
    cls._mutable = {each.name: each.default for each in attributes if isinstance(each.default, dict | list)}
    for each in attributes:
        setattr(cls, each.name, each.default)
    cls.handlers = MappingProxyType(
        {
            task.name: _handler(cls, task, functions[task.name], names)
            for task in definition.tasks
            if task.name in functions
        }
    )


def _handler(cls: type[Flow], task: Task, function: Callable[..., Any], names: Mapping[str, Any]) -> Handler:
    signature = read_signature(task.name, function, transactional=task.transactional, names=names)
    encode = cls.encode_change if task.outputs is None else partial(_encode_outputs, cls, task.name, task.outputs)
    return Handler(cls.definition.name, task.name, function, signature, cls.load_state, encode, task.transactional)


def _encode_outputs(cls: type[Flow], task: str, outputs: tuple[str, ...], change: Change) -> bytes:
    encoded = cls.encode_change(change)
    for name in change:
        if name not in outputs:
            said = ", ".join(outputs) or "nothing"
            raise RequestError("wrong_output", f'task "{task}" does not write "{name}": its outputs are {said}')
    return encoded


def _values(state: Flow) -> dict[str, Any]:
    return {each.name: getattr(state, each.name) for each in state.definition.attributes}


def _class_statement() -> FrameType:
    """The frame that makes the class: the first one outside of `__init_subclass__`, ours and any that calls it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name in ("_class_statement", "__init_subclass__"):
        frame = frame.f_back
    if frame is None:
        raise RuntimeError("a class is always made by someone")
    return frame

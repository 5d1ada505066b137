"""For programs that make flows. What is built is a flow like one from a class statement.

Travel = (
    FlowBuilder("travel")
    .attribute("stage", "text", default="requested")
    .task("book_hotel", book_hotel, when="stage = 'requested'")
    .final("stage = 'booked'")
    .build()
)
"""

import inspect
from collections.abc import Awaitable, Callable
from types import new_class
from typing import Any, Self, TypeAlias, Unpack

from mutirao.errors import FlowError
from mutirao.language.place import place_of_caller, placing
from mutirao.language.python import RESERVED, Flow, finish
from mutirao.language.task import TaskOptions, check_options, make_task
from mutirao.language.work import (
    ApplicationOptions,
    StartOptions,
    WorkOptions,
    application_options,
    child_options,
    work_options,
)
from mutirao.model import Attribute, AttributeType, Change, Definition, Ends, Task
from mutirao.model.name import quote

Run: TypeAlias = Callable[..., Change | Awaitable[Change]]


class FlowBuilder:
    def __init__(self, name: str, description: str | None = None) -> None:
        self._name = name
        self._settings: dict[str, Any] = {"description": description}
        self._attributes: list[Attribute] = []
        self._tasks: list[Task] = []
        self._functions: dict[str, Run] = {}

    def attribute(
        self,
        name: str,
        kind: AttributeType = "text",
        *,
        default: Any = None,
        searchable: bool = False,
        required: bool = False,
    ) -> Self:
        """Add an attribute. A required one is never written as None."""
        if name in RESERVED:
            raise FlowError("attribute_reserved", f'attribute "{name}": every flow has a {name} of its own')
        self._attributes.append(Attribute(name, kind, default, searchable, required))
        return self

    def task(self, name: str, run: Run | None = None, **options: Unpack[TaskOptions]) -> Self:
        """Add a task. `run` takes the state, as a method does; without it, another program does the task's jobs."""
        with placing(place_of_caller()):
            check_options(name, options)
        self._tasks.append(make_task(name, options, None))
        if run is not None:
            self._functions[name] = run
        return self

    def work(self, name: str, role: str, **options: Unpack[WorkOptions]) -> Self:
        """Add a task for the persons of a role."""
        return self._add(name, place_of_caller(), lambda place: work_options(place, role, options))

    def child(self, name: str, flow: str, **options: Unpack[StartOptions]) -> Self:
        """Add a task that an instance of another flow does."""
        return self._add(name, place_of_caller(), lambda place: child_options(place, flow, options))

    def application(self, name: str, application: str, **options: Unpack[ApplicationOptions]) -> Self:
        """Add a task that an executable does, by its name in the library."""
        return self._add(name, place_of_caller(), lambda place: application_options(place, application, options))

    def _add(self, name: str, place: str, options: Callable[[str], TaskOptions]) -> Self:
        with placing(place):
            self._tasks.append(make_task(name, options(f"task {quote(name)}"), None))
        return self

    def creator(self, role: str) -> Self:
        """Say whose members start instances."""
        self._settings["creator"] = role
        return self

    def final(self, condition: str) -> Self:
        self._settings["final"] = condition
        return self

    def ends(self, ends: Ends) -> Self:
        self._settings["ends"] = ends
        return self

    def firing_limit(self, limit: int) -> Self:
        self._settings["firing_limit"] = limit
        return self

    def build(self) -> type[Flow]:
        settings = {"ends": "final" if "final" in self._settings else "quiet", **self._settings}
        definition = Definition(
            name=self._name, attributes=tuple(self._attributes), tasks=tuple(self._tasks), **settings
        )
        cls = new_class(_class_name(self._name), (Flow,), {"abstract": True})
        cls.__doc__ = definition.description
        cls.__module__ = _module_of_caller()
        finish(cls, definition, self._functions, {})
        return cls


def _module_of_caller() -> str:
    """Where `build` was called: a flow belongs to the module that makes it, whoever imports it then."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    return frame.f_globals.get("__name__", __name__) if frame else __name__


def _class_name(flow: str) -> str:
    return "".join(word.capitalize() for word in flow.split("_"))

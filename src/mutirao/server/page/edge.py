"""What leads to what in a flow: the edges of its picture. Pure.

A dependency and a recovery say so themselves. A condition only names attributes, and states of tasks as `task_<name>`: it is led
to by whoever writes those. Nobody reads SQL here, that is the database's duty: names are words outside of literals, no more.

Who writes an attribute is known from a task's outputs. A worker's function has none; most of them write what their condition
says is still null (`hotel is null`), so that is taken for it. What nobody is known to write was there when the instance started.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mutirao.model import Definition, Task, Term
from mutirao.model.dependency import walk

START, FINAL = "start", "final"
"""Their ids in a picture have a colon before them: no task has."""

EdgeKind = Literal["depends", "data", "seen", "contingency", "compensation", "order"]

_LITERAL = re.compile(r"'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_WORD = re.compile(r"[a-z_][a-z0-9_]*")
_NULL = re.compile(r"([a-z_][a-z0-9_]*)\s+is\s+null")
_STATE = re.compile(r"\btask_([a-z0-9_]+)\s*=\s*'([a-z_]+)'")

# Of an attribute that more tasks than these write, such as `stage`, nobody can say from whom a value comes.
_MOST_WRITERS = 3


@dataclass(frozen=True, slots=True)
class Edge:
    """From one task to another. `about` are the states or attributes that it is about."""

    source: str
    target: str
    kind: EdgeKind
    about: tuple[str, ...] = ()


def start_id() -> str:
    return f":{START}"


def final_id() -> str:
    return f":{FINAL}"


def edges(definition: Definition) -> list[Edge]:
    """All of them, each pair of tasks joined once for one reason."""
    found = _Found()
    writers = _writers(definition)
    order = {each.name: place for place, each in enumerate(definition.tasks)}
    for task in definition.tasks:
        _led_to(task, order, writers, found)
    for task in definition.tasks:
        recovery = task.recovery
        if recovery.contingency is not None:
            found.add(task.name, recovery.contingency, "contingency")
        if recovery.compensation is not None:
            found.add(task.name, recovery.compensation, "compensation")
    _from_start(definition, found)
    _to_final(definition, writers, found)
    return found.edges()


class _Found:
    """Edges by their ends; what one pair has several reasons for is one edge, of the first kind."""

    def __init__(self) -> None:
        self._by_ends: dict[tuple[str, str], Edge] = {}

    def add(self, source: str, target: str, kind: EdgeKind, *about: str) -> None:
        known = self._by_ends.get((source, target))
        if known is None:
            self._by_ends[source, target] = Edge(source, target, kind, about)
        elif known.kind == kind:
            more = tuple(each for each in about if each not in known.about)
            self._by_ends[source, target] = Edge(source, target, kind, known.about + more)

    def edges(self) -> list[Edge]:
        return list(self._by_ends.values())

    def after(self, source: str) -> set[str]:
        return {edge.target for edge in self._by_ends.values() if edge.source == source}

    def before(self, target: str) -> set[str]:
        return {edge.source for edge in self._by_ends.values() if edge.target == target}


def words(condition: str | None) -> set[str]:
    """The names in a condition, apart from what is a literal."""
    return set(_WORD.findall(_LITERAL.sub(" ", condition or "").lower()))


def _writes(task: Task, attributes: set[str]) -> set[str]:
    if task.outputs is not None:
        return set(task.outputs)
    if task.by_clock or task.when is None:
        return set()
    return set(_NULL.findall(_LITERAL.sub(" ", task.when).lower())) & attributes


def _writers(definition: Definition) -> dict[str, list[str]]:
    """By attribute, the tasks that write it, in the order in which they stand."""
    attributes = {each.name for each in definition.attributes}
    found: dict[str, list[str]] = {}
    for task in definition.tasks:
        for name in sorted(_writes(task, attributes)):
            found.setdefault(name, []).append(task.name)
    return found


def _led_to(task: Task, order: dict[str, int], writers: dict[str, list[str]], found: _Found) -> None:
    if task.depends is not None:
        for node, _ in walk(task.depends):
            if isinstance(node, Term):
                found.add(node.task, task.name, "depends", node.state)
    named = words(task.when)
    states = dict(_STATE.findall((task.when or "").lower()))
    seen = {word.removeprefix("task_") for word in named if word.startswith("task_")} & order.keys() - {task.name}
    for other in sorted(seen, key=order.__getitem__):
        found.add(other, task.name, "seen", *([states[other]] if other in states else []))
    read = named | ({task.wait} if task.wait is not None else set())
    for attribute in sorted(read & writers.keys()):
        for writer in _sources(task.name, writers[attribute], order):
            found.add(writer, task.name, "data", attribute)


def _sources(task: str, writers: list[str], order: dict[str, int]) -> Iterator[str]:
    """Whose value of an attribute a task waits for.

    A task that writes it as well, or one attribute that many write, would join everything with everything; the
    nearest writer that stands before it is what its author most likely thought of.
    """
    if task not in writers and len(writers) <= _MOST_WRITERS:
        yield from writers
        return
    earlier = [each for each in writers if order[each] < order[task]]
    yield from earlier[-1:]


def _standing_by(definition: Definition) -> set[str]:
    return {task.name for task in definition.tasks if task.when is None and task.depends is None}


def _from_start(definition: Definition, found: _Found) -> None:
    """Whatever nothing leads to begins at the start; and of tasks that only lead to one another, the first."""
    stand_by = _standing_by(definition)
    after: dict[str, list[str]] = {}
    led_to: set[str] = set()
    for edge in found.edges():
        after.setdefault(edge.source, []).append(edge.target)
        led_to.add(edge.target)
    reached: set[str] = set()

    def begin(task: str) -> None:
        found.add(start_id(), task, "order")
        rest = [task]
        while rest:
            at = rest.pop()
            if at not in reached:
                reached.add(at)
                rest += after.get(at, ())

    beginning = [task.name for task in definition.tasks if task.name not in stand_by]
    for task in beginning:
        if task not in led_to:
            begin(task)
    for task in beginning:
        if task not in reached:
            begin(task)


def _to_final(definition: Definition, writers: dict[str, list[str]], found: _Found) -> None:
    """From who writes what the final condition names; else from whatever leads nowhere."""
    if definition.final is None and definition.ends == "final":
        return
    named = words(definition.final)
    for attribute in sorted(named & writers.keys()):
        if len(writers[attribute]) <= _MOST_WRITERS:
            for writer in writers[attribute]:
                found.add(writer, final_id(), "data", attribute)
    for task in definition.tasks:
        if f"task_{task.name}" in named:
            found.add(task.name, final_id(), "seen")
    if not found.before(final_id()):
        leading = {edge.source for edge in found.edges() if edge.kind not in ("contingency", "compensation")}
        stand_by = _standing_by(definition)
        for task in definition.tasks:
            if task.name not in leading and task.name not in stand_by:
                found.add(task.name, final_id(), "order")

"""What a task depends on: a tree of terms, each of which holds from the moment a task first reaches a state.

Trees are written with `&` and `|`: `Term("book_hotel") & Term("book_flight", "failed")`. A string stands for a
term: `"book_hotel"` for its success, `"book_hotel.failed"` for another state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator

# Those that a task can reach. It begins as not_ready, and nothing ever comes back to that.
TaskState = Literal[
    "synchronizing",
    "ready",
    "running",
    "succeeded",
    "failed",
    "aborted",
    "blocked",
    "compensated",
]
TASK_STATES: tuple[str, ...] = get_args(TaskState)


class Dependency:
    """A term or a tree of them."""

    __slots__ = ()

    def __and__(self, other: Dependency | str) -> AllOf:
        if not isinstance(other, Dependency | str):
            return NotImplemented
        return AllOf((*_parts(self, AllOf), *_parts(dependency(other), AllOf)))

    def __or__(self, other: Dependency | str) -> AnyOf:
        if not isinstance(other, Dependency | str):
            return NotImplemented
        return AnyOf((*_parts(self, AnyOf), *_parts(dependency(other), AnyOf)))

    def __rand__(self, other: str) -> AllOf:
        return dependency(other) & self

    def __ror__(self, other: str) -> AnyOf:
        return dependency(other) | self


@dataclass(frozen=True, slots=True)
class Term(Dependency):
    task: str
    state: str = "succeeded"


@dataclass(frozen=True, slots=True)
class AllOf(Dependency):
    parts: tuple[Dependency, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Dependency):
    parts: tuple[Dependency, ...]


def dependency(meant: Dependency | str) -> Dependency:
    """The tree that is meant by a tree, by a task's name, or by `task.state`."""
    if not isinstance(meant, str):
        return meant
    task, dot, state = meant.partition(".")
    return Term(task, state) if dot else Term(task)


def walk(root: Dependency) -> Iterator[tuple[Dependency, int]]:
    """Every node with its depth; without recursion, so that a tree of any depth can be refused in good order."""
    rest = [(root, 1)]
    while rest:
        node, depth = rest.pop()
        yield node, depth
        if isinstance(node, AllOf | AnyOf):
            rest.extend((part, depth + 1) for part in reversed(node.parts))


def _parts(node: Dependency, kind: type[AllOf | AnyOf]) -> tuple[Dependency, ...]:
    return node.parts if isinstance(node, AllOf | AnyOf) and isinstance(node, kind) else (node,)

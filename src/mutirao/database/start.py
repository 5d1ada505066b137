"""Instances to be started, in batches: their states as JSON, and the keys that make a start idempotent."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from mutirao.errors import RequestError
from mutirao.model import Change, Definition
from mutirao.model.plain import encode_plain

# Large enough that the cost of a call vanishes, small enough that one does not hold its locks for long.
BATCH = 5000

note: ContextVar[Mapping[str, Any] | None] = ContextVar("note", default=None)
"""What the trace keeps with a start: a JSON object that tells where it came from, such as a traceparent."""

T = TypeVar("T")


class HasDefinition(Protocol):
    """A flow: a class made by `Flow` or by a builder."""

    definition: ClassVar[Definition]


class HasState(HasDefinition, Protocol):
    """A state to start with: an object of such a class."""

    def encode_state(self) -> bytes: ...


class Batch(NamedTuple):
    """Instances to be started together: their flow, their states as JSON, and their keys if they have any."""

    flow: str
    states: list[str]
    keys: list[str | None] | None


def batches_of(states: Iterable[HasState], keys: Iterable[str | None] | None) -> Iterator[Batch]:
    for batch, own in _with_keys(states, keys):
        yield Batch(_flow_of(batch), [each.encode_state().decode() for each in batch], own)


def batches_named(flow: str, states: Iterable[Change], keys: Iterable[str | None] | None) -> Iterator[Batch]:
    for batch, own in _with_keys(states, keys):
        yield Batch(flow, [encode_plain(each).decode() for each in batch], own)


def in_batches(values: Iterable[T]) -> Iterator[list[T]]:
    waiting = iter(values)
    while batch := list(islice(waiting, BATCH)):
        yield batch


def _with_keys(
    states: Iterable[T], keys: Iterable[str | None] | None
) -> Iterator[tuple[list[T], list[str | None] | None]]:
    if keys is None:
        yield from ((batch, None) for batch in in_batches(states))
        return
    waiting = iter(keys)
    for batch in in_batches(states):
        own = list(islice(waiting, len(batch)))
        if len(own) < len(batch):
            raise RequestError("wrong_call", "there are fewer keys than states: each state needs its key, or None")
        yield batch, own
    if next(waiting, ...) is not ...:
        raise RequestError("wrong_call", "there are more keys than states")


def _flow_of(states: Sequence[HasState]) -> str:
    flow = states[0].definition.name
    if other := next((each.definition.name for each in states if each.definition.name != flow), None):
        raise RequestError("wrong_call", f'one call starts instances of one flow: got "{flow}" and "{other}"')
    return flow

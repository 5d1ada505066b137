"""States and changes of one flow, between Python and the JSON that the database keeps. On the worker's hot path.

The quick way is taken by what is right: one typed decoder for a state, one look-up and one check per value of a
change. Only when that fails is the culprit looked for, one value at a time, to be named in the refusal.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeAlias, TypedDict

import msgspec

from mutirao.errors import RequestError
from mutirao.model.accept import ACCEPT, MisfitError
from mutirao.model.attribute import Attribute, AttributeType
from mutirao.model.name import suggest
from mutirao.model.value import ENCODER, PYTHON_TYPES, encode_value, from_json, has_nul, misfit

Change: TypeAlias = Mapping[str, Any]

_EXACT: dict[AttributeType, type] = {"text": str, "boolean": bool}
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


class StateCodec:
    """A required attribute is never written as None; whoever reads may still meet a null, from before it was."""

    def __init__(self, flow: str, attributes: Iterable[Attribute]) -> None:
        attributes = tuple(attributes)
        self.flow = flow
        self._types: dict[str, AttributeType] = {each.name: each.type for each in attributes}
        self._required = frozenset(each.name for each in attributes if each.required)
        # Of these types every value will do: most changes are texts, and a call for each would double their cost.
        self._exact = {name: _EXACT.get(kind) for name, kind in self._types.items()}
        self._accept = {name: self._acceptor(name) for name in self._types}
        self._decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(_state_type(self._types))

    def decode(self, state: bytes | str) -> dict[str, Any]:
        """The typed values of a state; what it has and the flow does not know is left out."""
        try:
            return self._decoder.decode(state)
        except _UNREADABLE as error:
            self._refuse_state(state, error)

    def encode(self, change: Change) -> bytes:
        exact, accept = self._exact, self._accept
        try:
            checked = {}
            for name, value in change.items():
                checked[name] = value if type(value) is exact[name] else accept[name](value)
            encoded = ENCODER.encode(checked)
        except (AttributeError, KeyError, MisfitError, ValueError, RecursionError) as error:
            self._refuse_change(change, error)
        if has_nul(encoded):
            self._refuse_change(change, MisfitError())
        return encoded

    def _acceptor(self, name: str) -> Callable[[Any], Any]:
        accept = ACCEPT[self._types[name]]
        if name in self._required:
            return accept
        return lambda value: None if value is None else accept(value)

    def _refuse_change(self, change: Any, error: Exception) -> NoReturn:
        if not isinstance(change, Mapping):
            raise not_a_change(f'flow "{self.flow}"', change) from None
        for name, value in change.items():
            if name not in self._types:
                known = suggest(name, self._types)
                raise RequestError(
                    "unknown_attribute", f'flow "{self.flow}" has no attribute "{name}"{known}'
                ) from None
            if value is None and name not in self._required:
                continue
            try:
                encode_value(self._types[name], value)
            except MisfitError as reason:
                raise self._wrong_type(name, value, reason) from None
        raise error

    def _refuse_state(self, state: bytes | str, error: Exception) -> NoReturn:
        try:
            values = msgspec.json.decode(state, type=dict[str, Any])
        except _UNREADABLE:
            raise RequestError("wrong_type", f'a state of flow "{self.flow}" is a JSON object: {error}') from error
        for name, value in values.items():
            try:
                from_json(self._types.get(name, "json"), value)
            except MisfitError as reason:
                raise self._wrong_type(name, value, reason) from None
        raise error

    def _wrong_type(self, name: str, value: Any, reason: MisfitError) -> RequestError:
        text = misfit(self._types[name], value, reason)
        return RequestError("wrong_type", f'attribute "{name}" of flow "{self.flow}" {text}')


def not_a_change(place: str, value: Any) -> RequestError:
    message = f"{place}: a task returns its change, a mapping of attribute names to values: got {type(value).__name__}"
    return RequestError("wrong_type", message)


def _state_type(types: Mapping[str, AttributeType]) -> Any:
    """A dict whose known keys are typed: msgspec fills it in one pass and skips unknown keys."""
    fields = {name: PYTHON_TYPES[kind] | None for name, kind in types.items()}
    return TypedDict("State", fields, total=False)  # type: ignore[operator]

"""`attribute=value` as people type it, read by the attribute's type.

stage=new  nights=3  price=9.90  paid=true  due=2031-12-24  at=2031-12-24T18:00:00Z  lines=["a", "b"]
hotel:=null                 after := stands JSON, which can also say null
plan=@plan.pdf              a file on this disk: file.py sends it
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from mutirao.errors import RequestError
from mutirao.model import Attribute, AttributeType, Definition
from mutirao.model.accept import MisfitError
from mutirao.model.name import suggest
from mutirao.model.value import decode_value, encode_value, misfit

_WRITTEN_BARE: frozenset[AttributeType] = frozenset({"text", "date", "timestamp"})
_HINTS: dict[AttributeType, str] = {
    "integer": "write it as 42",
    "number": "write it as 9.90",
    "boolean": "write true or false",
    "json": 'write it as JSON, such as {"a": 1}',
    "file": "write it as @plan.pdf, with the path of the file",
}


def read_assignments(definition: Definition, words: Sequence[str] | None) -> dict[str, Any]:
    """The change that the words mean, checked against the flow."""
    change: dict[str, Any] = {}
    for word in words or ():
        name, value = read_assignment(definition, word)
        if name in change:
            raise RequestError("wrong_call", f'attribute "{name}" is given twice')
        change[name] = value
    return change


def read_assignment(definition: Definition, word: str) -> tuple[str, Any]:
    left, equals, text = word.partition("=")
    if not equals:
        raise RequestError("wrong_call", f'"{word}" says nothing: write attribute=value')
    is_json = left.endswith(":")
    name = left.removesuffix(":")
    for attribute in definition.attributes:
        if attribute.name == name:
            return name, _read(definition, attribute, text, is_json=is_json)
    known = suggest(name, [each.name for each in definition.attributes])
    raise RequestError("unknown_attribute", f'flow "{definition.name}" has no attribute "{name}"{known}')


def search_text(definition: Definition, word: str) -> tuple[str, str]:
    """An attribute's name and the value to look for, as the search table holds it."""
    name, value = read_assignment(definition, word)
    kind = next(each.type for each in definition.attributes if each.name == name)
    if value is None:
        raise RequestError("wrong_call", f'"{word}": null cannot be looked for')
    encoded = encode_value(kind, value).decode()
    return name, value if kind == "text" else encoded.strip('"')


def _read(definition: Definition, attribute: Attribute, text: str, *, is_json: bool) -> Any:
    kind = attribute.type
    encoded = text.encode() if is_json or kind not in _WRITTEN_BARE else msgspec.json.encode(text)
    try:
        value = decode_value(kind, encoded)
        return None if value is None else _checked(kind, value)
    except MisfitError as reason:
        why = MisfitError(str(reason) or _HINTS.get(kind, ""))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        why = MisfitError("what follows := is JSON" if is_json else _HINTS.get(kind, ""))
    place = f'attribute "{attribute.name}" of flow "{definition.name}"'
    raise RequestError("wrong_type", f"{place} {misfit(kind, text, why)}")


def _checked(kind: AttributeType, value: Any) -> Any:
    encode_value(kind, value)
    return value

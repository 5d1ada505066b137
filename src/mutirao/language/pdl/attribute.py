"""Attributes: `NUMBER Price { VALUE 9.90; SEARCHABLE; }`, to the model and back."""

from decimal import Decimal
from typing import Any

import msgspec
from lark import Token

from mutirao.errors import RequestError
from mutirao.language.pdl.clause import ATTRIBUTE_KEYWORDS
from mutirao.language.pdl.finding import WrongError
from mutirao.language.pdl.syntax import Clause
from mutirao.language.pdl.text import quote
from mutirao.language.pdl.value import text_of
from mutirao.model import Attribute, AttributeType, Query
from mutirao.model.accept import MisfitError
from mutirao.model.value import decode_value, encode_value

_MAX_DIGITS = 25
_KEYWORD_OF: dict[AttributeType, str] = {kind: keyword for keyword, kind in ATTRIBUTE_KEYWORDS.items()}
_EXAMPLES: dict[AttributeType, str] = {
    "text": '"new"',
    "number": "9.90",
    "integer": "5",
    "boolean": "TRUE or FALSE",
    "date": '"2031-12-24"',
    "timestamp": '"2031-12-24T18:00:00Z"',
    "json": r'JSON in a text, "{\"size\": 5}"',
    "file": "what the file store answered, as JSON in a text",
}


def read_attribute(keyword: Token, name: str, given: dict[str, Any]) -> Attribute:
    kind = ATTRIBUTE_KEYWORDS[keyword.upper()]
    query = None
    if keyword.upper() == "QUERY":
        query = _query(keyword, given)
    default = _read_value(kind, given["default"]) if "default" in given else None
    searchable, required = given.get("searchable", False), given.get("required", False)
    return Attribute(name, kind, default, searchable, required, query, given.get("filename"))


def attribute_keyword(attribute: Attribute) -> str:
    return "QUERY" if attribute.query is not None else _KEYWORD_OF[attribute.type]


def attribute_fields(attribute: Attribute) -> dict[str, Any]:
    """What the clauses of its block say."""
    said: dict[str, Any] = {}
    if attribute.query is not None:
        said |= {"database": attribute.query.database, "expression": attribute.query.expression}
    if attribute.filename is not None:
        said["filename"] = attribute.filename
    if attribute.default is not None:
        said["default"] = _write_value(attribute)
    flags = {"searchable": attribute.searchable, "required": attribute.required}
    return said | {field: True for field, is_so in flags.items() if is_so}


def _query(keyword: Token, given: dict[str, Any]) -> Query:
    for field, what in (("database", "a DATABASE, the one it asks"), ("expression", "an EXPRESSION, what it asks")):
        if given.get(field) is None:
            raise WrongError("pdl_syntax", f"a QUERY needs {what}", keyword)
    return Query(given["database"], given["expression"])


def _read_value(kind: AttributeType, clause: Clause) -> Any:
    at = clause.keyword
    match clause.arguments:
        case ():
            return None
        case ((Token() as token,),):
            at = token
            try:
                return _VALUES.get(kind, _decoded)(kind, token)
            except (MisfitError, RequestError, ValueError, ArithmeticError, msgspec.DecodeError, RecursionError):
                pass
    raise WrongError("wrong_type", f"VALUE of this {_KEYWORD_OF[kind]} is written {_EXAMPLES[kind]}", at)


def _text(_: AttributeType, token: Token) -> str:
    if token.type == "NUMBER":
        raise ValueError
    return text_of(token)


def _number(_: AttributeType, token: Token) -> Any:
    if token.type != "NUMBER":
        raise ValueError
    return Decimal(token)


def _integer(_: AttributeType, token: Token) -> Any:
    if token.type != "NUMBER" or len(token) > _MAX_DIGITS:
        raise ValueError
    return int(token)


def _boolean(_: AttributeType, token: Token) -> bool:
    if token.upper() not in ("TRUE", "FALSE"):
        raise ValueError
    return token.upper() == "TRUE"


def _moment(kind: AttributeType, token: Token) -> Any:
    return decode_value(kind, msgspec.json.encode(text_of(token)))


def _decoded(kind: AttributeType, token: Token) -> Any:
    if token.type != "STRING":
        raise ValueError
    return decode_value(kind, text_of(token).encode())


_VALUES: dict[AttributeType, Any] = {
    "text": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "date": _moment,
    "timestamp": _moment,
}


def _write_value(attribute: Attribute) -> str:
    kind, value = attribute.type, attribute.default
    if kind == "text":
        return quote(value)
    encoded = encode_value(kind, value).decode()
    match kind:
        case "boolean":
            return encoded.upper()
        case "number" | "integer" | "date" | "timestamp":
            return encoded  # JSON has dates in quotes, as PDL does
    return quote(encoded)

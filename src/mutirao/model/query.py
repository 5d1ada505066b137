"""The expression of a query: one SQL statement with parameters `:attribute`, which are bound and never written into it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mutirao.errors import FlowError
from mutirao.model.name import quote, suggest

# What SQL has in which a colon is no parameter and a semicolon no end: the first that matches is taken whole.
_TOKEN = re.compile(
    r"""
    (?P<kept> [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?P=tag)?\$
      | --[^\n]* | /\*.*?\*/ | :: | := )
    | :(?P<name>[a-z_][a-z0-9_]*)
    | (?P<place>\$\d+)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """The text with `$1`, `$2` … in place of its parameters, and which attribute each of them stands for."""

    text: str
    parameters: tuple[str, ...]


def read_expression(place: str, expression: str, attributes: Iterable[str]) -> Statement:
    """Refuses a second statement, and a parameter that is no attribute."""
    known = set(attributes)
    numbers: dict[str, int] = {}

    def replaced(found: re.Match[str]) -> str:
        if found["kept"] is not None:
            return found["kept"]
        if found["place"] is not None:
            raise FlowError("flow_invalid", f"{place}: its parameters are attributes, :name; not {found['place']}")
        if found["end"] is not None:
            raise FlowError(
                "flow_invalid", f"{place}: a query is one statement, and this one goes on after a semicolon"
            )
        if found["name"] not in known:
            unknown = f"names the unknown attribute {quote(found['name'])}{suggest(found['name'], known)}"
            raise FlowError("unknown_attribute", f"{place}: its query {unknown}")
        return f"${numbers.setdefault(found['name'], len(numbers) + 1)}"

    text = _TOKEN.sub(replaced, expression.strip().rstrip(";").rstrip())
    return Statement(text, tuple(numbers))

"""Names of flows, attributes and tasks: what they may be, and what was probably meant by a wrong one."""

import difflib
import re
from collections.abc import Iterable

from mutirao.errors import FlowError
from mutirao.model.reserved import HIDDEN_COLUMNS, SQL_WORDS

NAME_RULE = "a lowercase letter, then at most 47 lowercase letters, digits and underscores"

MAX_NAME = 48

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
_LISTED = 10

# A flow's name becomes a schema of the database, beside these.
_TAKEN_SCHEMAS = frozenset({"mutirao", "mutirao_rule", "mutirao_secret", "information_schema", "public"})


def is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def check_name(place: str, name: object) -> None:
    if not is_name(name):
        raise FlowError("flow_invalid", f"{place} has no usable name: a name is {NAME_RULE}")


def check_flow_name(name: object) -> None:
    check_name(f"flow {quote(name)}", name)
    if name in _TAKEN_SCHEMAS or str(name).startswith("pg_"):
        raise FlowError("flow_invalid", f'flow "{name}" would take a name that the database keeps for itself')


def check_attribute_name(place: str, name: str) -> None:
    check_name(place, name)
    if name.startswith("task_"):
        raise FlowError(
            "attribute_reserved", f"{place}: names that begin with task_ are the states of tasks; choose another"
        )
    if name == "wid":
        raise FlowError("attribute_reserved", f"{place}: wid is the instance's own number; choose another name")
    if name in HIDDEN_COLUMNS:
        raise FlowError("attribute_reserved", f"{place}: every table has a hidden column of that name; choose another")
    if name in SQL_WORDS:
        raise FlowError("attribute_reserved", f"{place}: SQL reserves this word; choose another, such as {name}_")


def quote(name: object) -> str:
    return f'"{name}"' if isinstance(name, str) else repr(name)


def suggest(word: object, known: Iterable[str]) -> str:
    """What would be right, to be put at the end of a message: the nearest known word, or else the known ones."""
    words = sorted(known)
    if near := suggest_near(word, words):
        return near
    if not words:
        return ""
    more = ", …" if len(words) > _LISTED else ""
    return f"; there is {', '.join(words[:_LISTED])}{more}"


def suggest_near(word: object, known: Iterable[str]) -> str:
    """The nearest alone: of people and roles there are many, and some of them are of no help."""
    nearest = difflib.get_close_matches(str(word), sorted(known), n=1)
    return f'; did you mean "{nearest[0]}"?' if nearest else ""

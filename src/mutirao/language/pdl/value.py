"""How the values of clauses are written, and read again: each kind of value is a pair of functions.

A reader takes a clause that has arguments and gives its value, or raises `WrongError`; a writer gives what stands between
the keyword and the semicolon.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from lark import Token

from mutirao.language.pdl.finding import WrongError
from mutirao.language.pdl.rule import read_rule, write_rule
from mutirao.language.pdl.syntax import Atom, Clause, SyntaxGroup, SyntaxTerm, first_token
from mutirao.language.pdl.text import EscapeError, label, quote, snake_case, unquote
from mutirao.model import Limit, Policy
from mutirao.model.name import MAX_NAME, is_name, suggest

REQUIRED: Any = object()
EVERYTHING = "ALL"
CRITICAL = "CRITICAL"
_UNDONE_BY_NONE = frozenset({"NONE", CRITICAL})

_MICROSECONDS = {"DAYS": 86_400_000_000, "HOURS": 3_600_000_000, "MINUTES": 60_000_000, "SECONDS": 1_000_000}
_MOST_MICROSECONDS = Decimal(10) ** 19
_MAX_DIGITS = 25
_POLICIES_WITH_TASK = ("SAME_AS", "NOT_AS")
_POLICIES = ("EVERYONE", "LEAST_LOADED", "ROUND_ROBIN", *_POLICIES_WITH_TASK)
_LIMITS = {"AT_ONCE": "at_once", "PER_SECOND": "per_second", "PER": "each"}


@dataclass(frozen=True, slots=True)
class Kind:
    """`takes` is what the author is told; `empty` is what the clause means without arguments; `words` are keywords."""

    takes: str
    read: Callable[[Clause], Any]
    write: Callable[[Any], str]
    empty: Any = None
    words: frozenset[str] = frozenset()


class _MisfitError(Exception):
    """The arguments are not of the kind that the clause takes."""


def read(kind: Kind, clause: Clause) -> Any:
    if not clause.arguments and kind.empty is not REQUIRED:
        return kind.empty
    try:
        return kind.read(clause)
    except _MisfitError:
        at = first_token(clause.arguments[0][0]) if clause.arguments else clause.keyword
        raise WrongError("pdl_syntax", f"{clause.keyword.upper()} takes {kind.takes}", at) from None


def write(kind: Kind, value: Any) -> str:
    """With a space before it, unless the clause says so by having no arguments."""
    if value == kind.empty and kind.empty in (None, (), True):
        return ""
    return f" {kind.write(value)}"


def keyword(token: Token) -> str:
    """`Semi-automatic` is SEMI_AUTOMATIC."""
    return token.upper().replace("-", "_")


def text_of(token: Token) -> str:
    try:
        return unquote(token)
    except EscapeError as error:
        raise WrongError("pdl_syntax", str(error), token) from None


def name_of(token: Token) -> str:
    """What a flow, a task or an attribute is called in the engine."""
    name = snake_case(text_of(token))
    if not is_name(name):
        text = f"{quote(text_of(token))} is no name of a flow, task or attribute: that is a letter from a to z, then letters, digits and _"
        raise WrongError("flow_invalid", f"{text}, at most {MAX_NAME} in all", token)
    return name


def _only(clause: Clause, *types: str) -> Token:
    match clause.arguments:
        case ((Token() as token,),) if token.type in types:
            return token
    raise _MisfitError


def _listed(clause: Clause) -> Iterator[Token]:
    for argument in clause.arguments:
        match argument:
            case (Token() as token,) if token.type in ("WORD", "STRING"):
                yield token
            case _:
                raise _MisfitError


def _read_text(clause: Clause) -> str:
    return text_of(_only(clause, "WORD", "STRING"))


def _read_labels(clause: Clause) -> tuple[str, ...]:
    return tuple(text_of(token) for token in _listed(clause))


def _read_names(clause: Clause) -> tuple[str, ...] | None:
    tokens = list(_listed(clause))
    if [token.upper() for token in tokens] == [EVERYTHING]:
        return None
    return tuple(name_of(token) for token in tokens)


def _write_names(names: tuple[str, ...] | None) -> str:
    return EVERYTHING if names is None else ", ".join(names)  # no attribute is called all: SQL keeps that word


def _read_integer(clause: Clause) -> int:
    token = _only(clause, "NUMBER")
    if not token.lstrip("+-").isdecimal() or len(token) > _MAX_DIGITS:
        raise _MisfitError
    return int(token)


def _read_flag(clause: Clause) -> bool:
    word = _only(clause, "WORD").upper()
    if word not in ("TRUE", "FALSE"):
        raise _MisfitError
    return word == "TRUE"


def _read_compensation(clause: Clause) -> str | None:
    token = _only(clause, "WORD", "STRING")
    if token.upper() in _UNDONE_BY_NONE:
        return CRITICAL if token.upper() == CRITICAL else None
    return name_of(token)


def _write_compensation(name: str | None) -> str:
    if name is None or name == CRITICAL:
        return name or "NONE"
    return quote(name) if name.upper() in _UNDONE_BY_NONE else label(name)


def _write_flag(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _read_duration(clause: Clause) -> timedelta:
    match clause.arguments:
        case ((Token(type="NUMBER") as number, Token(type="WORD") as word),):
            return _span(number, _MICROSECONDS[_unit(word)])
    raise _MisfitError


def _span(number: Token, unit: int) -> timedelta:
    try:
        microseconds = Decimal(number) * unit
    except ArithmeticError:  # an exponent that no number has
        raise _MisfitError from None
    if not 0 <= microseconds <= _MOST_MICROSECONDS:
        raise WrongError("pdl_syntax", f"nothing takes so long as {number}", number)
    if microseconds % 1:
        raise WrongError("pdl_syntax", f"{number} is finer than a microsecond", number)
    return timedelta(microseconds=int(microseconds))


def _unit(word: Token) -> str:
    for unit in _MICROSECONDS:
        if word.upper() in (unit, unit.removesuffix("S")):
            return unit
    raise WrongError("pdl_syntax", f'there is no unit "{word}"{suggest(word.upper(), _MICROSECONDS)}', word)


def _write_duration(span: timedelta) -> str:
    """In the largest unit that needs no fraction."""
    microseconds = span // timedelta(microseconds=1)
    for unit, size in _MICROSECONDS.items():
        if microseconds % size == 0 and microseconds:
            return f"{microseconds // size} {unit}"
    return f"{Decimal(microseconds).scaleb(-6).normalize():f} SECONDS"


def _read_policy(clause: Clause) -> Policy:
    match clause.arguments:
        case ((Token(type="WORD") as word, *rest),):
            kind = keyword(word)
            match kind in _POLICIES_WITH_TASK, rest:
                case True, [Token(type="WORD" | "STRING") as task]:
                    return Policy(kind.lower(), name_of(task))  # type: ignore[arg-type]
                case False, []:
                    if kind in _POLICIES:
                        return Policy(kind.lower())  # type: ignore[arg-type]
                    raise WrongError("pdl_syntax", f'there is no policy "{word}"{suggest(kind, _POLICIES)}', word)
    raise _MisfitError


def _write_policy(policy: Policy) -> str:
    return policy.kind.upper() + ("" if policy.task is None else f" {policy.task}")


def _read_limit(clause: Clause) -> Limit:
    given: dict[str, Any] = {}
    for argument in clause.arguments:
        match argument:
            case (Token(type="NUMBER") as number, Token(type="WORD") as word, *rest):
                field = _LIMITS.get(keyword(word))
                if field is None:
                    raise WrongError("pdl_syntax", f'there is no limit "{word}"{suggest(keyword(word), _LIMITS)}', word)
                if field in given or (field == "each") != (len(rest) == 1):
                    raise _MisfitError
                given[field] = _limit_number(field, number)
                if isinstance(rest[0] if rest else None, SyntaxTerm | SyntaxGroup):
                    raise _MisfitError
                if rest:
                    given["per"] = name_of(rest[0])  # type: ignore[arg-type]
            case _:
                raise _MisfitError
    return Limit(**given)


def _limit_number(field: str, number: Token) -> float:
    if field == "per_second":
        return float(number)
    if not number.isdecimal() or len(number) > _MAX_DIGITS:
        raise _MisfitError
    return int(number)


def _write_limit(limit: Limit) -> str:
    parts = {
        f"{limit.at_once} AT_ONCE": limit.at_once,
        f"{limit.per_second} PER_SECOND": limit.per_second,
        f"{limit.each} PER {limit.per}": limit.each,
    }
    return ", ".join(text for text, value in parts.items() if value is not None)


def _read_rule(clause: Clause) -> Any:
    match clause.arguments:
        case ((SyntaxTerm() | SyntaxGroup() as rule,),):
            return read_rule(rule)
    raise _MisfitError


def choice(*words: str) -> Kind:
    """One of these, in any case, and with - for _; in the model it is in lower case."""

    def read_choice(clause: Clause) -> str:
        token = _only(clause, "WORD")
        if keyword(token) not in words:
            name = clause.keyword.upper()
            text = f'"{token}" is no {name}{suggest(keyword(token), words)}'
            raise WrongError("pdl_syntax", text, token)
        return keyword(token).lower()

    return Kind(f"one of {', '.join(words)}", read_choice, str.upper, REQUIRED, frozenset(words))


def atoms(clause: Clause) -> Iterator[Atom]:
    for argument in clause.arguments:
        yield from argument


_BOTH = frozenset({"TRUE", "FALSE"})

TEXT = Kind('a text in quotes, such as "two words"', _read_text, quote)
LABEL = Kind("one name; in quotes if it has spaces", _read_text, label)
LABELS = Kind("names with commas between them", _read_labels, lambda names: ", ".join(map(label, names)), empty=())
TEXTS = Kind("texts with commas between them", _read_labels, lambda names: ", ".join(map(quote, names)), empty=())
NAME = Kind("one name", lambda clause: name_of(_only(clause, "WORD", "STRING")), label)
NAMES = Kind(
    "names of data with commas between them, or ALL", _read_names, _write_names, empty=(), words=frozenset({EVERYTHING})
)
INTEGER = Kind("a whole number, such as 20", _read_integer, str, REQUIRED)
FLAG = Kind("TRUE or FALSE", _read_flag, _write_flag, empty=True, words=_BOTH)
FLAG_OFF = Kind("TRUE or FALSE", _read_flag, _write_flag, empty=False, words=_BOTH)
DURATION = Kind(
    "a number and a unit, such as 48 HOURS",
    _read_duration,
    _write_duration,
    words=frozenset({*_MICROSECONDS, *(unit.removesuffix("S") for unit in _MICROSECONDS)}),
)
POLICY = Kind(
    f"one of {', '.join(_POLICIES[:3])}, SAME_AS task, NOT_AS task",
    _read_policy,
    _write_policy,
    empty=Policy(),
    words=frozenset(_POLICIES),
)
LIMIT = Kind(
    "numbers with what they limit, such as 5 AT_ONCE, 2.5 PER_SECOND, 1 PER customer",
    _read_limit,
    _write_limit,
    words=frozenset(_LIMITS),
)
COMPENSATION = Kind(
    "the task that undoes it, NONE, or CRITICAL", _read_compensation, _write_compensation, words=_UNDONE_BY_NONE
)
RULE = Kind("a rule, such as and(Book -> SUCCEEDED, Pay -> FAILED)", _read_rule, write_rule)

"""What a file says, as it says it: blocks and clauses with their places, and the comments. What it means is in `build`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lark import Token


@dataclass(frozen=True, slots=True)
class Source:
    """A text and what it is called: the file's name, for one."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a source something stands; lines and columns count from 1."""

    source: Source
    line: int
    column: int
    width: int = 1


@dataclass(frozen=True, slots=True)
class SyntaxTerm:
    """`Book -> SUCCEEDED`."""

    task: Token
    state: Token


@dataclass(frozen=True, slots=True)
class SyntaxGroup:
    """`and(…, …)`, so many levels high."""

    operator: Token
    parts: tuple["Rule", ...]
    end: Token
    height: int


Rule: TypeAlias = SyntaxTerm | SyntaxGroup
Atom: TypeAlias = Token | Rule


@dataclass(frozen=True, slots=True)
class Clause:
    """A keyword and its arguments, each of one or more words: `LIMIT 5 AT_ONCE, 1 PER customer;`."""

    keyword: Token
    arguments: tuple[tuple[Atom, ...], ...]
    end: Token

    @property
    def start(self) -> Token:
        return self.keyword


@dataclass(frozen=True, slots=True)
class Pair:
    """Two names with a colon between them, after a keyword or alone: `WORKFLOW_DEFINITIONS P_1: P_2;`."""

    keyword: Token | None
    first: Token
    second: Token
    end: Token

    @property
    def start(self) -> Token:
        return self.keyword or self.first


@dataclass(frozen=True, slots=True)
class Block:
    """`heading` is what stands between the keyword and the brace: a name, and what follows its colon."""

    keyword: Token
    heading: tuple[Token, ...]
    entries: tuple["Entry", ...]
    opening: Token
    end: Token
    height: int

    @property
    def start(self) -> Token:
        return self.keyword


Entry: TypeAlias = Block | Clause | Pair


@dataclass(frozen=True, slots=True)
class Tree:
    source: Source
    entries: tuple[Entry, ...]
    comments: tuple[Token, ...]

    def place(self, token: Token) -> Place:
        first, _, more = token.partition("\n")
        return Place(self.source, token.line or 1, token.column or 1, max(len(first), 1) if not more else 1)


def first_token(atom: Atom) -> Token:
    match atom:
        case SyntaxTerm(task=token) | SyntaxGroup(operator=token):
            return token
    return atom


def last_token(atom: Atom) -> Token:
    match atom:
        case SyntaxTerm(state=token) | SyntaxGroup(end=token):
            return token
    return atom


def terms(rule: Rule) -> Iterator[SyntaxTerm]:
    rest: list[Rule] = [rule]
    while rest:
        match rest.pop():
            case SyntaxTerm() as term:
                yield term
            case SyntaxGroup(parts=parts):
                rest.extend(reversed(parts))

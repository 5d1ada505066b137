"""Text to syntax tree: the grammar is in grammar.lark, the limits are here.

A file has at most 500 kB, and a rule at most 100 levels. The parser keeps a stack of its own, so that what is nested without
end costs no more than its length and is refused in good order.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from mutirao.errors import FlowError
from mutirao.language.pdl.finding import Finding, PdlError
from mutirao.language.pdl.syntax import Block, Clause, Pair, Place, Source, SyntaxGroup, SyntaxTerm, Tree
from mutirao.model.validation import MAX_DEPTH

MAX_BYTES = 500_000

_SHOWN = 40

_MAX_NESTED_BLOCKS = 3  # WORKFLOW { TASK { … } } has two; one more, so that a misplaced block is told by its name

_SPELLED = {
    "LBRACE": '"{"',
    "RBRACE": '"}"',
    "SEMICOLON": '";"',
    "COMMA": '","',
    "COLON": '":"',
    "_ARROW": '"->"',
    "LPAR": '"("',
    "RPAR": '")"',
    "WORD": "a word",
    "STRING": "a text in quotes",
    "NUMBER": "a number",
    "$END": "the end of the file",
}


def parse(source: Source) -> Tree:
    """The syntax tree of a text; raises `PdlError` if it has none."""
    check_size(source.name, len(source.text.encode("utf-8", "surrogatepass")))
    try:
        entries: tuple[Any, ...] = _parser().parse(source.text)  # type: ignore[assignment]
    except UnexpectedInput as error:
        raise PdlError([_explain(source, error)]) from None
    except _TooDeepError as error:
        place = Place(source, error.at.line or 1, error.at.column or 1, len(error.at))
        raise PdlError([Finding("pdl_syntax", str(error), place)]) from None
    return Tree(source, entries, tuple(_comments(source.text)))


def check_size(name: str, size: int) -> None:
    """For whoever reads a file, before it does."""
    if size > MAX_BYTES:
        text = f"{name} has {size:,} bytes, and a PDL file has at most {MAX_BYTES:,}; make several of it"
        raise FlowError("pdl_too_large", text)


class _TooDeepError(Exception):
    def __init__(self, at: Token, message: str) -> None:
        super().__init__(message)
        self.at = at


class _Build(Transformer[Token, Any]):
    """Called by the parser from the leaves up, so that nothing here recurses."""

    def start(self, entries: list[Any]) -> tuple[Any, ...]:
        return tuple(entries)

    def heading(self, tokens: list[Any]) -> tuple[Token, ...]:
        return tuple(tokens)

    def block(self, parts: list[Any]) -> Block:
        keyword, *rest = parts
        heading = rest.pop(0) if isinstance(rest[0], tuple) else ()
        opening, *entries, end = rest
        height = 1 + max((each.height for each in entries if isinstance(each, Block)), default=0)
        if height > _MAX_NESTED_BLOCKS:
            raise _TooDeepError(keyword, 'blocks inside of blocks inside of blocks; is a "}" missing before this one?')
        return Block(keyword, heading, tuple(entries), opening, end, height)

    def clause(self, parts: list[Any]) -> Clause | Pair:
        keyword, given, end = parts
        if isinstance(given, Pair):
            return Pair(keyword, given.first, given.second, end)
        return Clause(keyword, given or (), end)

    def arguments(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(parts)

    def argument(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(parts)

    def ordered(self, parts: list[Any]) -> Pair:
        first, second = parts
        return Pair(None, first, second, second)

    def pair(self, parts: list[Any]) -> Pair:
        return Pair(None, *parts)

    def term(self, parts: list[Any]) -> SyntaxTerm:
        return SyntaxTerm(*parts)

    def group(self, parts: list[Any]) -> SyntaxGroup:
        operator, *inner, end = parts
        height = 1 + max(each.height if isinstance(each, SyntaxGroup) else 1 for each in inner)
        if height > MAX_DEPTH:
            raise _TooDeepError(operator, f"this rule is nested more than {MAX_DEPTH} deep")
        return SyntaxGroup(operator, tuple(inner), end, height)


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", transformer=_Build(), maybe_placeholders=True)


@cache
def _comment_pattern() -> re.Pattern[str]:
    """A comment, or a text, in which nothing is a comment."""
    string, comment = (_parser().get_terminal(name).pattern.to_regexp() for name in ("STRING", "COMMENT"))
    return re.compile(f"{string}|(?P<comment>{comment})")


def _comments(text: str) -> Iterator[Token]:
    line, counted = 1, 0
    for match in _comment_pattern().finditer(text):
        if match["comment"] is not None:
            line += text.count("\n", counted, match.start())
            counted = match.start()
            column = match.start() - text.rfind("\n", 0, match.start())
            yield Token(
                "COMMENT",
                match["comment"],
                start_pos=match.start(),
                line=line,
                column=column,
                end_line=line + match["comment"].count("\n"),
                end_pos=match.end(),
            )


def _explain(source: Source, error: UnexpectedInput) -> Finding:
    match error:
        case UnexpectedCharacters():
            message = _strange_character(source.text[error.pos_in_stream :])
            return Finding("pdl_syntax", message, Place(source, error.line, error.column))
        case UnexpectedToken(token=token):
            return _unexpected(source, token, error.accepts or error.expected)
    return Finding("pdl_syntax", "this cannot be read", Place(source, 1, 1))


def _strange_character(rest: str) -> str:
    if rest.startswith('"'):
        return "this text has no closing quote"
    if rest.startswith("/*"):
        return "this comment has no closing */"
    shown = rest[0] if rest[0].isprintable() else f"U+{ord(rest[0]):04X}"
    return f"{shown} does not belong here; a name with such a character stands in quotes"


def _unexpected(source: Source, token: Token, accepted: set[str]) -> Finding:
    """What is missing is missing behind the word before; what is too much stands where it stands."""
    got = _SPELLED["$END"] if token.type == "$END" else f'"{_shortened(token)}"'
    if "SEMICOLON" in accepted:
        return Finding("pdl_syntax", f'";" is missing here, before {got}', _place_behind(source, token))
    if token.type == "$END":
        if (inner := _block_too_deep(source.text)) is not None:
            message = f'this {inner.upper()} stands inside of another block: is a "}}" missing before it?'
            return Finding("pdl_syntax", message, Place(source, inner.line or 1, inner.column or 1, len(inner)))
        return Finding("pdl_syntax", 'the file ends inside of a block: "}" is missing', _place_behind(source, token))
    expected = " or ".join(_SPELLED[name] for name in sorted(accepted, key=list(_SPELLED).index))
    place = Place(source, token.line or 1, token.column or 1, len(token.partition("\n")[0]))
    return Finding("pdl_syntax", f"expected {expected}, and here is {got}{_text_over_lines(token)}", place)


def _block_too_deep(text: str) -> Token | None:
    """A WORKFLOW inside of anything, or a TASK inside of a TASK: before it, a block has no end."""
    opened: list[Token] = []
    begins: Token | None = None
    for token in _parser().lex(text):
        match token.type:
            case "LBRACE" if begins is not None:
                word = begins.upper()
                if opened and (word == "WORKFLOW" or word == "TASK" == opened[-1].upper()):
                    return begins
                opened.append(begins)
            case "RBRACE" if opened:
                opened.pop()
        if token.type in ("LBRACE", "RBRACE", "SEMICOLON"):
            begins = None
        elif begins is None:
            begins = token
    return None


def _place_behind(source: Source, token: Token) -> Place:
    """Where the word before it ended, comments and spaces apart."""
    rest = source.text if token.type == "$END" else source.text[: token.start_pos]
    for comment in reversed(list(_comments(rest))):
        if not rest[comment.end_pos :].strip():
            rest = rest[: comment.start_pos]
    rest = rest.rstrip()
    return Place(source, rest.count("\n") + 1, len(rest) - rest.rfind("\n"))


def _text_over_lines(token: Token) -> str:
    if token.type == "STRING" and "\n" in token:
        return "; a text that should have ended earlier ends where this one begins"
    return ""


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"

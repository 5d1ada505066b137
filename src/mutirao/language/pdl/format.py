"""The formatter: one layout for all files. It changes no meaning, and keeps every comment.

Keywords are in capitals, an arrow is `->`, a clause has its line, as has an attribute that is short enough, and a block is
indented by two. A comment stays at the end of
its line or on lines of its own; one that stands inside of a clause moves before it. Between two entries at most one empty
line is kept, and between definitions there is exactly one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from lark import Token

from mutirao.language.pdl.clause import APPLICATION, ATTRIBUTES, FLOW, TASK, ClauseRules
from mutirao.language.pdl.parser import parse
from mutirao.language.pdl.syntax import Atom, Block, Clause, Entry, Pair, Source, SyntaxGroup, SyntaxTerm, Tree
from mutirao.language.pdl.text import broken_lines
from mutirao.language.pdl.value import keyword

WIDTH = 100
_INDENT = "  "
_CONTINUED = "    "
_BEFORE_COMMENT = "  "

_RULES: ClauseRules = {
    name: rule for rules in (*ATTRIBUTES.values(), FLOW, APPLICATION, TASK) for name, rule in rules.items()
}


def format_text(source: Source) -> str:
    """The same text in the one layout; raises `PdlError` if it cannot be read."""
    return format_tree(parse(source))


def format_tree(tree: Tree) -> str:
    writer = _Writer(tree.comments)
    writer.write(tree.entries, depth=0, until=None)
    return "".join(f"{line}\n" for line in writer.lines)


@dataclass(frozen=True, slots=True)
class _Item:
    """An entry or a comment that has lines of its own; and which lines it had in the source."""

    what: Entry | Token
    line: int
    end_line: int


class _Writer:
    """Walks the entries, and takes the comments as it passes them."""

    def __init__(self, comments: Sequence[Token]) -> None:
        self.lines: list[str] = []
        self._comments = list(reversed(comments))  # what has not been passed; the next is the last

    def write(self, entries: Sequence[Entry], depth: int, until: Token | None) -> None:
        before: _Item | None = None
        for entry in entries:
            for comment in self._take(_start(entry.start)):
                before = self._write_item(_Item(comment, _line(comment), comment.end_line or 0), before, depth)
            # What stands inside of it comes before it, as if it had always been there.
            for comment in self._take(_start(entry.opening if isinstance(entry, Block) else entry.end)):
                before = self._write_item(_Item(comment, _line(entry.start), _line(entry.start)), before, depth)
            before = self._write_item(_Item(entry, _line(entry.start), _line(entry.end)), before, depth)
        for comment in self._take(None if until is None else _start(until)):
            before = self._write_item(_Item(comment, _line(comment), comment.end_line or 0), before, depth)

    def _write_item(self, item: _Item, before: _Item | None, depth: int) -> _Item:
        if before is not None and (item.line > before.end_line + 1 or (depth == 0 and _are_apart(before, item))):
            self.lines.append("")
        ahead = _INDENT * depth
        match item.what:
            case Token() as comment:
                self.lines += _comment_lines(comment, ahead)
            case Block() as block if (line := self._in_one_line(block, ahead)) is not None:
                self.lines.append(line)
                self._write_behind(block.end)
            case Block() as block:
                self.lines.append(f"{ahead}{_head(block)} {{")
                self._write_behind(block.opening)
                self.write(block.entries, depth + 1, block.end)
                self.lines.append(f"{ahead}}}")
                self._write_behind(block.end)
            case Clause() | Pair() as clause:
                self.lines += _clause(clause, ahead) if isinstance(clause, Clause) else [ahead + _pair(clause, ahead)]
                self._write_behind(clause.end)
        return item

    def _in_one_line(self, block: Block, ahead: str) -> str | None:
        """An attribute has a line for itself, if it fits and there is no comment in it."""
        is_commented = self._comments and _start(self._comments[-1]) < _start(block.end)
        clauses = [_clause(each, "") for each in block.entries if isinstance(each, Clause)]
        if block.keyword.upper() not in ATTRIBUTES or is_commented or len(clauses) < len(block.entries) or not clauses:
            return None
        line = f"{ahead}{_head(block)} {{ {' '.join(lines[0] for lines in clauses)} }}"
        return line if len(line) <= WIDTH and all(len(lines) == 1 for lines in clauses) else None

    def _write_behind(self, end: Token) -> None:
        """Comments on the line that ends here stay on it."""
        while self._comments and _line(self._comments[-1]) == _line(end) == self._comments[-1].end_line:
            self.lines[-1] += _BEFORE_COMMENT + self._comments.pop().rstrip()

    def _take(self, position: int | None) -> list[Token]:
        """The comments that begin before a position."""
        taken = list(takewhile(lambda each: position is None or _start(each) < position, reversed(self._comments)))
        del self._comments[len(self._comments) - len(taken) :]
        return taken


def _are_apart(before: _Item, item: _Item) -> bool:
    """Definitions are, and so is what is said before the next one; but an ordering is one thing in two halves."""
    if isinstance(before.what, Token):
        return False
    return isinstance(item.what, Token) or item.what.start.upper() != "RELATIVE_ORDER"


def _start(token: Token) -> int:
    return token.start_pos or 0


def _line(token: Token) -> int:
    return token.line or 0


def _comment_lines(comment: Token, ahead: str) -> list[str]:
    """The lines of a long one keep their places to one another."""
    first, *rest = comment.split("\n")
    column = (comment.column or 1) - 1
    moved = [line[:column].lstrip() + line[column:] for line in rest]
    return [f"{ahead}{line}".rstrip() for line in (first, *moved)]


def _head(block: Block) -> str:
    word = block.keyword.upper()
    match block.heading:
        case ():
            return word
        case (name,):
            return f"{word} {_text(name, '')}"
        case (name, *rest):
            is_child = len(rest) > 1
            after = [each.upper() if is_child and each is rest[0] else _text(each, "") for each in rest]
            return f"{word} {_text(name, '')}: {' '.join(after)}"
    return word


def _pair(pair: Pair, ahead: str) -> str:
    word = "" if pair.keyword is None else f"{pair.keyword.upper()} "
    return f"{word}{_text(pair.first, ahead)}: {_text(pair.second, ahead)};"


def _clause(clause: Clause, ahead: str) -> list[str]:
    word = clause.keyword.upper()
    rule = _RULES.get(word)
    words = frozenset() if rule is None else rule.kind.words
    parts = [" ".join(_atom(atom, words, ahead) for atom in argument) for argument in clause.arguments]
    line = f"{ahead}{word} {', '.join(parts)};" if parts else f"{ahead}{word};"
    if len(line) <= WIDTH or "\n" in line or not parts:
        return line.split("\n")
    match clause.arguments:
        case ((SyntaxGroup() as group,),):
            first, *rest = _broken(group, ahead, is_too_long=True)
            return [f"{ahead}{word} {first}", *rest[:-1], f"{rest[-1]};"]
    return _filled(f"{ahead}{word}", parts, ahead)


def _filled(begun: str, parts: list[str], ahead: str) -> list[str]:
    """As many as there is room for on each line."""
    lines = [begun]
    for index, part in enumerate(parts):
        text = part + (";" if index == len(parts) - 1 else ",")
        if len(lines[-1]) + 1 + len(text) > WIDTH and lines[-1].strip() and index:
            lines.append(ahead + _CONTINUED + text)
        else:
            lines[-1] += f" {text}"
    return lines


def _broken(rule: SyntaxTerm | SyntaxGroup, ahead: str, *, is_too_long: bool = False) -> list[str]:
    """A group that is too long for a line has a line for each of its parts."""
    text = _rule(rule)
    if isinstance(rule, SyntaxTerm) or not (is_too_long or len(ahead) + len(text) >= WIDTH):
        return [text]
    lines = [f"{rule.operator.lower()}("]
    inner = ahead + _INDENT
    for index, part in enumerate(rule.parts):
        first, *rest = _broken(part, inner)
        lines += [inner + first, *rest]
        lines[-1] += "," if index < len(rule.parts) - 1 else ""
    return [*lines, f"{ahead})"]


def _atom(atom: Atom, words: frozenset[str], ahead: str) -> str:
    if isinstance(atom, SyntaxTerm | SyntaxGroup):
        return _rule(atom)
    return keyword(atom) if atom.type == "WORD" and keyword(atom) in words else _text(atom, ahead)


def _rule(rule: SyntaxTerm | SyntaxGroup) -> str:
    if isinstance(rule, SyntaxTerm):
        return f"{_text(rule.task, '')} -> {rule.state.upper()}"
    return f"{rule.operator.lower()}({', '.join(map(_rule, rule.parts))})"


def _text(token: Token, ahead: str) -> str:
    """A text over several lines keeps its lines; each begins at the same column."""
    return f"\n{ahead}{_CONTINUED}".join(broken_lines(token))

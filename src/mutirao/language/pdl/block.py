"""The clauses of one block, read by a table of which there may be: each at most once, in any order."""

from dataclasses import dataclass, field
from typing import Any

from lark import Token

from mutirao.language.pdl.clause import ALIASES, ATTRIBUTES, OUTERMOST, TASK, ClauseRules
from mutirao.language.pdl.clause import APPLICATION as APPLICATION_CLAUSES
from mutirao.language.pdl.clause import FLOW as FLOW_CLAUSES
from mutirao.language.pdl.finding import Findings, WrongError
from mutirao.language.pdl.place import Spot
from mutirao.language.pdl.syntax import Atom, Block, Clause, Entry, Pair, Place, Tree, last_token
from mutirao.language.pdl.value import read
from mutirao.model.name import suggest

KEYWORDS = frozenset(
    {*OUTERMOST, *FLOW_CLAUSES, *TASK, *APPLICATION_CLAUSES, *ALIASES}.union(ATTRIBUTES, *ATTRIBUTES.values())
)


@dataclass(slots=True)
class Said:
    """What the clauses of a block say, by the fields of the model, and where they say it."""

    values: dict[str, Any] = field(default_factory=dict)
    clauses: dict[str, Clause] = field(default_factory=dict)


@dataclass(slots=True)
class Desk:
    """One file at work: its tree, and where findings about it go."""

    tree: Tree
    findings: Findings

    def place(self, token: Token) -> Place:
        return self.tree.place(token)

    def spot(self, name: Token) -> Spot:
        return Spot(self.tree, name)

    def text(self, first: Token, last: Token) -> str:
        return self.tree.source.text[first.start_pos : last.end_pos]

    def wrong(self, code: str, message: str, at: Token) -> None:
        self.findings.add(code, message, self.place(at))

    def warn(self, code: str, message: str, at: Token) -> None:
        self.findings.warn(code, message, self.place(at))

    def note(self, error: WrongError) -> None:
        self.wrong(error.code, error.message, error.at)

    def said(self, block: Block, rules: ClauseRules) -> Said:
        """All that its clauses say. What is wrong is noted, and left out."""
        said = Said()
        for entry in block.entries:
            if isinstance(entry, Clause):
                self.read_clause(said, block, entry, rules)
            else:
                self.misplaced(entry, block, rules)
        return said

    def read_clause(self, said: Said, block: Block, clause: Clause, rules: ClauseRules) -> None:
        name = clause.keyword.upper()
        name = name if name in rules else ALIASES.get(name, name)
        if name not in rules:
            self.misplaced(clause, block, rules)
            return
        rule = rules[name]
        if rule.field in said.clauses:
            first = said.clauses[rule.field].keyword.line
            self.wrong("pdl_syntax", f"{name} stands here twice; the first is in line {first}", clause.keyword)
            return
        said.clauses[rule.field] = clause
        try:
            _refuse_missing_semicolon(clause)
            said.values[rule.field] = read(rule.kind, clause)
        except WrongError as error:
            self.note(error)

    def misplaced(self, entry: Entry, block: Block | None, known: ClauseRules | tuple[str, ...]) -> None:
        word = entry.start.upper()
        inside = "at the outermost level" if block is None else f"in {block.keyword.upper()}"
        if isinstance(entry, Pair) and entry.keyword is None:
            if word in known:
                self.wrong("pdl_syntax", f"{word} takes no colon: write {word} {entry.second};", entry.start)
            else:
                self.wrong("pdl_syntax", f"a pair of names stands in RELATIVE_ORDER, not {inside}", entry.start)
        elif word in KEYWORDS:
            hint = '; is a "}" missing before it?' if isinstance(entry, Block) and block is not None else ""
            self.wrong("pdl_syntax", f"{word} has no place {inside}{hint or suggest(word, known)}", entry.start)
        else:
            self.wrong("pdl_syntax", f'there is no "{entry.start}" {inside}{suggest(word, known)}', entry.start)


def _refuse_missing_semicolon(clause: Clause) -> None:
    """A keyword that begins a line, in the middle of a clause, was meant to begin a clause."""
    for argument in clause.arguments:
        before: Atom = clause.keyword if argument is clause.arguments[0] else argument[0]
        for atom in argument:
            is_keyword = isinstance(atom, Token) and atom.type == "WORD" and atom.upper() in KEYWORDS
            is_alone = len(argument) == 1
            if is_keyword and not is_alone and (atom.line or 0) > (last_token(before).end_line or 0):  # type: ignore[union-attr]
                raise WrongError("pdl_syntax", f'";" is missing here, before {atom}', _end_of(last_token(before)))
            before = atom


def _end_of(token: Token) -> Token:
    """A place right behind a word."""
    return Token("SEMICOLON", ";", line=token.end_line, column=token.end_column)

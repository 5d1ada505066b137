"""What is wrong with a file, finding by finding: a line with the place, the source's own line, and a caret below it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lark import Token

from mutirao.errors import FlowError
from mutirao.language.pdl.syntax import Place
from mutirao.model.name import suggest

MOST_FINDINGS = 20
_SHOWN_COLUMNS = 100


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    message: str
    place: Place
    is_warning: bool = False

    def __str__(self) -> str:
        kind = "warning: " if self.is_warning else ""
        at = self.place
        return _printable(f"{at.source.name}:{at.line}:{at.column}: {kind}{self.code}: {self.message}")

    def shown(self) -> str:
        """With the line that it is about, and a caret."""
        lines = self.place.source.text.split("\n")
        if self.place.line > len(lines):
            return str(self)
        left = max(self.place.column - _SHOWN_COLUMNS, 0)  # what is far to the right comes into sight
        line = _printable(lines[self.place.line - 1].rstrip()[left : left + _SHOWN_COLUMNS + self.place.width])
        ahead = "".join("\t" if each == "\t" else " " for each in line[: self.place.column - 1 - left])
        caret = "^" * max(min(self.place.width, len(line) - len(ahead)), 1)
        return f"{self}\n    {line}\n    {ahead}{caret}"


class PdlError(FlowError):
    """A text is refused, for one reason or for several. The code is that of the first."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        more = f" (and {len(self.findings) - 1} more)" if len(self.findings) > 1 else ""
        at = first.place
        super().__init__(first.code, f"{at.source.name}:{at.line}:{at.column}: {first.message}{more}")

    def __reduce__(self) -> tuple[type["PdlError"], tuple[tuple[Finding, ...]]]:
        return type(self), (self.findings,)

    def shown(self) -> str:
        return "\n".join(each.shown() for each in self.findings)


@dataclass(slots=True)
class Findings:
    """Collects them; beyond twenty, errors are only counted."""

    found: list[Finding] = field(default_factory=list)

    def add(self, code: str, message: str, place: Place) -> None:
        self.found.append(Finding(code, message, place))

    def warn(self, code: str, message: str, place: Place) -> None:
        self.found.append(Finding(code, message, place, is_warning=True))

    def suggest(self, word: str, known: Iterable[str]) -> str:
        """The nearest known word, as long as there is a chance that somebody reads it."""
        return suggest(word, known) if len(self.found) < 10 * MOST_FINDINGS else ""

    @property
    def errors(self) -> list[Finding]:
        return [each for each in _in_order(self.found) if not each.is_warning][:MOST_FINDINGS]

    @property
    def warnings(self) -> list[Finding]:
        return [each for each in _in_order(self.found) if each.is_warning][:MOST_FINDINGS]

    @property
    def error_count(self) -> int:
        return sum(not each.is_warning for each in self.found)

    def refuse(self) -> None:
        if self.errors:
            raise PdlError(self.errors)


def _printable(text: str) -> str:
    """What would steer a terminal is not sent to one."""
    return "".join(each if each.isprintable() or each == "\t" else "\N{REPLACEMENT CHARACTER}" for each in text)


def _in_order(found: list[Finding]) -> list[Finding]:
    """By file, as they were given, and by line."""
    files = list(dict.fromkeys(each.place.source.name for each in found))
    unique = dict.fromkeys(found)
    return sorted(unique, key=lambda each: (files.index(each.place.source.name), each.place.line, each.place.column))


class WrongError(Exception):
    """What is wrong at a word: whoever knows the file makes a finding of it."""

    def __init__(self, code: str, message: str, at: Token) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at

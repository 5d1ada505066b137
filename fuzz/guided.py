"""Our Python under atheris: what must hold of every text, and the process that tries them.

A text is refused with a code and a place, or it is read; and what was read is written and read again as the same.
Time and memory are watched by libFuzzer. `python -m fuzz.guided TARGET …` is one such process: supervise.py starts it.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["mutirao", "lark.lexer", "lark.parsers", "fuzz.planted"]):
    from fuzz.planted import trip
    from mutirao.errors import FlowError, MutiraoError
    from mutirao.language.pdl import Bundle, Finding, PdlError, Source, examine, format_text, to_pdl
    from mutirao.language.pdl.build import Reading
    from mutirao.language.pdl.place import without_refused
    from mutirao.model import from_document, to_document
    from mutirao.model.check import check_condition
    from mutirao.model.dependency import Term, dependency
    from mutirao.model.document import decode_document, encode_document
    from mutirao.model.query import read_expression

from fuzz.target import Broken
from fuzz.text import EXPRESSION_WORDS, PDL_WORDS, word_mutator

_ATTRIBUTES = ("a", "b", "city")


def holds(claim: object, what: str) -> None:
    if not claim:
        raise Broken(what)


# -------------------------------------------------------------------------------------------------- PDL


def try_pdl(text: str) -> None:
    try:
        reading = examine([Source("x", text)])
    except PdlError as error:
        _check_refusal(error, text)
        return
    for finding in reading.findings.found:
        _check_finding(finding, text)
    _check_places(reading, text)
    _check_format(text)
    if not reading.findings.errors:
        _check_round_trip(reading.bundle)


def _check_refusal(error: PdlError, text: str) -> None:
    holds(error.code and error.findings, "a refusal has a code and its findings")
    for finding in error.findings:
        _check_finding(finding, text)


def _check_finding(finding: Finding, text: str) -> None:
    lines = text.split("\n")
    at = finding.place
    holds(finding.code and finding.message, "a finding has a code and a message")
    holds(1 <= at.line <= len(lines), f"{finding} is in no line of the text")
    holds(1 <= at.column <= len(lines[at.line - 1]) + 1, f"{finding} is in no column of its line")
    holds(finding.shown(), "a finding can be shown")


def _check_places(reading: Reading, text: str) -> None:
    """What an engine would refuse of it has its place in the text."""
    for flow in reading.bundle.flows:
        parts = [f'condition of task "{task.name}"' for task in flow.tasks if task.when]
        for part in (*parts, *(["final condition"] if flow.final else [])):
            message = f'flow "{flow.name}": {part}, character 3: a word'
            error = FlowError("condition_refused", message)
            before = len(reading.findings.found)
            reading.note(error)
            _check_finding(reading.findings.found.pop(before), text)
            without_refused(reading.bundle, message)


def _check_format(text: str) -> None:
    try:
        once = format_text(Source("x", text))
    except PdlError:
        return
    holds(format_text(Source("x", once)) == once, "what is formatted is not changed by formatting it")


def _check_round_trip(bundle: Bundle) -> None:
    printed = to_pdl(bundle)
    again = examine([Source("printed", printed)])
    holds(not again.findings.errors, f"what is printed can be read: {[str(each) for each in again.findings.errors]}")
    holds(again.bundle == bundle, "what is printed means the same")


# -------------------------------------------------------------------------------------------------- conditions


def try_condition(text: str) -> None:
    """Our part of what becomes SQL: conditions, expressions of queries, dependencies, and the document they come in."""
    for check in (_check_condition, _check_expression, _check_dependency, _check_document):
        try:
            check(text)
        except MutiraoError as error:
            holds(error.code and error.message, "a refusal has a code and a message")


def _check_condition(text: str) -> None:
    check_condition("here", "when", text)
    text.encode()  # what is let through can be sent to the server


def _check_expression(text: str) -> None:
    statement = read_expression("here", text, _ATTRIBUTES)
    holds(set(statement.parameters) <= set(_ATTRIBUTES), "only attributes are parameters")
    for number in range(1, len(statement.parameters) + 1):
        holds(f"${number}" in statement.text, "every parameter has its place")


def _check_dependency(text: str) -> None:
    term = dependency(text)
    holds(isinstance(term, Term), "a text is a term")
    holds(dependency(term) is term, "what is one already stays so")


def _check_document(text: str) -> None:
    if not text.lstrip().startswith("{"):
        return
    made = decode_document(text)
    holds(decode_document(encode_document(made)) == made, "a document is read again as the same")
    holds(from_document(to_document(made)) == made, "and so is a dictionary")


# -------------------------------------------------------------------------------------------------- the process


@dataclass(frozen=True, slots=True)
class Guided:
    run: Callable[[str], None]
    words: tuple[str, ...]


GUIDED = {"pdl": Guided(try_pdl, PDL_WORDS), "condition": Guided(try_condition, EXPRESSION_WORDS)}


def run_bytes(guided: Guided, data: bytes, *, planted: bool = False) -> None:
    text = data.decode("utf-8", "replace")
    if planted:
        trip(text)
    guided.run(text)


def main(words: list[str]) -> None:
    """Words: target, whether with a planted mistake, and then libFuzzer's own."""
    name, planted, *rest = words
    guided = GUIDED[name]
    atheris.Setup(
        [sys.argv[0], *rest],
        lambda data: run_bytes(guided, data, planted=json.loads(planted)),
        custom_mutator=word_mutator(guided.words, _mutate_bytes),
    )
    atheris.Fuzz()


def _mutate_bytes(data: bytes, max_size: int) -> bytes:
    """Looked up when it is called: until Fuzz() has begun, another function has that name."""
    changed: bytes = atheris.Mutate(data, max_size)
    return changed


def run_again(name: str, path: Path) -> None:
    run_bytes(GUIDED[name], path.read_bytes())


if __name__ == "__main__":
    main(sys.argv[1:])

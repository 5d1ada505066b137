"""The process definition language: text to model, and back.

`parser` makes a `syntax` tree of a text by grammar.lark; `build`, with `flow`, `task` and `attribute`, makes the model of it
by the tables in `clause` and `value`; `check` says what is wrong with it as a whole; `printer` is the way back, and `format`
puts a text into the one layout. What is wrong are `finding`s. docs/pdl.md is the language's reference. Pure: no I/O.
"""

from collections.abc import Iterable

from mutirao.language.pdl.build import Reading, build
from mutirao.language.pdl.check import check, missing_classes, missing_roles, with_creator
from mutirao.language.pdl.finding import Finding, Findings, PdlError
from mutirao.language.pdl.format import format_text
from mutirao.language.pdl.parser import MAX_BYTES, check_size, parse
from mutirao.language.pdl.printer import to_pdl
from mutirao.language.pdl.syntax import Place, Source
from mutirao.model import Bundle, Inventory

__all__ = [
    "MAX_BYTES",
    "Bundle",
    "Finding",
    "Findings",
    "PdlError",
    "Place",
    "Reading",
    "Source",
    "check_size",
    "examine",
    "format_text",
    "missing_classes",
    "missing_roles",
    "parse",
    "read_pdl",
    "to_pdl",
    "with_creator",
]


def examine(sources: Iterable[Source], known: Inventory | None = None) -> Reading:
    """All that is in the texts, and all that is wrong with them. They are read together: what one defines, all know."""
    findings = Findings()
    trees = []
    for source in sources:
        try:
            trees.append(parse(source))
        except PdlError as error:
            findings.found += error.findings
    reading = build(trees, known, findings)
    check(reading, known)
    return reading


def read_pdl(text: str, *, name: str = "pdl", known: Inventory | None = None) -> Bundle:
    """What a text defines; raises `PdlError` with all that is wrong with it."""
    reading = examine([Source(name, text)], known)
    reading.findings.refuse()
    return reading.bundle

"""Whatever the model can say, PDL can say: it comes back the same. And layout is nothing but layout."""

import re
from contextlib import suppress

import pytest
from flow_strategies import bundles, patient
from hypothesis import given, settings
from hypothesis import strategies as st

from mutirao.errors import FlowError
from mutirao.language.pdl import Findings, Source, examine, format_text, parse, to_pdl
from mutirao.language.pdl.build import build
from mutirao.model import Bundle

WORDS = (
    "WORKFLOW", "TASK", "Book", "Booking", "FLOW", "DEPENDS", "WHEN", "and", "or", "->", "→", "SUCCEEDED", "IN_CONTEXT", "ALL",
    "LIMIT", "5", "-1.5e3", "AT_ONCE", "PER", "DEADLINE", "HOURS", "POLICY", "SAME_AS", "FILE", "QUERY", "JSON", "VALUE", '"text"',
    '"a\n  b"', '"\\q"', '"', "{", "}", "(", ")", ";", ":", ",", "# note\n", "// note\n", "/* note */", "/* two\n lines */", "/*", "\n", "\n\n",
    "WORKFLOW_DEFINITIONS", "RELATIVE_ORDER", "APPLICATION", "@", "\x00", "é",
)  # fmt: skip
soup = st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=40).map(" ".join)

comments = st.sampled_from(["", "", "", "", "# note\n", "// note\n", "/* note */", "\n/* two\n     lines */"])
spaces = st.sampled_from([" ", "\n", "\n\n\n", "\t"])
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[{}():;,]|->|[^\s{}():;,"]+')


def meaning(text: str) -> Bundle:
    """What it defines, whether or not it could ever run."""
    findings = Findings()
    reading = build([parse(Source("x", text))], None, findings)
    assert not findings.errors, "\n".join(each.shown() for each in findings.errors)
    return reading.bundle


@patient
@given(bundles())
def test_a_bundle_survives_as_pdl(bundle: Bundle) -> None:
    assert meaning(to_pdl(bundle)) == bundle


@patient
@given(bundles())
def test_what_is_printed_is_formatted(bundle: Bundle) -> None:
    text = to_pdl(bundle)
    assert format_text(Source("x", text)) == text


@settings(patient, max_examples=30)
@given(bundles(), st.data())
def test_the_formatter_keeps_meaning_and_comments_and_changes_nothing_twice(
    bundle: Bundle, data: st.DataObject
) -> None:
    words = _WORD.findall(to_pdl(bundle))
    scattered = "".join(f"{word} {data.draw(comments)}{data.draw(spaces)}" for word in words)
    once = format_text(Source("x", scattered))
    assert format_text(Source("x", once)) == once
    assert meaning(once) == bundle
    kept, given_ = (parse(Source("x", text)).comments for text in (once, scattered))
    assert [each.split() for each in kept] == [each.split() for each in given_]


@given(soup)
@settings(max_examples=300)
def test_a_soup_of_words_is_refused_or_read(text: str) -> None:
    try:
        reading = examine([Source("x", text)])
        once = format_text(Source("x", text))
    except FlowError:
        return
    assert format_text(Source("x", once)) == once
    for finding in reading.findings.found:
        assert finding.shown()


@given(st.text())
def test_garbage_is_refused_or_read(text: str) -> None:
    with suppress(FlowError):
        once = format_text(Source("x", text))
        assert format_text(Source("x", once)) == once


@pytest.mark.parametrize("name", ["none", "critical"])
def test_a_compensation_that_is_called_like_a_word_of_the_clause_stays_a_task(name: str) -> None:
    text = f'WORKFLOW Trip {{\n    TASK book {{ DEPENDS; COMPENSATION "{name}"; }}\n    TASK {name} {{ }}\n}}\n'
    bundle = meaning(text)
    assert bundle.flows[0].tasks[0].recovery.compensation == name
    assert meaning(to_pdl(bundle)) == bundle

"""All texts of the pages stand in one catalogue, in every language, with the same gaps to fill."""

import re

import pytest
from texts import forms, in_code, translated, unused, wanting

from mutirao.server.page.catalogue import ENGLISH, LANGUAGES, best_of, customs_of

OTHERS = [language for language in LANGUAGES if language != ENGLISH]
_GAP = re.compile(r"%\(\w+\)s|\{\w+\}")


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_is_translated(language: str) -> None:
    assert list(wanting(language)) == [], "run `python tests/web/texts.py`, and translate what it has added"


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_is_translated_that_nobody_shows(language: str) -> None:
    assert list(unused(language)) == [], "`python tests/web/texts.py` takes them out"


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_gaps_of_its_text(language: str) -> None:
    for message in translated(language):
        texts = forms(message.id)
        said = forms(message.string)
        for text in said if message.id else ():
            # One form of a plural may leave out its number: "one comment".
            assert set(_GAP.findall(text)) in [set(_GAP.findall(each)) for each in texts], message.id


def test_texts_are_found_in_templates_and_in_code() -> None:
    texts = in_code()
    assert texts.get("My work") is not None  # of shell.py, by marked()
    assert texts.get("Skip to the content") is not None  # of base.html
    assert texts.get("now") is not None  # of reader.py, by say()


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("pt-BR,pt;q=0.9,en;q=0.8", "pt-BR"),
        ("pt", "pt-BR"),
        ("en-US,pt;q=0.5", "en"),
        ("pt-BR,en", "pt-BR"),
        ("de, pt;q=0.1, en;q=0.2", "en"),
        ("de", "en"),
        ("", "en"),
        (None, "en"),
        ("pt;q=wrong", "en"),
        (";;;,,,q=", "en"),
    ],
)
def test_the_language_is_the_one_that_the_browser_likes_best(accepted: str | None, language: str) -> None:
    assert best_of(accepted) == language


@pytest.mark.parametrize(
    ("language", "accepted", "customs"),
    [
        ("en", "en-GB,en;q=0.9", "en_GB"),
        ("en", "pt-BR,en-IE;q=0.5", "en_IE"),
        ("pt-BR", "en-GB", "pt_BR"),
        ("en", "en-wrong wrong,en", "en"),
        ("en", None, "en"),
    ],
)
def test_dates_are_written_as_is_usual_where_one_is(language: str, accepted: str | None, customs: str) -> None:
    assert str(customs_of(language, accepted)) == customs

"""All texts of the pages, in all languages: the English ones stand where they are used, the others in locale/*.po.

A test compares them: no text without its translation, and none that nobody uses.
"""

import gettext
import io
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

ENGLISH = "en"
LANGUAGES = {ENGLISH: "English", "pt-BR": "Português (Brasil)"}
"""Each by its own name."""

FOLDER = Path(__file__).parent / "locale"


@cache
def translations(language: str) -> gettext.NullTranslations:
    """What gives the texts of a language."""
    if language == ENGLISH:
        return gettext.NullTranslations()
    compiled = io.BytesIO()
    with po_file(language).open("rb") as file:
        write_mo(compiled, read_po(file, locale=language.replace("-", "_")))
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def po_file(language: str) -> Path:
    return FOLDER / f"{language.replace('-', '_')}.po"


def text_in(language: str) -> Callable[[str], str]:
    return translations(language).gettext


def marked(text: str) -> str:
    """A text that is translated where it is shown."""
    return text


def best_of(accepted: str | None) -> str:
    """The language to use for whoever accepts these, as a browser tells: `pt-BR,pt;q=0.9,en;q=0.8`."""
    for name in _liked(accepted):
        for language in LANGUAGES:
            if _base(name) == _base(language):
                return language
    return ENGLISH


def customs_of(language: str, accepted: str | None) -> Locale:
    """How dates and numbers are written where somebody reads a language: English is not written the same everywhere."""
    for name in _liked(accepted):
        if _base(name) == _base(language):
            with suppress(ValueError, UnknownLocaleError):
                return Locale.parse(name, sep="-")
    return Locale.parse(language, sep="-")


def _base(name: str) -> str:
    return name.split("-", maxsplit=1)[0].lower()


def _liked(accepted: str | None) -> list[str]:
    """What was liked best first; of what is liked the same, in its order."""
    wanted: list[tuple[float, str]] = []
    for part in (accepted or "").split(",")[:20]:
        name, _, quality = part.strip().partition(";q=")
        with suppress(ValueError):
            wanted.append((-float(quality or 1), name.strip()))
    return [name for _, name in sorted(wanted, key=lambda each: each[0])]

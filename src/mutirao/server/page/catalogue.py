"""All texts of the pages, in all languages: the English ones stand where they are used, the others in locale/*.po.

A test compares them: no text without its translation, and none that nobody uses.
"""

import gettext
import io
from collections.abc import Callable
from functools import cache
from pathlib import Path

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
    wanted: list[tuple[float, str]] = []
    for part in (accepted or "").split(",")[:20]:
        name, _, quality = part.strip().partition(";q=")
        try:
            wanted.append((-float(quality or 1), name.strip().lower()))
        except ValueError:
            continue
    for _, name in sorted(wanted):
        for language in LANGUAGES:
            if name.split("-")[0] == language.split("-")[0].lower():
                return language
    return ENGLISH

"""The texts of the pages as they are in the code; run by itself, brings them into the catalogues, for somebody to translate."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from mutirao.server.page import catalogue

PAGE = Path(catalogue.__file__).parent
_METHODS = [("**/template/**.html", "jinja2.ext:babel_extract")]
_OPTIONS = {"**/template/**.html": {"trimmed": "true", "silent": "false"}}
_WORDS = {"_": None, "gettext": None, "ngettext": (1, 2)}
_CALLS = ("marked", "say")
_HEADER = """# What the pages say. The texts come from the code: see tests/web/texts.py.
msgid ""
msgstr ""
"Language: {language}\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\\n"

"""
_TRANSLATED = tuple(language for language in catalogue.LANGUAGES if language != catalogue.ENGLISH)


def in_code() -> Catalog:
    """Every text that a page may show."""
    found = Catalog()
    for _file, _line, text, _comments, _context in extract_from_dir(str(PAGE), _METHODS, _OPTIONS, keywords=_WORDS):
        found.add(text)
    for file in PAGE.glob("*.py"):
        for text in _said(file):
            found.add(text)
    return found


def _said(file: Path) -> Iterator[str]:
    """By `marked("…")` and `reader.say("…")`: also within f-strings, where Babel does not look."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(text)), *_]
            ) if name in _CALLS:
                yield text


def translated(language: str) -> Catalog:
    with catalogue.po_file(language).open("rb") as file:
        return read_po(file, locale=language.replace("-", "_"))


def wanting(language: str) -> Iterator[str]:
    """What is not said in a language, or only by a guess."""
    known = translated(language)
    for message in in_code():
        said = known.get(message.id) if message.id else None
        if message.id and (said is None or said.fuzzy or not all(forms(said.string))):
            yield str(message.id)


def unused(language: str) -> Iterator[str]:
    """What is said in a language and nobody shows."""
    texts = in_code()
    yield from (str(message.id) for message in translated(language) if message.id and texts.get(message.id) is None)


def forms(text: Any) -> tuple[str, ...]:
    """Of one text; or of a singular and its plurals."""
    return (text,) if isinstance(text, str) else tuple(text)


def bring() -> None:
    """Add what is wanting, without a translation, and drop what nobody shows."""
    for language in _TRANSLATED:
        known, texts = translated(language), in_code()
        new = Catalog(locale=language.replace("-", "_"))
        for message in sorted((each for each in texts if each.id), key=lambda each: str(each.id).lower()):
            said = known.get(message.id)
            new.add(message.id, said.string if said else None)
        with catalogue.po_file(language).open("wb") as file:
            file.write(_HEADER.format(language=language.replace("-", "_")).encode())
            write_po(file, new, omit_header=True, width=0, no_location=True)


if __name__ == "__main__":
    bring()

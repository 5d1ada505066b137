r"""Texts and names as they stand in a file: quotes, escapes, texts that go over several lines, and CamelCase.

A line break in a text, with the spaces around it, is one space. What a text cannot hold otherwise is written with a
backslash: `\"`, `\\`, `\n`, `\t`, `\r`, `\u0041` and `\U0001F600`.
"""

import re
import sys
import unicodedata

_WORD = re.compile(r"[^\W\d]\w*(?:[.\-]\w+)*")
_BREAK = re.compile(r"[^\S\n]*\n\s*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_PIECE = re.compile(f"{_BREAK.pattern}|{_ESCAPE.pattern}|.", re.DOTALL)
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_NEEDS_ESCAPE = {meant: f"\\{written}" for written, meant in _ESCAPED.items()}
# Before a capital that begins a word: levantarRequisitos, HTTPServer.
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SURROGATES = range(0xD800, 0xE000)
_LAST_OF_FOUR_DIGITS = 0xFFFF


class EscapeError(ValueError):
    """A backslash with something behind it that means nothing."""


def unquote(token: str) -> str:
    """The text that a quoted token stands for; a bare word stands for itself."""
    if not token.startswith('"'):
        return str(token)  # not the token itself, which knows its place
    return _ESCAPE.sub(_meant, _BREAK.sub(" ", token[1:-1]))


def quote(text: str) -> str:
    return '"' + "".join(map(_written, text)) + '"'


def label(name: str) -> str:
    """A name, in quotes only where it needs them."""
    return name if _WORD.fullmatch(name) else quote(name)


def snake_case(name: str) -> str:
    """`LevantarRequisitos` is `levantar_requisitos`: what flows, tasks and attributes are called in the engine."""
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(each for each in plain if not unicodedata.combining(each))
    return re.sub(r"[\s.\-]+", "_", _CAMEL.sub("_", plain)).lower()


def _meant(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] not in "uU" or len(code) == 1:
        if code not in _ESCAPED:
            raise EscapeError(f"\\{code} means nothing; a backslash itself is written \\\\")
        return _ESCAPED[code]
    number = int(code[1:], 16)
    if number > sys.maxunicode or number in _SURROGATES:
        raise EscapeError(f"\\{code} is not a character")
    return chr(number)


def _written(character: str) -> str:
    if character in _NEEDS_ESCAPE:
        return _NEEDS_ESCAPE[character]
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04X}" if number <= _LAST_OF_FOUR_DIGITS else f"\\U{number:08X}"


def offset_of(token: str, character: int) -> int:
    """Where in a token the nth character stands of the text that it stands for; or its end."""
    if not token.startswith('"'):
        return min(character - 1, len(token))
    pieces = _PIECE.finditer(token, 1, len(token) - 1)
    return next((piece.start() for number, piece in enumerate(pieces, 1) if number == character), len(token) - 1)


def broken_lines(token: str) -> list[str]:
    """The lines on which a token stands, without what folds away."""
    return _BREAK.split(token)

"""docs/errors.md lists every code that the program can refuse with, and no other."""

import ast
import re
from pathlib import Path

import mutirao
from mutirao.database.migrate import schema

PACKAGE = Path(mutirao.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
FAMILIES = {"FlowError", "RequestError", "OperatorError", "LeaseLost", "LookTooLong"}

_REGISTERED = re.compile(r"\('([a-z_]+)',\s*'MU\d{3}',")


def codes_in_sql() -> set[str]:
    return set(_REGISTERED.findall(schema().functions.sql))


def codes_in_python() -> set[str]:
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=family), args=[ast.Constant(value=str(code)), *_]) if family in FAMILIES:
                    found.add(code)
    return found


DOCUMENTED = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))


def test_every_refusal_is_documented() -> None:
    assert codes_in_sql() | codes_in_python() <= DOCUMENTED


def test_nothing_is_documented_that_no_code_says() -> None:
    # Some codes are chosen before they are raised, so any text of the program counts.
    said = "".join(file.read_text("utf-8") for file in PACKAGE.rglob("*.py"))
    assert {code for code in DOCUMENTED - codes_in_sql() if f'"{code}"' not in said} == set()

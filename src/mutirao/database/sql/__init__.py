"""The queries that Python sends, read from queries.sql by name."""

from functools import cache
from importlib.resources import files
from typing import LiteralString


@cache
def query(name: str) -> LiteralString:
    """The text of one query. It comes with the program, so it is as good as a literal."""
    return _queries()[name]


@cache
def _queries() -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in files(__package__).joinpath("queries.sql").read_text("utf-8").splitlines():
        if line.startswith("-- ") and ": " in line:
            name = line[3:].partition(":")[0]
            found[name] = ""
        elif name and line.strip():
            found[name] += line + "\n"
    return found

"""The queries that Python sends, read by name from the files in queries. One begins with a line `-- name: what it does`."""

import re
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
    for file in files(__package__).joinpath("queries").iterdir():
        # The first piece is what the file says of itself.
        _, *pieces = re.split(r"(?m)^-- (\w+): .*\n", file.read_text("utf-8"))
        for name, text in zip(pieces[::2], pieces[1::2], strict=True):
            if name in found:
                raise ValueError(f"two queries are called {name}")
            found[name] = text.strip() + "\n"
    return found

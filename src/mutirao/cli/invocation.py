"""How the command is called by whoever reads our words: so that what we advise can be copied and works."""

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from mutirao.database.address import without_password

NAME = "mutirao"


@dataclass(frozen=True)
class Invocation:
    """The program as the shell finds it, and the database if one was named."""

    program: str = NAME
    database: str | None = None

    def __call__(self, words: str) -> str:
        """The whole line for the command `words`."""
        option = "" if self.database is None else f" --database {shlex.quote(self.database)}"
        return f"{self.program} {words}{option}"


def calling(database: str | None) -> Invocation:
    """As this process was called; `database` is what its option --database said."""
    return Invocation(_program(), None if database is None else without_password(database))


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name == NAME:
        return NAME if _is_found(called) else _typed(called)
    if called.parts[-2:] != (NAME, "__main__.py"):
        return NAME  # inside of another program
    python = Path(sys.executable)
    return NAME if _is_found(python.with_name(NAME)) else f"{_typed(python)} -m {NAME}"


def _is_found(script: Path) -> bool:
    """Whether it is what the shell runs for the bare name: there may be another one, or none."""
    found = shutil.which(NAME)
    return found is not None and script.exists() and script.samefile(found)


def _typed(path: Path) -> str:
    """From the current folder where it is in there: `.venv/bin/mutirao`."""
    path = path.absolute()
    if not path.is_relative_to(Path.cwd()):
        return shlex.quote(str(path))
    inside = str(path.relative_to(Path.cwd()))
    return shlex.quote(inside if os.sep in inside else f"./{inside}")

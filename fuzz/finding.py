"""What was found: the input in a file of its own, and beside it what was wrong and how to run it again.

A file's name begins with its target's: `python -m fuzz again FILE` needs no more.
"""

import hashlib
from pathlib import Path

from fuzz.target import FINDINGS, ROOT


def keep(target: str, content: bytes, what: str) -> Path:
    FINDINGS.mkdir(parents=True, exist_ok=True)
    path = FINDINGS / f"{target}-{hashlib.sha256(content).hexdigest()[:16]}"
    path.write_bytes(content)
    explain(path, what)
    return path


def explain(path: Path, what: str) -> None:
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    note = f"{what.strip()}\n\nRun it again: python -m fuzz again {shown}\n"
    path.with_name(f"{path.name}.txt").write_text(note, "utf-8", "replace")


def told(path: Path) -> str:
    """The first line of what was wrong."""
    note = path.with_name(f"{path.name}.txt")
    return note.read_text("utf-8").partition("\n")[0] if note.exists() else ""


def target_of(path: Path) -> str:
    return path.name.partition("-")[0]

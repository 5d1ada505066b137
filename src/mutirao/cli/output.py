"""How results reach the terminal: tables for people, JSON for programs."""

from typing import Any

import msgspec
from rich.console import Console

from mutirao.model.value import ENCODER

console = Console()
"""Results. Anything else that people should see meanwhile belongs on `progress`."""

progress = Console(stderr=True)


def print_json(value: Any) -> None:
    """One JSON document on stdout: dataclasses, dates and decimals included."""
    console.file.write(msgspec.json.format(ENCODER.encode(value), indent=2).decode() + "\n")


def human_size(size: float) -> str:
    """Such as `8.4 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:  # noqa: PLR2004 kilo
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"

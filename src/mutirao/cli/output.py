"""How results reach the terminal: tables for people, JSON for programs."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import Progress

from mutirao.model.value import ENCODER

console = Console()
"""Results. Anything else that people should see meanwhile belongs on `progress`."""

progress = Console(stderr=True)

_SOON = 2.0


def print_json(value: Any) -> None:
    """One JSON document on stdout: dataclasses, dates and decimals included."""
    console.file.write(msgspec.json.format(ENCODER.encode(value), indent=2).decode() + "\n")


@contextmanager
def counting(what: str, total: int | None, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with each number that is done. On a terminal a bar shows them, unless it is over soon."""
    bar = Progress(console=progress, transient=True, disable=quiet or not progress.is_terminal)
    task = bar.add_task(what, total=total)
    timer = asyncio.get_running_loop().call_later(_SOON, bar.start)
    try:
        yield lambda number: bar.advance(task, number)
    finally:
        timer.cancel()
        bar.stop()


def counted(number: int, one: str, many: str | None = None) -> str:
    """Such as `1 job` or `1,204 jobs`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"

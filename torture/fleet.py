"""The processes of one engine, as a user would run them, and the supervisor that starts again what has died.

    mutirao worker torture.work …     several, with right and wrong clocks; some leave the time to clocks
    mutirao server --port …           several, each at a port of its own
    mutirao clock …                   several; one is in the embedded server's folder, and so may start it again, too

A process is known by a descriptor of it, not by its number: nobody is killed who took over the number of a dead one.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torture import skew

# A clock that is wrong has to be so before anything else looks at it.
_ZYGOTE = "from torture.skew import shift_if_wanted; shift_if_wanted(); from torture.zygote import main; main()"
_READY = ("is ready",)
_TAIL = 2000
_REST = 0.3
"""Whoever gave up is not started again at once: what it did not find is still away."""


class Process:
    """Forked by a zygote, so nobody's child here."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._descriptor = os.pidfd_open(number)
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)

    @property
    def is_alive(self) -> bool:
        return not self._poll.poll(0)

    def signal(self, what: signal.Signals) -> None:
        if self.is_alive:
            signal.pidfd_send_signal(self._descriptor, what)

    def forget(self) -> None:
        os.close(self._descriptor)


class Zygote:
    """See `zygote`: here is its other end."""

    def __init__(self, hours: int = 0) -> None:
        environment = {**os.environ, **skew.environment(hours)}
        self._process = subprocess.Popen(  # noqa: S603 ourselves
            [sys.executable, "-c", _ZYGOTE],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def fork(self, program: str, words: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
        assert self._process.stdin is not None  # noqa: S101 asked for above
        assert self._process.stdout is not None  # noqa: S101
        order = {"program": program, "words": list(words), "environment": dict(environment), "log": str(log)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Process(int(self._process.stdout.readline()))

    def close(self) -> None:
        """With it go all that it has forked."""
        assert self._process.stdin is not None  # noqa: S101 asked for above
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@dataclass(frozen=True)
class Post:
    """What is to run. `hours`: how wrong its clock is."""

    role: str
    name: str
    program: str
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    hours: int = 0


@dataclass
class Member:
    """A post, and who fills it now: the nth."""

    post: Post
    log: Path
    process: Process
    generation: int = 1
    started_at: float = field(default_factory=time.time)
    was_killed: bool = False

    def is_ready(self) -> bool:
        """Whether it has said so."""
        return any(word in self.said() for word in _READY)

    def said(self) -> str:
        try:
            return self.log.read_text("utf-8", errors="replace")[-_TAIL:]
        except FileNotFoundError:
            return ""


class Fleet:
    """All processes. `ended_ready` are those that ended by themselves though they had been at work: none should."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._zygotes: dict[int, Zygote] = {}
        self.members: list[Member] = []
        self.restarts: Counter[str] = Counter()
        self.gave_up: Counter[str] = Counter()
        self.ended_ready: list[str] = []

    def start(self, post: Post) -> Member:
        member = Member(post, *self._launch(post, 1))
        self.members.append(member)
        return member

    def of(self, role: str) -> list[Member]:
        return [each for each in self.members if each.post.role == role]

    def supervise(self) -> None:
        """Start again whatever has ended: whether it was killed, or did not find its database and gave up."""
        for member in self.members:
            if not member.process.is_alive and time.time() - member.started_at > _REST:
                self._note_end(member)
                member.process.forget()
                member.log.unlink(missing_ok=True)
                member.generation += 1
                member.log, member.process = self._launch(member.post, member.generation)
                member.started_at, member.was_killed = time.time(), False
                self.restarts[member.post.role] += 1

    def _note_end(self, member: Member) -> None:
        if member.was_killed:
            return
        said = " ".join(member.said().split())[-300:]
        if member.is_ready():
            self.ended_ready.append(f"{member.post.name}: {said}")
        else:
            self.gave_up[member.post.role] += 1

    def _launch(self, post: Post, generation: int) -> tuple[Path, Process]:
        name = f"{post.name}.{generation}"
        log = self._folder / f"{name}.log"
        fill = {"{name}": name, "{folder}": str(self._folder)}
        words = [_filled(word, fill) for word in post.words]
        environment = {key: _filled(value, fill) for key, value in post.environment.items()}
        return log, self._zygote(post.hours).fork(post.program, words, environment, log)

    def _zygote(self, hours: int) -> Zygote:
        if hours not in self._zygotes:
            self._zygotes[hours] = Zygote(hours)
        return self._zygotes[hours]

    def stop(self, within: float) -> list[str]:
        """Let all end as users do, by SIGTERM; answers those that did not end in time."""
        for member in self.members:
            member.process.signal(signal.SIGCONT)
            member.process.signal(signal.SIGTERM)
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and any(each.process.is_alive for each in self.members):
            time.sleep(0.05)
        late = [each for each in self.members if each.process.is_alive]
        for member in late:
            member.process.signal(signal.SIGKILL)
        self.members = []
        return [f"{each.post.name}: {' '.join(each.said().split())[-200:]}" for each in late]

    def close(self) -> None:
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes = {}


def _filled(text: str, fill: Mapping[str, str]) -> str:
    for word, value in fill.items():
        text = text.replace(word, value)
    return text

"""What else the machine did during a run: a figure taken on a busy machine says so.

Read from /proc; where there is none, nothing is known, and nothing is flagged.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")

# A run is flagged when more than this share of all processor time went elsewhere: to other processes, or, on a virtual
# machine, to other machines.
_MUCH_OTHER = 0.10
_MUCH_STOLEN = 0.03


@dataclass(frozen=True)
class Noise:
    """Shares are of all processor time of the machine during the run."""

    load_before: float
    ours: float
    others: float
    stolen: float

    @property
    def is_high(self) -> bool:
        return self.others > _MUCH_OTHER or self.stolen > _MUCH_STOLEN


@dataclass(frozen=True)
class _Ticks:
    total: int
    busy: int
    stolen: int
    ours: int


class NoiseMeter:
    """Make it before a run, read it after. `roots` are the processes that, with their children, are not noise."""

    def __init__(self, roots: tuple[int, ...]) -> None:
        self._roots = roots
        self._load = os.getloadavg()[0]
        self._before = self._now()

    def read(self) -> Noise | None:
        after, before = self._now(), self._before
        if after is None or before is None or after.total == before.total:
            return None
        total = after.total - before.total
        ours = after.ours - before.ours
        others = max(0, after.busy - before.busy - ours)
        return Noise(self._load, ours / total, others / total, (after.stolen - before.stolen) / total)

    def _now(self) -> _Ticks | None:
        try:
            words = (_PROC / "stat").read_text().partition("\n")[0].split()[1:9]
        except OSError:
            return None
        user, nice, system, idle, waiting, interrupts, soft, stolen = map(int, words)
        busy = user + nice + system + interrupts + soft
        # What a process took before it ended is in its parent's account; so this never goes down.
        children = _children()
        ours = sum(_ticks(process) for root in self._roots for process in _tree(root, children))
        return _Ticks(busy + idle + waiting + stolen, busy, stolen, ours)


def _tree(root: int, children: dict[int, list[int]]) -> Iterator[int]:
    yield root
    for child in children.get(root, ()):
        yield from _tree(child, children)


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for each in _PROC.iterdir():
        if each.name.isdigit() and (fields := _fields(int(each.name))):
            found.setdefault(int(fields[1]), []).append(int(each.name))
    return found


def _ticks(process: int) -> int:
    return sum(map(int, _fields(process)[11:15]))


def _fields(process: int) -> list[str]:
    """What /proc/…/stat says behind the name, which may itself hold blanks and brackets; nothing if it has ended."""
    try:
        return (_PROC / str(process) / "stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []

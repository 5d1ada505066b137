"""The timeline of an instance: a lane for each task, and in it a bar for each of its jobs, from when it could begin to its end.

It is a picture made here, in a box 1000 wide, with the names of the tasks left of it; the same is told by a table. What does not fit is left off at its beginning.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from babel.units import format_unit

from mutirao.database.record import JobRecord, TraceRow
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader

WIDTH = 1000
_LANE = 30
_HEAD = 26
_LEAST = 4
_MOST_LANES = 40
_TICKS = 5
_ENDS = {
    "finish": "succeeded",
    "skip": "succeeded",
    "compensate": "compensated",
    "fail": "failed",
    "drop": "aborted",
    "removed": "aborted",
}
_TAKEN = frozenset({"select", "lock"})
_UNITS = {
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
_STEPS = (
    *((each, "millisecond") for each in (1, 5, 20, 100, 500)),
    *((each, "second") for each in (1, 5, 15, 30)),
    *((each, "minute") for each in (1, 5, 15, 30)),
    *((each, "hour") for each in (1, 3, 6, 12)),
    *((each, "day") for each in (1, 2, 7, 14, 28, 91, 182, 365, 1825)),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A job: since when it could be done, when somebody began, and when it ended; in the picture, from x to x + width."""

    task: str
    state: str
    since: datetime
    until: datetime | None
    length: timedelta
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Lane:
    label: str
    y: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, str], ...]
    height: int
    is_cut: bool

    @property
    def states(self) -> set[str]:
        return {bar.state for lane in self.lanes for bar in lane.bars}


@dataclass(frozen=True, slots=True)
class _Span:
    first: datetime
    end: datetime

    def bar(self, task: str, state: str, since: datetime, until: datetime | None) -> Bar:
        since = max(since, self.first)
        length = max((until or self.end) - since, timedelta())
        width = min(WIDTH, max(_LEAST, self._part(length)))
        x = min(self._part(since - self.first), WIDTH - width)
        return Bar(label_of(task), state, since, until, length, round(x, 1), round(width, 1))

    def _part(self, length: timedelta) -> float:
        return WIDTH * (length / (self.end - self.first))


def timeline(
    reader: Reader,
    rows: Sequence[TraceRow],
    jobs: Iterable[JobRecord],
    span: tuple[datetime, datetime],
    *,
    is_cut: bool,
) -> Timeline | None:
    """Of the rows of a trace, the oldest first, and of the jobs under way."""
    first = rows[0].at if is_cut and rows else span[0]
    drawn = _Span(first, max(span[1], first + timedelta(milliseconds=1)))
    taken = {row.job: row.at for row in rows if row.kind in _TAKEN}
    by_task: dict[str, list[Bar]] = {}
    for task, state, since, until in (*_ended(rows, first, taken), *_open(jobs, taken)):
        by_task.setdefault(task, []).append(drawn.bar(task, state, since, until))
    if not by_task:
        return None
    names = list(by_task)[:_MOST_LANES]
    lanes = tuple(Lane(label_of(name), _HEAD + _LANE * place, tuple(by_task[name])) for place, name in enumerate(names))
    is_short = is_cut or len(by_task) > _MOST_LANES
    return Timeline(lanes, _ticks(reader, drawn), _HEAD + _LANE * len(lanes), is_short)


_Piece = tuple[str, str, datetime, datetime | None]
_Taken = Mapping[int | None, datetime]


def _ended(rows: Sequence[TraceRow], first: datetime, taken: _Taken) -> Iterator[_Piece]:
    """A job could begin when the row was written that fired it."""
    at = {row.id: row.at for row in rows}
    for row in rows:
        if row.kind in _ENDS and row.task and not row.task.startswith("_"):
            yield from _pieces((row.task, _ENDS[row.kind], at.get(row.cause or 0, first), row.at), taken.get(row.job))


def _open(jobs: Iterable[JobRecord], taken: _Taken) -> Iterator[_Piece]:
    """One that has failed keeps its place, but its row says when it ended."""
    for job in jobs:
        if job.status != "failed" and not job.task.startswith("_"):
            begun = taken.get(job.id) if job.status == "running" else None
            yield from _pieces((job.task, _under_way(job.status), job.created_at, None), begun)


def _pieces(whole: _Piece, begun: datetime | None) -> Iterator[_Piece]:
    """Until a person took it, it was only ready."""
    task, state, since, until = whole
    if begun is not None and begun > since:
        yield task, "ready", since, begun
        since = begun
    yield task, state, since, until


def _under_way(status: str) -> str:
    if status in ("running", "synchronizing"):
        return status
    return "running" if status == "parked" else "ready"


def _ticks(reader: Reader, drawn: _Span) -> tuple[tuple[float, str], ...]:
    """At round distances from the beginning, seconds or weeks, whatever there is room for.

    All are told in one unit: of 90 and 120 seconds, both may be called two minutes.
    """
    length = drawn.end - drawn.first
    every, unit = next((each for each in _STEPS if length / (each[0] * _UNITS[each[1]]) <= _TICKS + 1), _STEPS[-1])
    step = every * _UNITS[unit]
    return tuple(
        (
            round(WIDTH * (step * number / length), 1),
            "+" + format_unit(every * number, unit, "short", locale=reader.locale),
        )
        for number in range(1, int(length / step) + 1)
    )

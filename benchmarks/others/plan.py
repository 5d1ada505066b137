"""Who takes part, what is measured of each, and what is asked of us beside them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.measure import Run
from benchmarks.others.contender import Contender
from benchmarks.others.engine import Absurd, Dbos, PgQueuer, Procrastinate
from benchmarks.others.house import Mutirao, Yardstick
from benchmarks.others.restate import Restate

OURS = "mutirao"
PLACES = ("empty", "past")
MEASURES = ("rate_1", "rate_2", "latency")


@dataclass(frozen=True)
class Size:
    instances: int = 2_000
    rounds: int = 100
    past: int = 100_000
    runs: int = 3


@dataclass
class Score:
    """All that was found out about one contender. Keys of `runs` are a place and a measure."""

    contender: Contender
    version: str = ""
    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def value(self, place: str, measure: str) -> float | None:
        found = self.runs.get((place, measure.removesuffix("_p99")), [])
        if measure.endswith("_p99"):
            return median(run.details["p99"] for run in found) if found else None
        return median(run.value for run in found) if found else None

    def steps_per_commit(self) -> float | None:
        found = [run.details["steps_per_commit"] for run in self._all() if "steps_per_commit" in run.details]
        return median(found) if found else None

    @property
    def is_noisy(self) -> bool:
        return any(run.noise and run.noise.is_high for run in self._all())

    def _all(self) -> Iterable[Run]:
        return (run for runs in self.runs.values() for run in runs)


@dataclass(frozen=True)
class Goal:
    """Ours against the best of the other engines; a rate may be so many times theirs, a time may be no longer."""

    title: str
    ours: float
    best: float
    best_title: str
    goal: float
    is_rate: bool

    @property
    def ratio(self) -> float:
        return self.ours / self.best

    @property
    def is_met(self) -> bool:
        return self.ratio >= self.goal if self.is_rate else self.ratio <= self.goal


_ASKED = (
    ("steps/s with one worker", "rate_1", 8.0),
    ("steps/s with two workers", "rate_2", 10.0),
    ("p50 of an instance alone", "latency", 1.0),
    ("p99 of an instance alone", "latency_p99", 1.0),
)


def contenders() -> list[Contender]:
    return [Mutirao(), Dbos(), Absurd(), PgQueuer(), Procrastinate(), Restate(), Yardstick(1), Yardstick(50)]


def goals(scores: Sequence[Score]) -> list[Goal]:
    return [found for place in PLACES for asked in _ASKED if (found := _goal(scores, place, *asked))]


def _goal(scores: Sequence[Score], place: str, title: str, measure: str, goal: float) -> Goal | None:
    is_rate = measure.startswith("rate")
    ours = next((each.value(place, measure) for each in scores if each.contender.name == OURS), None)
    others = [
        (value, each.contender.title)
        for each in scores
        if each.contender.is_engine and each.contender.name != OURS and (value := each.value(place, measure))
    ]
    if ours is None or not others:
        return None
    best, best_title = max(others) if is_rate else min(others)
    return Goal(title + (", with a past" if place == "past" else ""), ours, best, best_title, goal, is_rate)

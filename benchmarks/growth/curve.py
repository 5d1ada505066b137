"""A curve: some figures at every size of one thing, each measured several times."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.measure import Run
from benchmarks.noise import Noise

# What a sample may have, and what it is in.
UNITS = {
    "rate": "steps/s",
    "p50": "ms",
    "p99": "ms",
    "idle_cpu": "% of all processors, idle",
    "connections": "connections",
    "apply_seconds": "s to apply",
}


@dataclass(frozen=True)
class Sample:
    """What one size gave once: some of `UNITS`."""

    figures: dict[str, float]
    noises: tuple[Noise | None, ...] = ()

    @property
    def is_noisy(self) -> bool:
        return any(noise is not None and noise.is_high for noise in self.noises)


def sample(rate: Run | None = None, latency: Run | None = None, **others: float) -> Sample:
    figures = dict(others)
    if rate is not None:
        figures["rate"] = rate.value
    if latency is not None:
        figures |= {"p50": latency.value, "p99": latency.details["p99"]}
    return Sample(figures, tuple(run.noise for run in (rate, latency) if run is not None))


@dataclass(frozen=True)
class Goal:
    """Throughput at the largest size, as a share of that at the smallest, or of the best."""

    share: float
    of: str = "smallest"


@dataclass
class Curve:
    """`prepare` is called once before, `measure` for each size in turns, `clear` at the end."""

    name: str
    title: str
    axis: str
    sizes: Sequence[int]
    measure: Callable[[int], Sample]
    goal: Goal | None = None
    prepare: Callable[[], None] = lambda: None
    clear: Callable[[], None] = lambda: None
    points: dict[int, list[Sample]] = field(default_factory=dict)

    def turns(self, runs: int) -> Iterator[tuple[int, int]]:
        """Run and size, every size once before any is measured again."""
        return ((run, size) for run in range(runs) for size in self.sizes)

    def take(self, size: int) -> None:
        self.points.setdefault(size, []).append(self.measure(size))

    @property
    def figures(self) -> list[str]:
        return [name for name in UNITS if any(name in one.figures for taken in self.points.values() for one in taken)]

    def values(self, figure: str, size: int) -> list[float]:
        return [one.figures[figure] for one in self.points[size] if figure in one.figures]

    def median(self, figure: str, size: int) -> float:
        return statistics.median(self.values(figure, size))

    def is_noisy(self, size: int) -> bool:
        return any(one.is_noisy for one in self.points[size])

    @property
    def reference(self) -> float:
        """The throughput that the largest size is set against."""
        rates = [self.median("rate", size) for size in self.points]
        return max(rates) if self.goal is not None and self.goal.of == "best" else rates[0]

    @property
    def share(self) -> float:
        return self.median("rate", max(self.points)) / self.reference

    @property
    def is_met(self) -> bool | None:
        return None if self.goal is None else self.share >= self.goal.share

    @property
    def cost_of_one_more(self) -> float:
        """By how many microseconds a step is longer for each further one of what grows, over the whole curve."""
        least, most = min(self.points), max(self.points)
        if least == most:
            return 0.0
        return (1 / self.median("rate", most) - 1 / self.median("rate", least)) * 1e6 / (most - least)

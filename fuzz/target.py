"""What every target has: a name, what it tries, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
FINDINGS = RESULTS / "findings"
CORPUS = RESULTS / "corpus"

MOST_FINDINGS = 20
"""After so many a target stops: whoever has these has enough to do."""

SAMPLES_APART = 0.5


class Broken(AssertionError):  # noqa: N818 it is named by what happened
    """A property does not hold."""


@dataclass(frozen=True, slots=True)
class Order:
    """How much of a target is wanted: until one of both is used up."""

    seed: int
    seconds: float | None = None
    runs: int | None = None
    jobs: int = 1
    planted: bool = False
    """With a mistake put in on purpose, to see that it would be found."""


@dataclass(frozen=True, slots=True)
class Sample:
    """How far it was after some seconds. `known` is what has been seen for the first time until then."""

    seconds: float
    executions: int
    known: int


@dataclass(slots=True)
class Outcome:
    target: str
    unit: str
    """What one execution is."""
    measure: str
    """What `known` counts."""
    samples: list[Sample] = field(default_factory=list)
    findings: list[Path] = field(default_factory=list)
    notes: dict[str, int | float | str] = field(default_factory=dict)
    begun_at: float = field(default_factory=monotonic)

    @property
    def executions(self) -> int:
        return self.samples[-1].executions if self.samples else 0

    @property
    def known(self) -> int:
        return self.samples[-1].known if self.samples else 0

    @property
    def seconds(self) -> float:
        return self.samples[-1].seconds if self.samples else 0.0

    @property
    def rate(self) -> float:
        return self.executions / self.seconds if self.seconds else 0.0

    @property
    def elapsed(self) -> float:
        return monotonic() - self.begun_at

    def begin(self) -> None:
        """What was made ready before does not count."""
        self.begun_at = monotonic()

    def sample(self, executions: int, known: int, *, is_last: bool = False) -> None:
        now = self.elapsed
        if is_last or not self.samples or now - self.samples[-1].seconds >= SAMPLES_APART:
            self.samples.append(Sample(now, executions, known))

    def is_over(self, order: Order, executions: int) -> bool:
        return (
            len(self.findings) >= MOST_FINDINGS
            or (order.seconds is not None and self.elapsed >= order.seconds)
            or (order.runs is not None and executions >= order.runs)
        )


Tell = Callable[[Outcome], None]
"""Called now and then, for whoever watches."""

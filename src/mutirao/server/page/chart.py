"""Small charts, drawn as SVG by the server: where the marks are. What they mean stands in the template, and beside them in a table.

The plot is as wide as there are points and a hundred high, and is stretched to its place; so texts stand outside of it, and lines
keep their width. It has no script and no style of its own: colours come from the classes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

HEIGHT = 100.0
_FRACTIONS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True)
class Series:
    """`name` is its class; a value may be missing."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Mark:
    """A bar, from its lower left corner up."""

    name: str
    x: float
    y: float
    height: float


@dataclass(frozen=True)
class Chart:
    """Bars that stand on one another, or lines. `at` names each point, `spell` a value."""

    name: str
    at: Sequence[str]
    series: Sequence[Series]
    spell: Callable[[float], str]
    is_stacked: bool = False
    least: float = 0.001
    """As high as this it is at least."""

    @property
    def width(self) -> int:
        return len(self.at)

    @cached_property
    def top(self) -> float:
        """The value at the upper edge: a round one."""
        columns = zip(*(each.values for each in self.series), strict=True)
        merge = sum if self.is_stacked else max
        return round_up(max(self.least, *(merge(value or 0 for value in column) for column in columns)))

    @property
    def ticks(self) -> list[str]:
        """At the upper edge, in the middle and on the ground."""
        return [self.spell(self.top), self.spell(self.top / 2), self.spell(0)]

    @property
    def moments(self) -> list[str]:
        """The first, the last, and some between."""
        last = len(self.at) - 1
        return [self.at[round(last * part / 4)] for part in range(5)]

    @property
    def bars(self) -> Iterator[Mark]:
        for index, column in enumerate(zip(*(each.values for each in self.series), strict=True)):
            ground = HEIGHT
            for each, value in zip(self.series, column, strict=True):
                if value:
                    height = round(HEIGHT * value / self.top, 2)
                    ground -= height
                    yield Mark(each.name, index + 0.1, round(ground, 2), height)

    @property
    def lines(self) -> Iterator[tuple[str, str]]:
        """Name and points, broken where values are missing; a lone one is a dash."""
        for each in self.series:
            for run in _runs(each.values):
                points = [(index + 0.5, round(HEIGHT * (1 - value / self.top), 2)) for index, value in run]
                if len(points) == 1:
                    [(x, y)] = points
                    points = [(x - 0.4, y), (x + 0.4, y)]
                yield each.name, " ".join(f"{x:g},{y:g}" for x, y in points)

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """All that is drawn, the latest first, in words; points without any value are left out."""
        columns = list(zip(*(each.values for each in self.series), strict=True))
        said = [
            (at, ["" if value is None else self.spell(value) for value in column])
            for at, column in zip(self.at, columns, strict=True)
            if any(column)
        ]
        return said[::-1]


def round_up(value: float) -> float:
    """What is above nothing, to a number with one place that has a readable half."""
    power = 1.0
    while power > value:
        power /= 10
    while power * 10 < value:
        power *= 10
    return next(power * fraction for fraction in _FRACTIONS if power * fraction >= value * (1 - 1e-9))


def _runs(values: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    run: list[tuple[int, float]] = []
    for index, value in enumerate(values):
        if value is not None:
            run.append((index, value))
        elif run:
            yield run
            run = []
    if run:
        yield run

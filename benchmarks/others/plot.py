"""The figures as a picture: throughput above, latency below; full bars on an empty engine, pale ones with a past."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.others.plan import OURS, PLACES, Score

_OURS, _OTHER, _YARDSTICK = "#2a7f62", "#5b6b8c", "#b9bec7"
_PALE = 0.45
_PANELS = (
    (("rate_1", "steps/s with one worker"), ("rate_2", "steps/s with two workers")),
    (("latency", "ms an instance alone, p50"), ("latency_p99", "ms an instance alone, p99")),
)
_LARGE = 100


def draw(scores: Sequence[Score], path: Path) -> None:
    figure = Figure(figsize=(11, 2.4 + 0.62 * len(scores)), layout="constrained")
    grid = figure.subplots(2, 2, sharey=True)
    for row, panels in zip(grid, _PANELS, strict=True):
        for axes, (measure, title) in zip(row, panels, strict=True):
            _panel(axes, scores, measure, title)
    figure.suptitle("Five durable steps an instance: full bars on an empty engine, pale ones with a past", fontsize=11)
    figure.savefig(path, dpi=150)


def _panel(axes: Axes, scores: Sequence[Score], measure: str, title: str) -> None:
    for row, score in enumerate(reversed(scores)):
        for place, shift in zip(PLACES, (0.19, -0.19), strict=True):
            value = score.value(place, measure)
            if value:
                alpha = 1.0 if place == "empty" else _PALE
                axes.barh(row + shift, value, height=0.36, color=_colour(score), alpha=alpha)
                text = f" {value:,.0f}" if value >= _LARGE else f" {value:.1f}"
                axes.text(value, row + shift, text, va="center", fontsize=7)
    axes.set_yticks(range(len(scores)), [each.contender.title for each in reversed(scores)], fontsize=8)
    # Engines differ by orders of magnitude: on a linear scale the slower ones could not be told apart.
    axes.set_xscale("log")
    axes.set_title(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.12)


def _colour(score: Score) -> str:
    if score.contender.name == OURS:
        return _OURS
    return _OTHER if score.contender.is_engine else _YARDSTICK

"""The figures as a picture: a bar for each ratio, a mark for each goal."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.plan import Comparison

_MET, _MISSED, _UNASKED, _GOAL = "#2a7f62", "#b3402e", "#8a8f98", "#1b1f24"


def draw(comparisons: Sequence[Comparison], path: Path) -> None:
    figure = Figure(figsize=(9, 1.2 + 0.38 * len(comparisons)), layout="constrained")
    axes = figure.subplots()
    rows = list(range(len(comparisons)))[::-1]
    axes.barh(rows, [each.ratio for each in comparisons], height=0.62, color=[_colour(each) for each in comparisons])
    for row, each in zip(rows, comparisons, strict=True):
        axes.text(each.ratio, row, f" {each.ratio:.2f}{' ~' if each.is_noisy else ''}", va="center", fontsize=8)
        if each.goal is not None:
            axes.plot([each.goal, each.goal], [row - 0.4, row + 0.4], color=_GOAL, linewidth=2)
            # The side that is right: a rate may be above its goal, a time below.
            axes.plot(each.goal, row, marker=">" if each.at_least else "<", color=_GOAL, markersize=5)
    axes.set_yticks(rows, [_label(each) for each in comparisons], fontsize=8)
    axes.set_xlabel("ratio; the mark is the goal and points to the side that meets it")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.08, y=0.02)
    figure.savefig(path, dpi=150)


def _colour(found: Comparison) -> str:
    return {True: _MET, False: _MISSED, None: _UNASKED}[found.is_met]


def _label(found: Comparison) -> str:
    workers = {1: ", 1 worker", 2: ", 2 workers"}.get(found.workers, "") if found.unit == "steps/s" else ""
    return f"{found.title}{workers}\nagainst {found.baseline}"

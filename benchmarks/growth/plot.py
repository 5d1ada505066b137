"""A curve as a picture: throughput above, latency and whatever else was measured below."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.growth.curve import UNITS, Curve

_COLOURS = ("#2a7f62", "#b3402e", "#3b5b92")
_REFERENCE = "#8a8f98"
_PANELS = (("rate",), ("p50", "p99"), ("idle_cpu",))


def draw(curve: Curve, path: Path) -> None:
    panels = [shown for panel in _PANELS if (shown := [name for name in panel if name in curve.figures])]
    figure = Figure(figsize=(8, 1.2 + 2.6 * len(panels)), layout="constrained")
    figure.suptitle(f"{curve.title}: median and range", fontsize=11)
    for axes, names in zip(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels, strict=True):
        for name, colour in zip(names, _COLOURS, strict=False):
            _line(axes, curve, name, colour)
        axes.set_ylabel(UNITS[names[0]].replace(", ", ",\n"))
        axes.set_ylim(0, 1.1 * max(max(curve.values(name, size)) for name in names for size in curve.points) or 1)
        axes.grid(visible=True, alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        _draw_reference(axes, curve, names[0])
        axes.legend(fontsize=8, frameon=False, loc="best")
    axes.set_xscale("log")
    axes.set_xticks(list(curve.points), [f"{size:,}" for size in curve.points])
    axes.minorticks_off()
    axes.set_xlabel(f"{curve.axis} (logarithmic)")
    figure.savefig(path, dpi=130)


def _line(axes: Axes, curve: Curve, name: str, colour: str) -> None:
    sizes = list(curve.points)
    middle = [curve.median(name, size) for size in sizes]
    below = [each - min(curve.values(name, size)) for each, size in zip(middle, sizes, strict=True)]
    above = [max(curve.values(name, size)) - each for each, size in zip(middle, sizes, strict=True)]
    axes.errorbar(
        sizes, middle, yerr=[below, above], color=colour, marker="o", markersize=4, capsize=3, label=_label(name)
    )


def _label(name: str) -> str:
    return {"rate": "steps/s", "idle_cpu": "processor time while idle"}.get(name, f"{name}, one instance at a time")


def _draw_reference(axes: Axes, curve: Curve, name: str) -> None:
    if name != "rate":
        axes.axhline(curve.median(name, min(curve.points)), color=_REFERENCE, linestyle="--", linewidth=1)
        return
    which = "best" if curve.goal is not None and curve.goal.of == "best" else "smallest"
    axes.axhline(curve.reference, color=_REFERENCE, linestyle="--", linewidth=1, label=f"the {which}")
    if curve.goal is not None:
        label = f"goal, {curve.goal.share:g} of it"
        axes.axhline(curve.reference * curve.goal.share, color=_REFERENCE, linestyle=":", linewidth=1, label=label)

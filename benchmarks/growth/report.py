"""What came out: a table for people, JSON with every single run for programs."""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.growth.curve import UNITS, Curve
from benchmarks.growth.size import Size
from benchmarks.server import BenchServer, machine

_LARGE = 100


def table(curve: Curve) -> Table:
    shown = Table(title=f"{curve.title}: medians, with the range")
    shown.add_column(curve.axis, justify="right")
    for name in curve.figures:
        shown.add_column(heading(name), justify="right")
    shown.add_column("noise", justify="right")
    for size in curve.points:
        cells = (f"{figure(curve.median(name, size))} [dim]{_range(curve, name, size)}[/]" for name in curve.figures)
        shown.add_row(f"{size:,}", *cells, noise(curve, size))
    return shown


def heading(name: str) -> str:
    return f"{name}, ms" if UNITS[name] == "ms" else UNITS[name]


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= _LARGE else f"{value:.2f}"


def _range(curve: Curve, name: str, size: int) -> str:
    values = curve.values(name, size)
    return f"{figure(min(values))} to {figure(max(values))}"


def noise(curve: Curve, size: int) -> str:
    """The largest share of the machine that others had during a run."""
    shares = [each.others + each.stolen for one in curve.points[size] for each in one.noises if each is not None]
    return f"{max(shares):.0%}{' ~' if curve.is_noisy(size) else ''}" if shares else "unknown"


def verdict(curve: Curve) -> str:
    share = f"{curve.title}: with {max(curve.points):,} it is {curve.share:.2f} of the "
    if curve.goal is None:
        more = f"; each further one adds {curve.cost_of_one_more:.3f} µs to a step"
        return f"{share}throughput with {min(curve.points):,}{more}"
    which = "best" if curve.goal.of == "best" else f"throughput with {min(curve.points):,}"
    return f"{share}{which}; the goal, {curve.goal.share:g}, is {'met' if curve.is_met else 'missed'}"


def write_json(server: BenchServer, size: Size, curves: Sequence[Curve], path: Path) -> None:
    settings = server.settings()
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {
            "python": platform.python_version(),
            "postgresql": settings.pop("server_version"),
            **{name: version(name) for name in ("mutirao", "psycopg")},
        },
        "settings": settings,
        "size": asdict(size),
        "curves": [_as_document(each) for each in curves],
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _as_document(curve: Curve) -> dict[str, Any]:
    return {
        "name": curve.name,
        "title": curve.title,
        "axis": curve.axis,
        "goal": curve.goal and asdict(curve.goal),
        "share": curve.share,
        "is_met": curve.is_met,
        "microseconds_of_one_more": curve.cost_of_one_more,
        "points": [
            {
                "size": size,
                "medians": {name: curve.median(name, size) for name in curve.figures},
                "is_noisy": curve.is_noisy(size),
                "runs": [asdict(one) for one in taken],
            }
            for size, taken in curve.points.items()
        ],
    }

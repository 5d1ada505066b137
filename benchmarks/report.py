"""What came out: a table for people, JSON with every single run for programs."""

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from benchmarks.plan import Comparison, Size, median
from benchmarks.server import BenchServer, machine

RESULTS = Path(__file__).parent / "results"

_COLUMNS = ("ours", "against", "ratio", "goal")


def table(comparisons: Sequence[Comparison]) -> RenderableType:
    """One line a case: with one worker on the left, with two on the right."""
    shown = Table(title="Against the yardstick, medians")
    shown.add_column("work")
    shown.add_column("against", style="dim")
    for workers in ("1 worker", "2 workers"):
        for column in _COLUMNS:
            shown.add_column(f"{workers}\n{column}", justify="right")
    for title, found in _by_title(comparisons).items():
        left, right = (next((each for each in found if each.workers == workers), None) for workers in (1, 2))
        left = left or found[0]
        shown.add_row(f"{title}, {left.unit}", left.baseline, *_cells(left), *_cells(right))
    return shown


def _by_title(comparisons: Iterable[Comparison]) -> dict[str, list[Comparison]]:
    found: dict[str, list[Comparison]] = {}
    for each in comparisons:
        found.setdefault(each.title, []).append(each)
    return found


def _cells(found: Comparison | None) -> tuple[str, ...]:
    if found is None:
        return ("",) * len(_COLUMNS)
    colour = {True: "green", False: "red", None: "default"}[found.is_met]
    ratio = f"[{colour}]{found.ratio:.2f}{' ~' if found.is_noisy else ''}[/]"
    goal = "" if found.goal is None else f"{'≥' if found.at_least else '≤'} {found.goal:g}"
    against = _figure(median(found.against)) if found.against else found.baseline
    return _figure(median(found.ours)), against, ratio, goal


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"  # noqa: PLR2004 rates are large, milliseconds small


def conclusion(comparisons: Sequence[Comparison]) -> str:
    asked = [each for each in comparisons if each.is_met is not None]
    missed = [each for each in asked if not each.is_met]
    lines = [f"{len(asked) - len(missed)} of {len(asked)} goals met."]
    lines += [f"Missed: {each.title}{_with_workers(each)}: {each.ratio:.2f}" for each in missed]
    if any(each.is_noisy for each in comparisons):
        lines.append("~ the machine was busy with something else during a run: see `noise` in the JSON.")
    return "\n".join(lines)


def _with_workers(found: Comparison) -> str:
    return f" (workers: {found.workers})" if found.workers else ""


def write_json(server: BenchServer, size: Size, comparisons: Sequence[Comparison], path: Path) -> None:
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
        "comparisons": [_as_document(each) for each in comparisons],
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _as_document(found: Comparison) -> dict[str, Any]:
    medians = {"ours_median": median(found.ours), "against_median": median(found.against) if found.against else None}
    return {**asdict(found), **medians, "is_met": found.is_met, "is_noisy": found.is_noisy}

"""What came out: a table for people, JSON with every single run for programs, and the table in the docs."""

import json
import platform
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.others.plan import PLACES, Goal, Score, Size, goals
from benchmarks.server import BenchServer, machine

_DOCS = Path(__file__).parents[2] / "docs"
_PAGE = _DOCS / "beside-others.md"
_PICTURE = _DOCS / "images" / "beside-others.png"
_BEGIN, _END = "<!-- figures -->", "<!-- end of figures -->"
_COLUMNS = ("rate_1", "rate_2", "latency", "latency_p99")
_HEADS = ("steps/s,\n1 worker", "2 workers", "p50 ms", "p99 ms")
_LARGE = 100


def table(scores: Sequence[Score]) -> Table:
    shown = Table(title="Five durable steps an instance, medians")
    shown.add_column("engine")
    shown.add_column("promise", style="dim", max_width=34)
    shown.add_column("steps per\ncommit", justify="right")
    for place in PLACES:
        for head in _HEADS:
            shown.add_column(head if place == "empty" else f"{head}\nwith past", justify="right")
    for each in scores:
        shown.add_row(_name(each), each.contender.promise, *_cells(each))
    return shown


def conclusion(scores: Sequence[Score]) -> str:
    lines = [_goal_line(each) for each in goals(scores)]
    lines += [f"{each.contender.title}: {error}" for each in scores for error in each.errors]
    lines += [
        f"{each.contender.title} has a past of {each.contender.past_made:,} instances."
        for each in scores
        if each.contender.past_made
    ]
    if any(each.is_noisy for each in scores):
        lines.append("~ the machine was busy with something else during a run: see `noise` in the JSON.")
    return "\n".join(lines)


def _goal_line(found: Goal) -> str:
    asked = f"{'≥' if found.is_rate else '≤'} {found.goal:g}"
    verdict = "met" if found.is_met else "MISSED"
    return (
        f"{found.title}: {_figure(found.ours)} beside {_figure(found.best)} of {found.best_title}: "
        f"{found.ratio:.2f} times, asked {asked}: {verdict}"
    )


def write_json(server: BenchServer, size: Size, scores: Sequence[Score], path: Path) -> None:
    settings = server.settings()
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {
            "python": platform.python_version(),
            "postgresql": settings.pop("server_version"),
            "psycopg": version("psycopg"),
        },
        "settings": settings,
        "size": asdict(size),
        "contenders": [_as_document(each) for each in scores],
        "goals": [{**asdict(each), "ratio": each.ratio, "is_met": each.is_met} for each in goals(scores)],
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _as_document(score: Score) -> dict[str, Any]:
    contender = score.contender
    return {
        "name": contender.name,
        "title": contender.title,
        "version": score.version,
        "is_engine": contender.is_engine,
        "promise": contender.promise,
        "past": contender.past_made,
        "steps_per_commit": score.steps_per_commit(),
        "medians": {place: {each: score.value(place, each) for each in _COLUMNS} for place in PLACES},
        "runs": {f"{place} {what}": [asdict(run) for run in runs] for (place, what), runs in score.runs.items()},
        "errors": score.errors,
    }


def write_docs(size: Size, scores: Sequence[Score], picture: Path) -> None:
    """Between two marks of the page; what is around them is left as it is."""
    page = _PAGE.read_text("utf-8")
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    text = "\n\n".join([_BEGIN, _setting(size), _markdown(scores), _list(scores), "![](images/beside-others.png)", _END])
    _PAGE.write_text(before + text + after, "utf-8")
    shutil.copyfile(picture, _PICTURE)


def _setting(size: Size) -> str:
    found = machine()
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}, {found['cores']} cores, {found['memory_gb']:g} GB; {size.instances:,} instances a run, "
        f"{size.rounds} one after another, {size.past:,} finished ones as a past; medians of {size.runs}."
    )


def _markdown(scores: Sequence[Score]) -> str:
    heads = ["engine", "steps per commit", "steps/s, 1 worker", "2 workers", "p50 ms", "p99 ms"]
    heads += [f"{head}, with past" for head in ("1 worker", "2 workers", "p50", "p99")]
    rows = [" | ".join([_name(each), *_cells(each)]) for each in scores]
    ruler = "|".join(["---", *["---:"] * (len(heads) - 1)])
    return "\n".join(f"| {line} |" for line in [" | ".join(heads), ruler, *rows])


def _list(scores: Sequence[Score]) -> str:
    return "\n".join(f"- {line}" for line in conclusion(scores).splitlines())


def _name(score: Score) -> str:
    return f"{score.contender.title} {score.version}".strip() + (" ~" if score.is_noisy else "")


def _cells(score: Score) -> list[str]:
    values = [score.value(place, column) for place in PLACES for column in _COLUMNS]
    per_commit = score.steps_per_commit()
    cells = ["–" if per_commit is None else f"{per_commit:.2g}"]
    return cells + ["–" if value is None else _figure(value) for value in values]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= _LARGE else f"{value:.2f}"

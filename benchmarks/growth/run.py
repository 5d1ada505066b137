"""`python -m benchmarks.growth`: measures the curves, shows how it goes, and writes what came out."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.growth import condition, instance, page, worker
from benchmarks.growth.curve import Curve
from benchmarks.growth.plot import draw
from benchmarks.growth.report import table, verdict, write_json
from benchmarks.growth.size import QUICK, TINY, Size
from benchmarks.report import RESULTS
from benchmarks.server import BenchServer

_WIDTH_IN_A_FILE = 150
_KINDS = {"instances": instance.curves, "conditions": condition.curves, "workers": worker.curves}


def main(words: Sequence[str] | None = None) -> None:
    arguments = _parser().parse_args(words)
    size = TINY if arguments.tiny else QUICK if arguments.quick else Size()
    size = replace(size, runs=arguments.runs or size.runs)
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH_IN_A_FILE
    arguments.results.mkdir(parents=True, exist_ok=True)
    path = arguments.results / f"growth-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
    with BenchServer(arguments.folder) as server:
        found = _run(server, size, arguments.only or list(_KINDS), console, path)
    for curve in found:
        console.print(table(curve))
    for curve in found:
        console.print(verdict(curve), highlight=False)
    if any(curve.is_noisy(count) for curve in found for count in curve.points):
        console.print("~ the machine was busy with something else during a run: see `noises` in the JSON.")
    console.print(f"Written: {path.name} and a picture of each curve, in {path.parent}", highlight=False)
    if arguments.write_docs:
        page.write(found)
        console.print("docs/growth.md and its pictures have these figures now.")


def _run(server: BenchServer, size: Size, kinds: Sequence[str], console: Console, path: Path) -> list[Curve]:
    """What has been measured is written after every curve: one that breaks takes only itself along."""
    found: list[Curve] = []
    # Without a thread that refreshes: processes are forked here, and a lock it holds would stay locked in the child.
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=False,
    ) as progress:
        bar = progress.add_task("starting")

        def say(text: str) -> None:
            progress.update(bar, description=text, refresh=True)

        curves = [curve for kind in kinds for curve in _KINDS[kind](server, size, say)]
        progress.update(bar, total=sum(size.runs * len(curve.sizes) for curve in curves))
        for curve in curves:
            _measure(curve, size.runs, say, lambda: progress.advance(bar))
            found.append(curve)
            write_json(server, size, found, path)
            draw(curve, path.with_name(f"{path.stem}-{curve.name}.png"))
            progress.console.print(verdict(curve), highlight=False)
        progress.update(bar, description="done", refresh=True)
    return found


def _measure(curve: Curve, runs: int, say: Callable[[str], None], advance: Callable[[], None]) -> None:
    curve.prepare()
    for run, count in curve.turns(runs):
        say(f"{curve.title}: {count:,}, run {run + 1} of {runs}")
        curve.take(count)
        advance()
    curve.clear()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="Measure how speed changes.")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, once: to see that it runs")
    parser.add_argument("--tiny", action="store_true", help="next to nothing, for the tests: the figures mean nothing")
    parser.add_argument("--only", action="append", choices=list(_KINDS), help="what grows; all of them unless said")
    parser.add_argument("--runs", type=_at_least_one, metavar="N", help="runs of each size; 3 unless said otherwise")
    parser.add_argument("--folder", type=Path, help="where the server's folder is made; must be on a disk")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where JSON and pictures go")
    parser.add_argument("--write-docs", action="store_true", help="put pictures and figures into docs/growth.md")
    return parser


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number

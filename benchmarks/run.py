"""`python -m benchmarks`: runs the cases, shows how they go, and writes what came out."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.plan import Bench, Case, Comparison, Size, median, plan
from benchmarks.plot import draw
from benchmarks.report import RESULTS, conclusion, table, write_json
from benchmarks.server import BenchServer

_WIDTH_IN_A_FILE = 150
_QUICK = Size(instances=2_000, history=50_000, items=5_000, runs=1)


def main(words: Sequence[str] | None = None) -> None:
    known = [case.name for case in plan(Size())]
    arguments = _parser(known).parse_args(words)
    size = _size(arguments)
    wanted = [case for case in plan(size) if case.name in (arguments.only or known)]
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH_IN_A_FILE
    with BenchServer(arguments.folder) as server:
        found = _run(server, size, wanted, console)
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
        write_json(server, size, found, path)
        draw(found, path.with_suffix(".png"))
    console.print(table(found))
    console.print(conclusion(found), highlight=False)
    console.print(f"Written: {_short(path)} and {path.with_suffix('.png').name}", highlight=False)


def _run(server: BenchServer, size: Size, cases: Sequence[Case], console: Console) -> list[Comparison]:
    found: list[Comparison] = []
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
        bar = progress.add_task("starting", total=sum(case.turns for case in cases))
        begun = 0

        def announce(text: str) -> None:
            nonlocal begun
            progress.update(bar, description=text, completed=begun, refresh=True)
            begun += 1

        def say(text: str) -> None:
            progress.update(bar, description=text, refresh=True)

        bench = Bench(server, size, announce, say)
        for case in cases:
            for each in case.run(bench):
                found.append(each)
                progress.console.print(_line(each), highlight=False)
        progress.update(bar, description="done", completed=begun, refresh=True)
    return found


def _line(found: Comparison) -> str:
    workers = f", workers: {found.workers}" if found.workers else ""
    return f"{found.title}{workers}: {median(found.ours):,.5g} {found.unit}, {found.ratio:.2f} of {found.baseline}"


def _size(arguments: argparse.Namespace) -> Size:
    base = _QUICK if arguments.quick else Size()
    return replace(base, instances=arguments.instances or base.instances, runs=arguments.runs or base.runs)


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _parser(known: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the engine against a yardstick.")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work, once: to see that it runs")
    parser.add_argument("--only", action="append", choices=known, metavar="NAME", help=f"a case: {', '.join(known)}")
    parser.add_argument("--runs", type=int, help="runs of each side; 3 unless said otherwise")
    parser.add_argument("--instances", type=int, help="instances a run; 10,000 unless said otherwise")
    parser.add_argument("--folder", type=Path, help="where the server's folder is made; must be on a disk")
    return parser

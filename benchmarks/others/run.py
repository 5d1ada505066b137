"""`python -m benchmarks.others`: installs who takes part, runs them in turns, and writes what came out."""

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.measure import BrokenRunError
from benchmarks.others import measure
from benchmarks.others.contender import Contender, Say
from benchmarks.others.plan import MEASURES, PLACES, Score, Size, contenders
from benchmarks.others.plot import draw
from benchmarks.others.report import conclusion, table, write_docs, write_json
from benchmarks.report import RESULTS
from benchmarks.server import BenchServer

_QUICK = Size(instances=200, rounds=20, past=2_000, runs=1)
_WIDTH_IN_A_FILE = 170

# What a contender may run into without ending the others' runs.
_TROUBLE = (BrokenRunError, psycopg.Error, OSError, ValueError)


def main(words: Sequence[str] | None = None) -> None:
    known = contenders()
    arguments = _parser([each.name for each in known]).parse_args(words)
    size = _size(arguments)
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH_IN_A_FILE
    scores = [Score(each) for each in known if each.name in (arguments.only or [other.name for other in known])]
    with BenchServer(arguments.folder) as server:
        _run(server, size, scores, console)
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"others-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
        write_json(server, size, scores, path)
    draw(scores, path.with_suffix(".png"))
    console.print(table(scores))
    console.print(conclusion(scores), highlight=False)
    console.print(f"Written: benchmarks/results/{path.name} and {path.with_suffix('.png').name}", highlight=False)
    if arguments.write_docs:
        write_docs(size, scores, path.with_suffix(".png"))
    if any(each.errors for each in scores):
        raise SystemExit(1)


def _run(server: BenchServer, size: Size, scores: Sequence[Score], console: Console) -> None:
    places = PLACES if size.past else PLACES[:1]
    turns = [(place, what, each) for _ in range(size.runs) for place in places for what in MEASURES for each in scores]
    # Without a thread that refreshes: processes are forked here, and a lock it holds would stay locked in the child.
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with (
        Progress(TextColumn("{task.description}"), *columns, console=console, auto_refresh=False) as progress,
        ExitStack() as stack,
    ):
        bar = progress.add_task("starting", total=len(scores) + len(turns))

        def say(text: str) -> None:
            progress.update(bar, description=text, refresh=True)

        for each in scores:
            stack.callback(each.contender.close)
            _try(each, "it cannot take part", lambda each=each: _make_ready(each, server, size, say))
            progress.advance(bar)
        for place, what, each in turns:
            say(f"{each.contender.title}, {place}, {what}")
            if each.version:
                _try(each, f"{place}, {what}", lambda turn=(each, place, what): _take_turn(server, size, *turn))
            progress.advance(bar)
        say("done")


def _make_ready(score: Score, server: BenchServer, size: Size, say: Say) -> None:
    score.contender.install(say)
    score.contender.prepare(server, size.past, say)
    score.version = score.contender.version()


def _take_turn(server: BenchServer, size: Size, score: Score, place: str, what: str) -> None:
    contender: Contender = score.contender
    with_past = place == "past"
    if what == "latency":
        run = measure.latency(contender, server, size.rounds, with_past=with_past)
    else:
        run = measure.rate(contender, server, size.instances, int(what[-1]), with_past=with_past)
    score.runs.setdefault((place, what), []).append(run)


def _try(score: Score, what: str, action: Callable[[], None]) -> None:
    try:
        action()
    except _TROUBLE as trouble:
        score.errors.append(f"{what}: {' '.join(str(trouble).split())}")


def _size(arguments: argparse.Namespace) -> Size:
    base = _QUICK if arguments.quick else Size()
    asked = {name: getattr(arguments, name) for name in ("instances", "rounds", "past", "runs")}
    return replace(base, **{name: value for name, value in asked.items() if value is not None})


def _parser(known: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.others", description="Measure the same work on Mutirão and on other engines."
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, once: to see that it runs")
    parser.add_argument("--only", action="append", choices=known, metavar="NAME", help=f"one of {', '.join(known)}")
    parser.add_argument("--runs", type=_positive, help="runs of each; 3 unless said otherwise")
    parser.add_argument("--instances", type=_positive, help="instances a run; 2,000 unless said otherwise")
    parser.add_argument("--rounds", type=_positive, help="instances one after another; 100 unless said otherwise")
    parser.add_argument("--past", type=_not_negative, help="finished instances behind it; 100,000 unless said otherwise")
    parser.add_argument("--folder", type=Path, help="where the server's folder is made; must be on a disk")
    parser.add_argument("--write-docs", action="store_true", help="put table and plot into docs/beside-others.md")
    return parser


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _not_negative(text: str) -> int:
    if (number := int(text)) < 0:
        raise argparse.ArgumentTypeError("at least 0")
    return number

"""How the answers to `why` look: a tree of conditions with a mark on each part, and beside it what it saw."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from mutirao.cli import render
from mutirao.database.explanation import Firing, Part, Why

FINAL_TASK = "_FINAL"

_WIDEST = 60
"""Of the column with the parts, where there is room for it: what they saw should stand near."""


@dataclass(frozen=True)
class _Signs:
    """What a terminal can show."""

    holds: str
    fails: str
    unknown: str
    raises: str
    job: str
    settled: str
    branch: str
    last: str
    line: str
    arrow: str


_JOINED = {"all": "all of", "any": "one of", "not any": "none of", "not all": "not all of", "not not": "not not"}
_SETTLED = ("closed", "disabled", "fired_once", "undoing", "undone")
_STATES = {"not_ready": "has not fired", "succeeded": "has succeeded", "failed": "has failed"}

_UNICODE = _Signs("✓", "✗", "?", "!", "●", "·", "├─ ", "└─ ", "│  ", "→")
_ASCII = _Signs("+", "x", "?", "!", "*", ".", "|- ", "`- ", "|  ", "->")


@dataclass(frozen=True)
class Picture:
    """Answers as people see them: about one task if it was asked for, else about all of an instance."""

    answers: Sequence[Why]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        painter = _Painter(_ASCII if options.ascii_only else _UNICODE)
        if len(self.answers) == 1 and self.answers[0].task is not None:
            yield from painter.one(self.answers[0])
        else:
            yield from painter.all(self.answers)


class _Painter:
    def __init__(self, signs: _Signs) -> None:
        self._signs = signs

    def one(self, why: Why) -> Iterator[RenderableType]:
        """The answer; then the condition as it is, or as it was when it set off what is under way."""
        yield Text(why.answer, "bold")
        if why.condition is not None and why.job is None:
            yield Text(f"\n{_title(why)}", "bold")
            yield self._table(self._tree(why.condition))
        if why.fired is not None and why.fired.condition is not None and why.stands != "fired":
            yield from self._firing(why.fired)

    def all(self, answers: Sequence[Why]) -> Iterator[RenderableType]:
        """The instance in one line; then every task, the most urgent first."""
        instance, *tasks = answers
        yield Text(instance.answer, "bold")
        if instance.fired is not None:
            yield from self._changes(instance.fired.changes)
        yield Text()
        width = max((text.cell_len for why in tasks for text, _ in self._below(why)), default=0)
        for why in tasks:
            yield self._headline(why)
            if rows := self._below(why):
                yield self._table(rows, min(width, _WIDEST))

    def _below(self, why: Why) -> list[tuple[Text, Text]]:
        """The parts of a condition that decides what happens to the task now."""
        if why.condition is None or why.stands not in (
            "condition",
            "alarm",
            "fired",
            "next_look",
            "quiet",
            "final_blocked",
            "final",
        ):
            return []
        parts = why.condition.parts if why.condition.kind in ("all", "any") else [why.condition]
        return [row for n, part in enumerate(parts) for row in self._branches(part, "", n == len(parts) - 1)]

    def _headline(self, why: Why) -> Text:
        mark = self._standing(why)
        name = "final" if why.task == FINAL_TASK else str(why.task)
        said = why.answer.removeprefix(f"{why.task} ").removeprefix("the final condition ")
        if self._below(why):
            said = said.split(": ")[0]  # the parts tell the rest
            if why.condition is not None and why.condition.kind == "any":
                said += f": {'one' if why.holds else 'none'} of these holds"
        return Text().append_text(mark).append(f" {name} ", "bold").append(said, "" if why.job else "dim")

    def _standing(self, why: Why) -> Text:
        """Where no condition decides any more, whether one holds is neither good news nor bad."""
        if why.job:
            return Text(self._signs.job, render.status(why.stands).style)
        if (why.condition is None or why.stands in _SETTLED) and not (why.task == FINAL_TASK and why.holds):
            return Text(self._signs.settled, "dim")
        return self._mark(why.holds, why.condition.error if why.condition is not None else None)

    def _firing(self, fired: Firing) -> Iterator[RenderableType]:
        times = f", the last of {fired.times} times" if fired.times > 1 else ""
        yield Text(f"\nWhy it fired{times}", "bold").append(
            f"  row {fired.row}, {render.ago(fired.at)}, after {fired.event}", "not bold dim"
        )
        yield from self._changes(fired.changes)
        if fired.condition is not None:
            yield self._table(self._tree(fired.condition))

    def _changes(self, changes: Mapping[str, Mapping[str, Any]]) -> Iterator[Text]:
        for name, change in changes.items():
            line = Text(f"  {name} ").append(f"{render.value(change.get('before'))} {self._signs.arrow} ", "dim")
            yield line.append(render.value(change.get("after")))

    def _table(self, rows: Sequence[tuple[Text, Text]], width: int | None = None) -> Table:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(overflow="fold", min_width=width)
        table.add_column(overflow="fold")
        for row in rows:
            table.add_row(*row)
        return table

    def _tree(self, root: Part) -> list[tuple[Text, Text]]:
        inner = [
            row for n, part in enumerate(_inside(root)) for row in self._branches(part, "", n == len(_inside(root)) - 1)
        ]
        return [self._row(root, ""), *inner]

    def _branches(self, part: Part, indent: str, is_last: bool) -> Iterator[tuple[Text, Text]]:
        yield self._row(part, indent + (self._signs.last if is_last else self._signs.branch))
        inside = _inside(part)
        deeper = indent + ("   " if is_last else self._signs.line)
        for n, each in enumerate(inside):
            yield from self._branches(each, deeper, n == len(inside) - 1)

    def _row(self, part: Part, guide: str) -> tuple[Text, Text]:
        line = Text().append(guide, "dim").append_text(self._mark(part.holds, part.error)).append(" ")
        if inside := _inside(part):
            return line.append(f"{_JOINED[_joint(part)]} these {len(inside)}", "italic"), Text()
        return line.append(" ".join(part.text.split())), self._saw(part)

    def _mark(self, holds: bool | None, error: str | None = None) -> Text:
        if error is not None:
            return Text(self._signs.raises, "bold magenta")
        if holds is None:
            return Text(self._signs.unknown, "bold yellow")
        return Text(self._signs.holds, "bold green") if holds else Text(self._signs.fails, "bold red")

    def _saw(self, part: Part) -> Text:
        if part.kind == "term":
            return Text(", ".join(f"it {_STATES.get(state, f'is {state}')}" for state in part.values.values()), "cyan")
        line = Text(", ").join(
            Text(name).append(" = ", "dim").append(render.value(value), "yellow" if value is None else "cyan")
            for name, value in part.values.items()
        )
        return line if part.error is None else Text("  ").join([line, Text(f"raises: {part.error}", "magenta")])


def _inside(part: Part) -> list[Part]:
    """Of `not (a or b)` those of what is negated, which is drawn as `none of`; `not x` is one line."""
    return part.parts[0].parts if part.kind == "not" else part.parts


def _joint(part: Part) -> str:
    return f"not {part.parts[0].kind}" if part.kind == "not" else part.kind


def _title(why: Why) -> str:
    if why.task == FINAL_TASK:
        return "The final condition"
    return "Its condition, as it was then" if why.stands == "fired" else "Its condition"

"""What `mutirao up` shows: a board that changes before your eyes, or a line now and then where nobody watches."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.invocation import Invocation
from mutirao.cli.listing import Listing
from mutirao.cli.output import counted
from mutirao.cli.tally import Tally, TaskName
from mutirao.database.engine import Engine
from mutirao.database.record import Backlog, Instance, TraceRow
from mutirao.database.story import EXCEPTION_TASK, in_short, in_words

_SHOWN = 5


@dataclass(frozen=True)
class Finished:
    instance: Instance
    trace: list[TraceRow]


@dataclass
class View:
    """What is known at a moment."""

    backlog: dict[TaskName, Backlog] = field(default_factory=dict)
    finished: list[Finished] = field(default_factory=list)
    exceptions: list[Instance] = field(default_factory=list)
    silent_for: timedelta | None = None
    """How long the database has not answered."""

    @property
    def jobs(self) -> list[Backlog]:
        return [each for each in self.backlog.values() if each.task != EXCEPTION_TASK]

    @property
    def trouble(self) -> tuple[bool, int]:
        """What somebody should hear of at once: whether the database is silent, and how many jobs are stuck."""
        return self.silent_for is not None, sum(each.stuck for each in self.jobs)


async def look(engine: Engine, before: View) -> View:
    """Look again; stories that are known already are not read again."""
    known = {each.instance.id: each for each in before.finished}
    closed = await engine.instances(status="closed", limit=_SHOWN)
    return View(
        backlog={(each.flow, each.task): each for each in await engine.backlog()},
        finished=[known.get(each.id) or Finished(each, await engine.trace(each.id)) for each in closed],
        exceptions=await engine.instances(status="open.exception", limit=_SHOWN),
    )


@dataclass(frozen=True)
class Board:
    """What stays the same while it is shown: where the data is, and which tasks are done here."""

    where: str
    tasks: Sequence[TaskName]
    tally: Tally
    hints: Sequence[str]
    """Commands to try, without the program's name; `{last}` and `{stuck}` stand for instances, …"""
    call: Invocation
    repaired: str | None = None
    """… the latter for one of this flow."""
    server: str | None = None
    """Where the pages are."""
    sign_in: str | None = None
    """Who signs in there, and how. It stays in sight as long as the board does."""

    def full(self, view: View, rate: float, up_for: timedelta) -> RenderableType:
        parts: list[RenderableType] = [self._header(view, rate, up_for), self._tasks(view)]
        if view.finished:
            parts += [Text("\nLast finished", "bold"), _finished_table(view.finished)]
        if view.exceptions:
            parts += [Text("\nSomebody must look at", "bold red"), _exception_table(view.exceptions)]
        return Group(*parts, self._try(view))

    def line(self, view: View, rate: float) -> str:
        """The same in short, for a log."""
        if view.silent_for is not None:
            return _silence(view.silent_for)
        waiting = sum(each.ready + each.waiting for each in view.jobs)
        running, (_, stuck) = sum(each.running for each in view.jobs), view.trouble
        done = sum(self.tally.done.values())
        line = f"{counted(done, 'job')} done, {rate:.1f} a second; {running} running, {waiting} waiting, {stuck} stuck"
        if view.finished:
            last = view.finished[0]
            line += f"; instance {last.instance.id} {_ending(last.instance)}: {in_short(last.trace)}"
        return line

    def _header(self, view: View, rate: float, up_for: timedelta) -> RenderableType:
        done = sum(self.tally.done.values())
        lines = [
            Text("database  ", "dim").append(self.where, "default"),
            Text("jobs      ", "dim").append(f"{done:,} done, {rate:.1f} a second", "default"),
        ]
        if self.server is not None:
            lines.insert(0, Text.assemble(("open      ", "dim"), (self.server, f"bold cyan link {self.server}")))
        if self.sign_in is not None:
            lines.insert(1, Text.assemble(("sign in   ", "dim"), (self.sign_in, "bold")))
        if view.silent_for is not None:
            lines.append(Text(_silence(view.silent_for), "bold red"))
        return Panel(
            Group(*lines),
            title="[bold]Mutirão is up[/bold]",
            subtitle=f"for {render.span(up_for)} · Ctrl-C to stop",
            border_style="cyan",
            box=box.ROUNDED,
        )

    def _tasks(self, view: View) -> Listing:
        counts = ("ready", "running", "retrying", "stuck", "done")
        listing = Listing("flow", "task", *counts, numbers=counts, spare=("retrying", "flow"))
        nothing = Backlog("", "", 0, 0, 0, 0, None)
        for flow, task in self.tasks:
            now = view.backlog.get((flow, task), nothing)
            listing.add_row(
                Text(flow),
                Text(task),
                _count(now.ready, "yellow"),
                _count(now.running, "cyan"),
                _count(now.waiting, "yellow"),
                _count(now.stuck, "bold red"),
                _count(self.tally.done[flow, task], "green"),
            )
        return listing

    def _try(self, view: View) -> RenderableType:
        known = {"last": view.finished[0].instance.id if view.finished else 1}
        stuck = [each.id for each in view.exceptions if each.flow == self.repaired]
        if stuck:
            known["stuck"] = stuck[0]
        hints = [hint.format(**known) for hint in self.hints if "stuck" in known or "{stuck}" not in hint]
        lines = Text("\nIn another terminal\n", "bold")
        return lines.append("\n".join(f"  {self.call(hint)}" for hint in hints), "cyan")


def _count(number: int, style: str) -> Text:
    return Text(f"{number:,}", style) if number else Text("·", "dim")


def _silence(silent_for: timedelta) -> str:
    return f"the database has not answered for {render.span(silent_for)}; trying again"


def _ending(instance: Instance) -> str:
    return instance.status.removeprefix("closed.")


def _finished_table(finished: Sequence[Finished]) -> Table:
    table = Table.grid(padding=(0, 2))
    for each in finished:
        instance = each.instance
        took = render.span(instance.closed_at - instance.started_at) if instance.closed_at else ""
        ending = render.status(instance.status)
        table.add_row(f"  {instance.id}", ending, took, render.one_line(in_short(each.trace)))
    return table


def _exception_table(exceptions: Sequence[Instance]) -> Table:
    table = Table.grid(padding=(0, 2))
    for each in exceptions:
        why = "; ".join(in_words(reason, each.state) for reason in each.reasons or ())
        table.add_row(f"  {each.id}", render.ago(each.started_at), render.one_line(why))
    return table

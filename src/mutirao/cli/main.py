"""The command itself: which groups there are, and how a refusal reaches the terminal.

A group is a module with a typer `app`; add it to COMMANDS. It is imported when it is called, not before, so that
`mutirao --help` answers at once however many there are.
"""

import io
import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from mutirao.cli.session import INTERRUPTED
from mutirao.cli.usage import MISUSED, Group, UsageError, told
from mutirao.errors import MutiraoError, OperatorError, RequestError

COMMANDS = {
    "up": ("mutirao.cli.up", "Run everything here: PostgreSQL, worker, clock, server, and an example."),
    "demo": ("mutirao.cli.demo", "A tour of twenty seconds: one flow, step by step, in SQL."),
    "flow": ("mutirao.cli.flow", "The definitions: list, show, check, apply, migrate."),
    "pdl": ("mutirao.cli.pdl", "Processes as text: check, fmt, apply, show, list, drop."),
    "instance": ("mutirao.cli.instance", "Runs of flows: start, list, show, trace, set, repair, cancel."),
    "limit": ("mutirao.cli.limit", "How many jobs of a task run: list, set, clear."),
    "class": ("mutirao.cli.meeting", "Jobs that exclude each other: list, put, drop, waits."),
    "event": ("mutirao.cli.event", "What happened outside, for instances by their keys: send, load."),
    "schedule": ("mutirao.cli.schedule", "Flows started by the clock: add, list, show, pause, resume, drop."),
    "job": ("mutirao.cli.job", "Tasks under way: list, show, retry, skip."),
    "batch": ("mutirao.cli.batch", "What is done to many instances at once: list, show, stop, resume."),
    "why": ("mutirao.cli.why", "Why an instance moves or does not, and why a task fired."),
    "exceptions": ("mutirao.cli.exception", "What instances are exceptions for, how many, and how to repair them."),
    "message": ("mutirao.cli.message", "What persons were told: list, read."),
    "webhook": ("mutirao.cli.webhook", "Messages sent on by HTTP: add, list, show, try, retry, remove."),
    "setting": ("mutirao.cli.setting", "What holds for the whole engine: list, set."),
    "retention": ("mutirao.cli.retention", "How long finished instances are kept: set, list, remove, drop."),
    "export": ("mutirao.cli.export", "Finished instances to files, and dropped afterwards if so wished."),
    "erase": ("mutirao.cli.erase", "One person's data: find, run, list."),
    "person": ("mutirao.cli.person", "Who may come in: add, list, show, change, disable, password, away, token."),
    "role": ("mutirao.cli.role", "What work is offered to: add, list, show, rename, remove, put, take."),
    "database": ("mutirao.cli.database", "Databases that flows may ask: add, list, remove, try."),
    "worklist": ("mutirao.cli.worklist", "What persons do: list, show, select, next, finish, delegate, move, comment."),
    "worker": ("mutirao.cli.worker", "A program that does the jobs of some flows."),
    "server": ("mutirao.cli.server", "The HTTP API, for people and programs."),
    "clock": ("mutirao.cli.clock", "Keeps time: retries, leases, timeouts, starts put off."),
    "db": ("mutirao.cli.db", "The database: status, url, upgrade, shell, backup, restore, grant, revoke."),
}

REFUSED = 1
OPERATOR_MUST_ACT = 3


class _LazyGroup(Group):
    """Knows its commands by name and one line, and imports only the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 the interface of the base class
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, summary = COMMANDS[cmd_name]
        if ctx.meta.get(__name__) == "listing":
            return TyperCommand(cmd_name, help=summary)
        command = typer.main.get_command(import_module(module).app)
        command.name = cmd_name
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        ctx.meta[__name__] = "listing"
        super().format_help(ctx, formatter)


app = typer.Typer(cls=_LazyGroup, pretty_exceptions_enable=False, add_completion=False)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"mutirao {version('mutirao')}")
        raise typer.Exit


@app.callback()
def mutirao(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Durable processes that span programs, people, devices and companies, on PostgreSQL alone.

    Example: mutirao up
    """


def main() -> None:
    """Run the command; a refusal is one line on stderr, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character is no reason to fail
    try:
        sys.exit(app(prog_name="mutirao", standalone_mode=False))
    except UsageError as error:
        _refuse(told(error))
    except typer.Abort:
        sys.exit(INTERRUPTED)
    except MutiraoError as error:
        _refuse(error)
    except OSError as error:  # what we write to is full or gone; a disk of the engine's would be a MutiraoError
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _refuse(RequestError("output_failed", f"the output could not be written: {error.strerror}"))


def _refuse(error: MutiraoError) -> NoReturn:
    typer.secho(" ".join(f"error: {error}".split()), fg=typer.colors.RED, err=True)
    sys.exit(_exit_code(error))


def _exit_code(error: MutiraoError) -> int:
    if isinstance(error, OperatorError):
        return OPERATOR_MUST_ACT
    return MISUSED if error.code == "usage" else REFUSED

"""Whoever asks a command for help gets an example."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from mutirao.cli.main import COMMANDS, app


def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), command
    for name in getattr(command, "commands", {}):
        yield from commands(command.commands[name], (*path, name))


def every_command() -> list[tuple[str, Any]]:
    root: Any = typer.main.get_command(app)
    context = root.make_context("mutirao", [], resilient_parsing=True)
    found = [("mutirao", root)]
    for name in COMMANDS:
        found += commands(root.get_command(context, name), ("mutirao", name))
    return found


@pytest.mark.parametrize(
    ("path", "command"), every_command(), ids=lambda given: given if isinstance(given, str) else ""
)
def test_help_has_an_example(path: str, command: Any) -> None:
    assert f"Example: {path}" in command.help


@pytest.mark.parametrize("name", COMMANDS)
def test_listing_says_one_line_about_each_command(name: str) -> None:
    _, summary = COMMANDS[name]
    assert summary.endswith(".")
    assert len(summary) < 80


def test_commands_that_read_speak_json() -> None:
    reading = {"status", "url", "list", "show", "trace"}
    silent = [
        path
        for path, command in every_command()
        if path.split()[-1] in reading and "--json" not in {name for option in command.params for name in option.opts}
    ]
    assert not silent

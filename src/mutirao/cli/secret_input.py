"""Passwords on their way in: asked for, or from stdin; never as an argument, which other users of the machine could see."""

import sys
from typing import Annotated

import typer

from mutirao.errors import RequestError

PasswordStdin = Annotated[bool, typer.Option("--password-stdin", help="Read it from the first line of stdin.")]


def read_password(name: str, *, from_stdin: bool) -> str:
    """One line of stdin, or what somebody types twice."""
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise RequestError("wrong_call", "nobody is there to be asked for a password: say --password-stdin")
    return str(typer.prompt(f"Password for {name}", hide_input=True, confirmation_prompt=True, err=True))

"""A wrong call of the command: what is wrong with its words and what would be right, in one line.

Left alone, typer would answer with a box of several lines.
"""

from typing import Any

import typer
from typer.core import TyperGroup

from mutirao.errors import RequestError
from mutirao.model.name import suggest
from mutirao.server import wording

MISUSED = 2

# All that the parser refuses. typer has it from click, or carries a copy of its own, and shows only this child of it.
UsageError: Any = typer.BadParameter.__base__


class Group(TyperGroup):
    """Alone, it shows its help; with a command that it does not have, it says which one was probably meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(MISUSED)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args[0] not in known:
            raise misuse(f'{ctx.command_path} has no command "{args[0]}"{suggest(args[0], known)}')
        return super().resolve_command(ctx, args)


def misuse(message: str) -> RequestError:
    return RequestError("usage", message)


def told(error: Any) -> RequestError:
    """What the parser refuses, in our form."""
    option = getattr(error, "option_name", None)
    if hasattr(error, "possibilities"):
        nearest = f'did you mean "{error.possibilities[0]}"?' if error.possibilities else _see_help(error)
        return misuse(f'{error.ctx.command_path} has no option "{option}"; {nearest}')
    if hasattr(error.__cause__, "errors"):
        error.message = wording.told(error.__cause__.errors()[0])
    what = error.format_message().rstrip(".").replace("'", '"')
    # The parser does not say which command an option stood at whose value is wrong in number.
    right = _see_help(error) if error.ctx else f"write {option} {'VALUE' if 'requires' in what else 'alone'}"
    return misuse(f"{what[:1].lower()}{what[1:]}; {right}")


def _see_help(error: Any) -> str:
    return f"see {error.ctx.command_path} --help"

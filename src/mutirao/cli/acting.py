"""Commands that a person stands behind: whoever runs them acts for the one named with --as."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from mutirao.cli.session import visit
from mutirao.database.engine import Engine

R = TypeVar("R")

Person = Annotated[str, typer.Option("--as", metavar="PERSON", help="For whom: their name.")]


def act_as(database: str | None, person: str, act: Callable[[Engine, int], Awaitable[R]]) -> R:
    async def acting(engine: Engine) -> R:
        return await act(engine, await engine.persons.number(person))

    return visit(database, acting, must_exist=True)

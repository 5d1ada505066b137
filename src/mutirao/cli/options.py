"""Options that many commands share, so that they are called and explained the same everywhere."""

from typing import Annotated

import typer

Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="postgresql://… of a server, or embedded:NAME. Default: MUTIRAO_DATABASE_URL, else the embedded server.",
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Machine-readable JSON on stdout.")]

"""`mutirao why`: why an instance moves or does not, and why a task fired."""

from typing import Annotated

import typer

from mutirao.cli.arguments import InstanceId
from mutirao.cli.cause import Picture
from mutirao.cli.invocation import calling
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.reason import Way, ways_out
from mutirao.cli.session import visit
from mutirao.database.engine import Engine
from mutirao.database.explanation import Why

app = typer.Typer(add_completion=False)


@app.command()
def why(
    instance: InstanceId,
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", help="Only about this task; `final` for how it ends.")
    ] = None,
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="ROW", help="In the past: the number after # in `mutirao instance trace`."),
    ] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Say why an instance moves or does not: each condition part by part with what it saw, and what each job waits for.

    Example: mutirao why 17 charge_card
    """

    async def ask(engine: Engine) -> tuple[list[Why], list[Way]]:
        answers, found = await engine.why(instance, task, at=at), await engine.instance(instance)
        definition = await engine.definition(found.flow, found.version)
        return answers, ways_out(found, definition, await engine.task_states(instance))

    answers, ways = visit(database, ask, must_exist=True)
    if json:
        return print_json(answers)
    console.print(Picture(answers))
    if at is None and ways:
        call, width = calling(database), max(len(way.does) for way in ways)
        console.print("\n[bold]What you can do[/bold]")
        for way in ways:
            console.print(f"{way.does:<{width}}  {call(way.command)}", soft_wrap=True, highlight=False, markup=False)
    return None

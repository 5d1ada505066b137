"""`mutirao export`: finished instances to files, and dropped afterwards if so wished."""

from pathlib import Path
from typing import Annotated

import typer

from mutirao.cli.measure import read_past
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, counting, print_json
from mutirao.cli.session import visit
from mutirao.database.engine import Engine
from mutirao.database.export import Exported, ExportOptions, Format

app = typer.Typer(add_completion=False)


@app.command()
def export(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")],
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where the files go; it is made if need be.")],
    form: Annotated[Format, typer.Option("--format", help="parquet needs the extra mutirao\\[parquet].")] = "jsonl",
    closed_before: Annotated[
        str | None,
        typer.Option("--closed-before", metavar="TIME", help="Such as 2031-12-24, or 90d for: more than 90 days ago."),
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop them when they are safely on the disk.")] = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Write finished instances with their traces to files. What is in a file already is not written again.

    Example: mutirao export travel --to archive --format jsonl.gz --closed-before 90d --drop
    """

    async def write(engine: Engine) -> Exported:
        before = None if closed_before is None else read_past(closed_before)
        total = await engine.count_exportable(flow, before)
        with counting("Exporting", total, quiet=json) as advance:
            options = ExportOptions(flow=flow, folder=to, format=form, closed_before=before, drop=drop, report=advance)
            return await engine.export(options)

    done = visit(database, write, must_exist=True)
    if json:
        return print_json(
            {"files": [str(file) for file in done.files], "instances": done.instances, "dropped": done.dropped}
        )
    if not done.files:
        console.print(
            f"Nothing to export: every finished instance of {flow} that was chosen is in a file already, or there is none.",
            highlight=False,
        )
    else:
        line = f"{counted(done.instances, 'instance')} of {flow} in {counted(len(done.files), 'file')}, up to {done.files[-1]}."
        console.print(line, highlight=False, soft_wrap=True)
    if drop:
        console.print(f"Dropped: {done.dropped:,}.", highlight=False)
    return None

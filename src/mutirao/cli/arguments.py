"""Arguments and options that the commands about flows, instances and jobs share."""

from pathlib import Path
from typing import Annotated

import typer

Assignments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ATTR=VALUE",
        help="By the attribute's type: stage=new, price=9.90, due=2031-12-24, plan=@plan.pdf. As JSON: hotel:=null",
    ),
]

Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Kept in the trace.")]

Revision = Annotated[
    int | None,
    typer.Option("--revision", metavar="N", min=1, help="Refuse if it was changed since; `instance show` tells it."),
]

At = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Later: 2031-12-24T18:00, by the clock here, or with Z or +01:00."),
]

After = Annotated[str | None, typer.Option("--in", metavar="TIME", help="Later: in 90s, 15m, 2h or 3d.")]

InstanceId = Annotated[int, typer.Argument(metavar="ID", help="The instance's number.")]

InstanceIds = Annotated[
    list[int] | None, typer.Argument(metavar="ID", help="Instances by number; or choose them by the options.")
]

IdsAndAssignments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID ATTR=VALUE",
        help="Instances by number, or chosen by the options; then attributes: stage=new, price=9.90, hotel:=null",
    ),
]

OfFlow = Annotated[str | None, typer.Option("--flow", metavar="NAME", help="All of this flow, many at once.")]

OfKey = Annotated[str | None, typer.Option("--key", metavar="KEY", help="Of this flow, the one that has this key.")]

StartedBefore = Annotated[
    str | None,
    typer.Option("--started-before", metavar="TIME", help="Of these, started before 2031-12-24T18:00, or 90d ago."),
]

StartedAfter = Annotated[
    str | None, typer.Option("--started-after", metavar="TIME", help="Of these, started after 2031-12-24T18:00.")
]

OfTask = Annotated[str | None, typer.Option("--task", metavar="NAME", help="Only failed jobs of this task.")]

OfError = Annotated[
    str | None, typer.Option("--error", metavar="TEXT", help="Only with this code, or an error that begins so.")
]

JobsAndAssignments = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID ATTR=VALUE", help="A job by number, or chosen by the options; then attributes."),
]

OfStatus = Annotated[str | None, typer.Option("--status", metavar="STATUS", help="Of these, such as open.exception.")]

OfException = Annotated[
    str | None,
    typer.Option("--exception", metavar="CODE", help="Of these, exceptions for this reason: nothing_fires, …"),
]

OfVersion = Annotated[int | None, typer.Option("--version", metavar="N", help="Of these, in this version.")]

Where = Annotated[
    str | None,
    typer.Option("--where", metavar="CONDITION", help="Of these, where it holds, such as \"stage = 'new' and n > 3\"."),
]

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

JobId = Annotated[int, typer.Argument(metavar="ID", help="The job's number.")]

FlowAddresses = Annotated[
    list[str],
    typer.Argument(metavar="MODULE:FLOW", help="module:Flow, path/file.py:Flow, or a whole module or file."),
]

SomeFlowAddresses = Annotated[
    list[str] | None,
    typer.Argument(metavar="MODULE:FLOW", help="module:Flow, path/file.py:Flow, or a whole module or file."),
]

RunsApplications = Annotated[
    bool, typer.Option("--applications", help="Also run the programs of tasks whose application may run here.")
]

HostName = Annotated[
    str | None, typer.Option("--host", metavar="NAME", help="What applications call this machine. Default: its name.")
]

ProgramsFolder = Annotated[
    Path | None,
    typer.Option("--programs", metavar="FOLDER", file_okay=False, exists=True, help="Run only what is in this folder."),
]

FlowOption = Annotated[str | None, typer.Option("--flow", metavar="NAME", help="Only of this flow.")]

Databases = Annotated[
    list[str] | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="postgresql://… of a server, or embedded:NAME; repeat it to serve several. "
        "Default: MUTIRAO_DATABASE_URL, else the embedded server.",
    ),
]

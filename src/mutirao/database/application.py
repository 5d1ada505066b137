"""What a worker asks about tasks that applications do."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mutirao.database.sql import query
from mutirao.model import Application
from mutirao.model.library_document import application
from mutirao.model.plain import encode_plain

if TYPE_CHECKING:
    from mutirao.database.engine import Engine


@dataclass(frozen=True, slots=True)
class ApplicationTask:
    """A task that an application does in some version of its flow; the numbers are what workers claim by."""

    number: int
    flow_number: int
    flow: str
    task: str
    application: Application


@dataclass(frozen=True, slots=True)
class AttributeRecord:
    name: str
    type: str
    filename: str | None


@dataclass(frozen=True, slots=True)
class ApplicationWork:
    """What a job runs and is given, by the version of its instance. None: by that, no application that there is does it."""

    application: Application | None
    inputs: list[str] | None
    outputs: list[str] | None
    attributes: dict[str, AttributeRecord]


async def application_tasks(engine: "Engine") -> list[ApplicationTask]:
    """A task that had different applications in different versions is there once for each."""
    async with engine.connection() as connection:
        rows = await (await connection.execute(query("application_tasks"))).fetchall()
    return [
        ApplicationTask(number, flow_number, flow, task, application(document))
        for number, flow_number, flow, task, document in rows
    ]


async def application_work(engine: "Engine", job: int, attempt: int) -> ApplicationWork | None:
    """None if the attempt is not the current one any more."""
    async with engine.connection() as connection:
        row = await (await connection.execute(query("application_of"), (job, attempt))).fetchone()
    if row is None:
        return None
    document, inputs, outputs, attributes = row
    known = {each["name"]: AttributeRecord(**each) for each in attributes or ()}
    return ApplicationWork(None if document is None else application(document), inputs, outputs, known)


async def note_output(engine: "Engine", job: int, attempt: int, said: dict[str, Any]) -> None:
    """Keep in the trace what a program said."""
    async with engine.connection() as connection:
        await connection.execute(query("note_output"), (job, attempt, encode_plain(said).decode(), engine.name))

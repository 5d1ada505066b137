"""The library: task models, applications and orderings, which flows share. The engine has it as `engine.library`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from psycopg import AsyncConnection
from psycopg.rows import class_row

from mutirao.database.connection import refusals
from mutirao.database.sql import query
from mutirao.errors import MutiraoError, RequestError
from mutirao.model import Application, Bundle, Definition, Inventory, Ordering, TaskModel, encode_document
from mutirao.model.library_document import application, library_document, ordering, task_model
from mutirao.model.value import ENCODER

if TYPE_CHECKING:
    from mutirao.database.engine import Engine

Entry = TaskModel | Application | Ordering

_PUT = {TaskModel: "put_task_model", Application: "put_application", Ordering: "put_ordering"}
_TRIES = 60  # as often as Engine.apply: whoever else defines flows is soon done


@dataclass(frozen=True, slots=True)
class LibraryRecord:
    """An entry as it stands: its kind is task_model, application or ordering, and its source what its author wrote."""

    kind: str
    name: str
    document: dict[str, Any]
    source: str | None
    used_by: list[str]
    made_by: str
    made_at: datetime


class Library:
    """What the flows of an engine share."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    async def put(self, entry: Entry, *, source: str | None = None) -> None:
        """Put it in place. Flows take over a task model when they are applied, and stay as they are until then."""
        async with self._engine.connection() as connection:
            await self._put(connection, entry, source)

    async def models(self) -> dict[str, TaskModel]:
        return {each.name: task_model(each.document) for each in await self.all("task_model")}

    async def applications(self) -> dict[str, Application]:
        return {each.name: application(each.document) for each in await self.all("application")}

    async def orderings(self) -> list[Ordering]:
        return [ordering(each.document) for each in await self.all("ordering")]

    async def all(self, kind: str | None = None) -> list[LibraryRecord]:
        """All entries, or those of a kind: task_model, application or ordering; with who uses each."""
        async with self._engine.connection() as connection:
            cursor = connection.cursor(row_factory=class_row(LibraryRecord))
            return await (await cursor.execute(query("library"), {"kind": kind})).fetchall()

    async def drop_model(self, name: str) -> None:
        """Take a task model away. Refused while the newest version of a flow uses it."""
        await self._call("drop_task_model", name)

    async def drop_application(self, name: str) -> None:
        """Take an application away. Refused while a task model or the newest version of a flow uses it."""
        await self._call("drop_application", name)

    async def drop_ordering(self, first: str, second: str) -> None:
        await self._call("drop_ordering", first, second)

    async def inventory(self) -> Inventory:
        """What is in place, by name: what a text in PDL may refer to without defining it."""
        async with self._engine.connection() as connection:
            roles = await (await connection.execute(query("role_names"))).fetchall()
            classes = await (await connection.execute(query("class_names"))).fetchall()
            flows = await (await connection.execute(query("flow_parts"))).fetchall()
        return Inventory(
            roles=[name for (name,) in roles],
            classes=[name for (name,) in classes],
            models=await self.models(),
            applications=await self.applications(),
            tasks={flow: tasks for flow, tasks, _ in flows},
            children={flow: children for flow, _, children in flows},
        )

    async def apply(
        self, bundle: Bundle, *, sources: Mapping[str, str] | None = None, is_trial: bool = False
    ) -> dict[str, int]:
        """Put all of a bundle in place, or nothing of it; answers the version of each flow. A trial changes nothing.

        `sources` are the texts of task models, applications and orderings, by `kind name`.
        """
        tries_left = _TRIES
        while True:
            try:
                async with self._engine.connection() as connection, connection.transaction(force_rollback=is_trial):
                    return await self._apply(connection, bundle, sources or {})
            except RequestError as error:
                tries_left -= 1
                if error.code != "definition_busy" or tries_left == 0:
                    raise

    async def try_out(self, bundle: Bundle) -> None:
        """Raise what `apply` would; nothing changes."""
        await self.apply(bundle, is_trial=True)

    async def _apply(
        self, connection: AsyncConnection[Any], bundle: Bundle, sources: Mapping[str, str]
    ) -> dict[str, int]:
        shared: tuple[Entry, ...] = (*bundle.applications, *bundle.models)
        for entry in shared:
            await self._put(connection, entry, sources.get(_key(entry)))
        versions = {}
        for flow in children_first(bundle.flows):
            values = (encode_document(flow).decode(), False, self._engine.name)
            with _told_of(flow), refusals():
                row = await (await connection.execute(query("apply_flow"), values)).fetchone()
                versions[flow.name] = 0 if row is None else int(row[0])
        for ordered in bundle.orderings:
            await self._put(connection, ordered, sources.get(_key(ordered)))
        return {flow.name: versions[flow.name] for flow in bundle.flows}

    async def _put(self, connection: AsyncConnection[Any], entry: Entry, source: str | None) -> None:
        document = ENCODER.encode(library_document(entry)).decode()
        await connection.execute(query(_PUT[type(entry)]), (document, source, self._engine.name))

    async def _call(self, name: str, *values: Any) -> None:
        async with self._engine.connection() as connection:
            await connection.execute(query(name), values)


@contextmanager
def _told_of(flow: Definition) -> Iterator[None]:
    """Of several flows, which one was refused."""
    try:
        yield
    except MutiraoError as error:
        place = f'flow "{flow.name}"'
        if place in error.message:
            raise
        raise type(error)(error.code, f"{place}: {error.message}") from error


def children_first(flows: tuple[Definition, ...]) -> Iterator[Definition]:
    """A flow is put in place after those that it runs. In a circle there is no such order, and SQL refuses it."""
    rest = {flow.name: flow for flow in flows}
    while rest:
        ready = [flow for flow in rest.values() if not any(task.child in rest for task in flow.tasks)]
        for flow in ready or list(rest.values()):
            yield rest.pop(flow.name)


def _key(entry: Entry) -> str:
    match entry:
        case TaskModel(name=name):
            return f"task_model {name}"
        case Application(name=name):
            return f"application {name}"
        case Ordering(first, second):
            return f"ordering {first}: {second}"

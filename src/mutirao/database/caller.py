"""How the typed faces of the engine call it: by the name of a query in sql/queries."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import class_row

from mutirao.database.sql import query

R = TypeVar("R")


class Caller(ABC):
    """Who calls is known by `name`; whoever inherits says where a connection comes from."""

    name: str

    @abstractmethod
    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]: ...

    async def _call(self, name: str, *values: Any) -> Any:
        """The single value that a query answers."""
        async with self.connection() as connection:
            row = await (await connection.execute(query(name), values)).fetchone()
            return None if row is None else row[0]

    async def _rows(self, kind: type[R], name: str, values: Mapping[str, Any] | Sequence[Any]) -> list[R]:
        async with self.connection() as connection:
            cursor = connection.cursor(row_factory=class_row(kind))
            await cursor.execute(query(name), values)
            return await cursor.fetchall()


class Face(Caller):
    """A part of the engine that is reached as an attribute of it, such as `engine.persons`."""

    def __init__(self, engine: Caller) -> None:
        self._engine = engine
        self.name = engine.name

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        return self._engine.connection()

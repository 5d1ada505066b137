"""The engine as a Python program sees it: define flows, start instances, look at them, steer them.

    async with Engine() as engine:
        await engine.apply(Travel)
        instance = await engine.start(Travel(stage="requested"))

All of it is SQL that any client may call (docs/sql.md); this is the typed face of it. What does the jobs is a worker.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import set_json_loads
from psycopg_pool import PoolTimeout

from mutirao.database import start as starting
from mutirao.database.access import Access
from mutirao.database.address import Address, resolve
from mutirao.database.answer import Answers
from mutirao.database.array import texts
from mutirao.database.charge import Charges
from mutirao.database.connection import check_server, connect, refusals
from mutirao.database.deadline import Deadlines
from mutirao.database.exception import ExceptionCalls
from mutirao.database.explanation import Why
from mutirao.database.file import Files
from mutirao.database.find import FindCalls
from mutirao.database.flow import FlowCalls
from mutirao.database.health import HealthCalls
from mutirao.database.job import JobCalls
from mutirao.database.keep import KeepCalls
from mutirao.database.library import Library
from mutirao.database.meeting import Classes
from mutirao.database.message import Messages
from mutirao.database.migrate import ensure_current, upgrade
from mutirao.database.origin import carried_along
from mutirao.database.person import Persons
from mutirao.database.pool import Pool, make_pool
from mutirao.database.record import (
    Event,
    Instance,
    Sent,
    TaskStanding,
    TraceRow,
)
from mutirao.database.role import Roles
from mutirao.database.schedule import Schedules
from mutirao.database.setting import Settings
from mutirao.database.sight import Sight
from mutirao.database.source import Sources
from mutirao.database.sql import query
from mutirao.database.start import HasDefinition, HasState
from mutirao.database.together import joined, joining, part_of
from mutirao.database.webhook import Webhooks
from mutirao.database.worklist import Worklists
from mutirao.errors import FlowError, OperatorError, RequestError
from mutirao.model import Change
from mutirao.model.name import suggest
from mutirao.model.plain import encode_plain

# So many batches at once: a server has more than one core, and the next is encoded while others are written.
_START_LANES = 2

STATUSES = (
    "open.notrunning",
    "open.running",
    "open.notrunning.suspended",
    "open.exception",
    "open.prepared",
    "closed.completed",
    "closed.terminated",
    "closed.aborted",
)

DECODER = msgspec.json.Decoder(float_hook=Decimal)

R = TypeVar("R")


def _name_of(flow: str | type[HasDefinition]) -> str:
    return flow if isinstance(flow, str) else flow.definition.name


def _instant(at: datetime | None) -> datetime | None:
    if at is not None and at.tzinfo is None:
        raise RequestError(
            "wrong_call", f"a time needs its zone: {at} could be anywhere; say datetime.now(UTC), for one"
        )
    return at


async def read_exact_numbers(connection: AsyncConnection[Any]) -> None:
    """A number in a state is exact; a float would not be."""
    set_json_loads(DECODER.decode, connection)


class Engine(FlowCalls, FindCalls, JobCalls, KeepCalls, ExceptionCalls, HealthCalls):
    """One database. Enter it to connect. The embedded one is brought up to date; a server only if `upgrade` says so.

    `patience` is how many seconds a call waits for a connection to be free, or to be made.
    """

    def __init__(
        self,
        database: str | None = None,
        *,
        upgrade: bool | None = None,
        name: str = "mutirao",
        patience: float = 30.0,
    ) -> None:
        self._address: Address = resolve(database)
        self._upgrade = self._address.is_embedded if upgrade is None else upgrade
        self.name = name
        self._patience = patience
        self.url = ""
        self.schedules = Schedules(self)
        self.persons = Persons(self)
        self.roles = Roles(self, self.persons)
        self.classes = Classes(self)
        self.worklists = Worklists(self, self.persons)
        self.charges = Charges(self, self.persons)
        self.library = Library(self)
        self.access = Access(self, self.persons)
        self.files = Files(self)
        self.answers = Answers(self)
        self.sources = Sources(self)
        self.deadlines = Deadlines(self)
        self.messages = Messages(self)
        self.webhooks = Webhooks(self)
        self.settings = Settings(self)
        self._reviving = asyncio.Lock()
        self._pool: Pool | None = None

    async def __aenter__(self) -> Self:
        self.url = self._address.__enter__()
        try:
            await self._prepare()
            pool = make_pool(self.url, self.name, self._patience, read_exact_numbers)
            await pool.open()
        except BaseException:
            self._address.close()
            raise
        self._pool = pool
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._pool is not None:
            await self._pool.close()
        self._address.close()

    def __str__(self) -> str:
        return str(self._address)

    @property
    def database(self) -> str:
        """The name of its database on the server."""
        return str(conninfo_to_dict(self.url).get("dbname") or "")

    async def _prepare(self) -> None:
        async with await connect(self.url) as connection:
            check_server(connection)
            if self._upgrade:
                await upgrade(connection)
            else:
                await ensure_current(connection)

    async def revive(self) -> None:
        """Called when the server does not answer: an embedded one that was killed is started again."""
        async with self._reviving:
            await asyncio.to_thread(self._address.revive)
            if self._pool is not None:
                await self._pool.check()  # or each dead connection would be somebody's error

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A connection in autocommit, for SQL of your own."""
        with refusals():
            held = joined(self.url)
            async with self._lease() if held is None else part_of(held) as connection:
                yield connection

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[AsyncConnection[Any]]:
        if self._pool is None:
            raise OperatorError("not_open", "the engine is not open: use it as `async with Engine() as engine`")
        try:
            async with self._pool.connection() as connection:
                yield connection
        except PoolTimeout as error:
            raise OperatorError("server_unreachable", f"{self} does not answer") from error

    async def ping(self) -> None:
        """Raises when the database does not answer."""
        await self._call("ping")

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Calls that happen all or none: those inside of the block, one after another."""
        async with self.connection() as connection, joining(self.url, connection):
            yield

    @asynccontextmanager
    async def unless_changed(self, instance: int, revision: int | None) -> AsyncIterator[None]:
        """Around what is done to an instance: refused if it was changed since this row of its trace; None: in any case."""
        async with self.together():
            if revision is not None:
                await self._call("check_unchanged", None, instance, revision)
            yield

    def signed_by(self, writer: str) -> "Engine":
        """The same engine, for calls that the trace says somebody else made."""
        other = copy(self)
        other.name = writer
        other.schedules = Schedules(other)
        other.library = Library(other)
        other.sources = Sources(other)
        return other

    def seen_by(self, person: int) -> Sight:
        """What the person of that number may see."""
        return Sight(self, person)

    # Instances

    async def start(
        self, state: HasState, *, priority: int = 0, key: str | None = None, at: datetime | None = None
    ) -> int:
        """Start one instance; answers its number. A key that the flow has an instance for starts none and answers that.

        With a time to come, a clock starts it then.
        """
        [batch] = starting.batches_of([state], None if key is None else [key])
        [instance] = await self._start(batch, priority, at)
        return instance

    async def start_many(
        self,
        states: Iterable[HasState],
        *,
        priority: int = 0,
        keys: Iterable[str | None] | None = None,
        at: datetime | None = None,
    ) -> list[int]:
        """Start an instance per state; answers their numbers in order. They are of one flow.

        A call of up to 5,000 is all or none. A larger one goes in batches of so many: where one is refused, others may
        have been started.
        """
        return await self._start_all(starting.batches_of(states, keys), priority, at)

    async def start_named(
        self,
        flow: str,
        states: Iterable[Change],
        *,
        priority: int = 0,
        keys: Iterable[str | None] | None = None,
        at: datetime | None = None,
    ) -> list[int]:
        """Start instances of a flow that this program knows only by name."""
        return await self._start_all(starting.batches_named(flow, states, keys), priority, at)

    async def _start_all(self, batches: Iterator[starting.Batch], priority: int, at: datetime | None) -> list[int]:
        numbered = enumerate(batches)
        started: dict[int, list[int]] = {}

        async def lane() -> None:
            for number, batch in numbered:
                try:
                    started[number] = await self._start(batch, priority, at)
                except RequestError as error:
                    if not number:
                        raise
                    first = number * starting.BATCH + 1
                    raise RequestError(error.code, f"{error.message} (counted from state {first})") from error

        lanes = [asyncio.ensure_future(lane()) for _ in range(_START_LANES)]
        try:
            await asyncio.gather(*lanes)
        finally:  # when one is refused, the other goes no further
            for each in lanes:
                each.cancel()
            await asyncio.wait(lanes)
        return [instance for number in sorted(started) for instance in started[number]]

    async def _start(self, batch: starting.Batch, priority: int, at: datetime | None) -> list[int]:
        keys = None if batch.keys is None else texts(batch.keys)
        note = carried_along(starting.note.get())
        values = (
            batch.flow,
            texts(batch.states),
            priority,
            self.name,
            keys,
            _instant(at),
            note and encode_plain(note).decode(),
        )
        async with self.connection() as connection:
            found = await connection.execute(query("start_many"), values)
            return [number for (number,) in await found.fetchall()]

    async def send(
        self,
        flow: str | type[HasDefinition],
        event: Event,
        *,
        only_if: str | None = None,
        reason: str | None = None,
    ) -> Sent:
        """Set attributes of the instance that has the event's key. Of events of one id only one is written.

        With `only_if`, only where that condition holds on its state: otherwise the answer is `not_now`.
        """
        change = encode_plain(event.change).decode()
        values = (_name_of(flow), event.key, change, event.id, only_if, reason, self.name)
        [answer] = await self._rows(Sent, "send", values)
        return answer

    async def send_many(
        self,
        flow: str | type[HasDefinition],
        events: Iterable[Event],
        *,
        only_if: str | None = None,
        reason: str | None = None,
    ) -> list[Sent]:
        """The same for many events, in batches of 5,000; answers what became of each, in their order.

        What is refused changes nothing and keeps no other from being written.
        """
        name = _name_of(flow)
        return [
            answer for batch in starting.in_batches(events) for answer in await self._send(name, batch, only_if, reason)
        ]

    async def _send(self, flow: str, batch: list[Event], only_if: str | None, reason: str | None) -> list[Sent]:
        changes = texts(encode_plain(each.change).decode() for each in batch)
        values = (flow, texts(each.key for each in batch), changes, texts(each.id for each in batch))
        answers = await self._rows(Sent, "send_many", [*values, only_if, reason, self.name])
        # A batch waits for nobody. Whatever somebody was writing meanwhile is sent again, and waits.
        for place, answer in enumerate(answers):
            if answer.code == "instance_busy":
                try:
                    answers[place] = await self.send(flow, batch[place], only_if=only_if, reason=reason)
                except (RequestError, FlowError) as error:
                    answers[place] = replace(answer, code=error.code, message=error.message)
        return answers

    async def instance(self, instance: int) -> Instance:
        found = await self._rows(Instance, "instance", {"id": instance})
        if not found:
            raise RequestError("unknown_instance", f"there is no instance {instance}")
        return found[0]

    async def keyed(self, flow: str, key: str) -> Instance | None:
        """The instance that was started with this key, if there is one."""
        async with self.connection() as connection:
            row = await (await connection.execute(query("keyed"), [flow, key])).fetchone()
        return None if row is None else await self.instance(row[0])

    async def instances(
        self,
        flow: str | None = None,
        *,
        status: str | None = None,
        where: tuple[str, str] | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[Instance]:
        """A page of instances, newest first; `status` is one or the beginning of one, `where` a searchable attribute."""
        if status is not None and not any(known.startswith(status) for known in STATUSES):
            raise RequestError("wrong_call", f'there is no status "{status}"; an instance is {", ".join(STATUSES)}')
        if where is not None and flow is None:
            raise RequestError("wrong_call", "a filter by attribute needs the flow that has it")
        number, value = (None, None) if flow is None else await self._search(flow, where)
        asked: dict[str, object] = {"flow": number, "status": status, "name": where and where[0], "value": value}
        asked |= {"before": before or 2**62, "limit": limit}
        # Open and closed ones are apart: where only one kind can match, the other is not even looked at.
        for kind in ("open", "closed"):
            asked[kind] = any(known.startswith(status or "") for known in STATUSES if known.startswith(kind))
        return await self._rows(Instance, "instances", asked)

    async def _search(self, flow: str, where: tuple[str, str] | None) -> tuple[int, str | None]:
        """The number of a flow, and the value that is asked for as it is kept."""
        name, value = where or (None, None)
        asked = {"flow": flow, "name": name, "value": value}
        async with self.connection() as connection:
            row = await (await connection.execute(query("flow_search"), asked)).fetchone()
        if row is None:
            raise RequestError("unknown_flow", f'there is no flow "{flow}"{suggest(flow, await self._flow_names())}')
        if where is not None and where[0] not in row[1]:
            declared = ", ".join(row[1]) or "none"
            raise RequestError(
                "not_searchable",
                f'attribute "{where[0]}" of flow "{flow}" is not declared searchable; those that are: {declared}',
            )
        return row[0], row[2]

    async def trace(self, instance: int) -> list[TraceRow]:
        found = await self._rows(TraceRow, "trace", [instance])
        if not found:
            raise RequestError("unknown_instance", f"there is no instance {instance}")
        return found

    async def why(self, instance: int, task: str | None = None, *, at: int | None = None) -> list[Why]:
        """Why an instance moves or does not: first about itself, then about each task, then about its end (`_FINAL`).

        With a task, only about that. With `at`, the number of a row of its trace, about that moment.
        """
        async with self.connection() as connection:
            rows = await (await connection.execute(query("why"), [instance, task, at])).fetchall()
        return [msgspec.convert(row, Why) for (row,) in rows]

    async def task_states(self, instance: int) -> list[TaskStanding]:
        """How each task of it stands."""
        return await self._rows(TaskStanding, "task_states", [instance])

    async def last_rows(self, instances: Sequence[int]) -> dict[int, tuple[int | None, ...]]:
        """The newest row of trace, comments and attachments of each of these, and how many comments: by them whoever watches sees that something has changed."""
        async with self.connection() as connection:
            found = await connection.execute(query("last_rows"), [list(instances)])
            return {instance: tuple(rows) for instance, *rows in await found.fetchall()}

    async def set(self, instance: int, change: Change, *, reason: str | None = None) -> None:
        """Change attributes from outside; conditions are looked at again."""
        await self._call("set", instance, encode_plain(change).decode(), reason, self.name)

    async def repair(self, instance: int, change: Change | None = None, *, reason: str | None = None) -> None:
        """Correct an instance that is an exception. Failed jobs go, and fire again where their conditions hold."""
        await self._call("repair", instance, encode_plain(change or {}).decode(), reason, self.name)

    async def cancel(self, instance: int, *, undo: bool = False, reason: str | None = None) -> None:
        """Stop an instance: what runs may finish, nothing else starts; or stop it and undo what it has done."""
        if undo:
            await self.roll_back(instance, reason=reason)
        else:
            await self._call("cancel", instance, reason, self.name)

    async def roll_back(self, instance: int, safe_point: str | None = None, *, reason: str | None = None) -> None:
        """Undo what it has done, by the compensations of its tasks: all of it, or back to a safe-point."""
        await self._call("roll_back", instance, safe_point, reason, self.name)

    async def start_task(self, instance: int, task: str, *, reason: str | None = None) -> None:
        """Start a task by hand, whether or not its condition holds."""
        await self._call("start_task", instance, task, reason, self.name)

    async def go_back(self, instance: int, task: str, *, reason: str | None = None) -> None:
        """Start a task again that has ended, as if nothing had followed it. Nothing is undone."""
        await self._call("go_back", instance, task, reason, self.name)

    async def suspend(self, instance: int, *, reason: str | None = None) -> None:
        """Interrupt an instance: what runs may finish, nothing else starts until it is resumed."""
        await self._call("suspend", instance, reason, self.name)

    async def resume(self, instance: int, *, reason: str | None = None) -> None:
        await self._call("resume", instance, reason, self.name)

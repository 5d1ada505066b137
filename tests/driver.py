"""Stories about instances, told to the database through its public functions only.

Every call of an `Engine` is made in a session that has forgotten those before it, all but its plans. So whatever a session
might keep to itself is lost between any two steps of a story: all that a process is stands in the tables.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple, Self

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from mutirao.testing import advance

LEASE = timedelta(seconds=60)

# What DISCARD ALL does, except that plans are kept.
_FORGET = """reset session authorization; reset all; close all; unlisten *; select pg_advisory_unlock_all();
discard temp; discard sequences"""


class Job(NamedTuple):
    """A job leased to a worker."""

    id: int
    attempt: int
    instance: int
    task: str
    failures: int
    timeout: float | None
    state: dict[str, Any]


class Told(NamedTuple):
    """What a worker was told about a job it gave back."""

    kind: str
    job: int
    note: dict[str, Any] | None


class Step(NamedTuple):
    """A row of the trace."""

    kind: str
    task: str | None
    fired: list[str]
    status: str
    state: dict[str, Any] | None
    writer: str
    job: int | None
    cause: int | None
    note: dict[str, Any] | None


class Engine:
    """Enter it, and its sessions are closed afterwards."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._sessions: list[AsyncConnection[Any]] = []
        self._idle: list[AsyncConnection[Any]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for session in self._sessions:
            await session.close()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncConnection[Any]]:
        if self._idle:
            session = self._idle.pop()
        else:
            session = await AsyncConnection.connect(self.url, autocommit=True, prepare_threshold=None)
            self._sessions.append(session)
        try:
            yield session
        finally:
            if not session.closed:
                await session.execute(_FORGET)
                self._idle.append(session)

    async def rows(self, query: str, *values: Any) -> list[Any]:
        async with self.session() as session:
            found = await session.execute(query.encode(), values)
            return await found.fetchall() if found.description is not None else []

    async def one(self, query: str, *values: Any) -> Any:
        (row,) = await self.rows(query, *values)
        return row[0]

    # ---------------------------------------------------------------------------------------------------- definitions

    async def apply(self, name: str, attributes: dict[str, Any], tasks: dict[str, Any], **more: Any) -> int:
        """Put a pinned flow in place; `tasks` gives a condition, or all that is to be said, for each name."""
        return int(await self.one("select mutirao.apply_flow(%s)", Jsonb(document(name, attributes, tasks, **more))))

    async def create(self, name: str, attributes: dict[str, Any], tasks: dict[str, str], final: str | None) -> None:
        """Define a live flow, by SQL, in one transaction."""
        async with await AsyncConnection.connect(self.url) as session:
            await session.execute("select mutirao.create_flow(%s)", [name])
            for aname, default in attributes.items():
                statement = f"insert into {name}.wed_attr (aname, adv) values (%s, %s)"
                await session.execute(statement.encode(), [aname, default])
            for trname, cpred in tasks.items():
                statement = f"insert into {name}.wed_trig (trname, cpred) values (%s, %s)"
                await session.execute(statement.encode(), [trname, cpred])
            if final is not None:
                statement = f"insert into {name}.wed_trig (cpred, cfinal) values (%s, true)"
                await session.execute(statement.encode(), [final])

    # ------------------------------------------------------------------------------------------------------- instances

    async def start(self, flow: str, priority: int = 0, **state: Any) -> int:
        return int(await self.one("select mutirao.start(%s, %s, %s)", flow, Jsonb(state), priority))

    async def start_many(self, flow: str, states: Sequence[dict[str, Any]]) -> list[int]:
        wrapped = [Jsonb(state) for state in states]
        return [i for (i,) in await self.rows("select * from mutirao.start_many(%s, %s::jsonb[])", flow, wrapped)]

    async def set(self, instance: int, **change: Any) -> None:
        await self.rows("select mutirao.set(%s, %s)", instance, Jsonb(change))

    async def repair(self, instance: int, **change: Any) -> None:
        await self.rows("select mutirao.repair(%s, %s)", instance, Jsonb(change))

    async def cancel(self, instance: int) -> None:
        await self.rows("select mutirao.cancel(%s)", instance)

    async def suspend(self, instance: int) -> None:
        await self.rows("select mutirao.suspend(%s)", instance)

    async def resume(self, instance: int) -> None:
        await self.rows("select mutirao.resume(%s)", instance)

    async def retry(self, job: int) -> None:
        await self.rows("select mutirao.retry(%s)", job)

    async def skip(self, job: int, **change: Any) -> None:
        await self.rows("select mutirao.skip(%s, %s)", job, Jsonb(change))

    # --------------------------------------------------------------------------------------------------------- workers

    async def claim(
        self, flow: str, *tasks: str, room: int = 1, worker: str = "ann", lease: timedelta = LEASE
    ) -> list[Job]:
        ids = await self.tasks(flow, *tasks)
        return _jobs(
            await self.rows("select * from mutirao.claim(%s, %s::int[], %s, %s)", worker, list(ids), room, lease), ids
        )

    async def take(self, flow: str, task: str, **how: Any) -> Job:
        """Claim the one job of this task that must be there."""
        (job,) = await self.claim(flow, task, **how)
        return job

    async def tasks(self, flow: str, *names: str) -> dict[int, str]:
        found = await self.rows("select id, name from mutirao.task_ids(%s, %s::text[])", flow, list(names) or None)
        return dict(found)

    async def turn(
        self,
        done: Sequence[tuple[Job, dict[str, Any]]] = (),
        failed: Sequence[tuple[Job, str]] = (),
        *,
        flow: str | None = None,
        room: int = 0,
        worker: str = "ann",
    ) -> tuple[list[Told], list[Job]]:
        """Give back what is done or failed, in that order, and get up to `room` jobs of `flow`."""
        ids = await self.tasks(flow) if flow else {}
        jobs = [job for job, _ in [*done, *failed]]
        changes = [Jsonb(change) for _, change in done] + [None] * len(failed)
        errors = [None] * len(done) + [Jsonb({"error": error}) for _, error in failed]
        rows = await self.rows(
            "select * from mutirao.turn(%s, %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], %s::int[], %s)",
            worker, [job.id for job in jobs], [job.attempt for job in jobs], changes, errors, list(ids), room,
        )  # fmt: skip
        told = [Told(row[0], row[1], row[8]) for row in rows if row[0] != "job"]
        return told, _jobs([row for row in rows if row[0] == "job"], ids)

    async def complete(self, job: Job, **change: Any) -> str:
        return str(await self.one("select mutirao.complete(%s, %s, %s)", job.id, job.attempt, Jsonb(change)))

    async def fail(self, job: Job, error: str = "no luck", *, final: bool = False) -> None:
        await self.rows("select mutirao.fail(%s, %s, %s, %s)", job.id, job.attempt, error, final)

    async def fail_for_good(self, job: Job, error: str = "no use") -> None:
        await self.fail(job, error, final=True)

    async def renew(self, *jobs: Job, lease: timedelta = LEASE) -> list[int]:
        values = [job.id for job in jobs], [job.attempt for job in jobs], lease
        return [
            attempt for (attempt,) in await self.rows("select mutirao.renew(%s::bigint[], %s::bigint[], %s)", *values)
        ]

    async def release(self, *jobs: Job) -> list[int]:
        values = [job.id for job in jobs], [job.attempt for job in jobs]
        return [job for (job,) in await self.rows("select mutirao.release(%s::bigint[], %s::bigint[])", *values)]

    async def do(self, flow: str, task: str, **change: Any) -> str:
        """Claim the job of this task and complete it."""
        return await self.complete(await self.take(flow, task), **change)

    # ------------------------------------------------------------------------------------------------------------ time

    async def advance(self, **by: float) -> None:
        async with self.session() as session:
            await advance(session, timedelta(**by))

    async def tick(self) -> tuple[int, int, int]:
        """One turn of a clock: how many it woke, how many leases it ended, how many instances it looked at again."""
        ((done,),) = await self.rows("select done from mutirao.turn_clock()")
        return done["retries"], done["leases"], done["versions"]

    @asynccontextmanager
    async def hearing(self) -> AsyncIterator[list[str]]:
        """What is notified meanwhile; to be read afterwards."""
        heard: list[str] = []
        async with await AsyncConnection.connect(self.url, autocommit=True) as session:
            await session.execute("listen mutirao")
            yield heard
            heard += [each.payload async for each in session.notifies(timeout=0.1)]

    async def until_caught_up(self) -> None:
        """Ticks until no live flow has a version that the clock must still look after.

        It is sure of that only when all transactions of this database that are older than the version have ended.
        """
        while await self.rows("select from mutirao.recheck"):
            await self.tick()

    # --------------------------------------------------------------------------------------------------------- reading

    async def status(self, instance: int) -> str:
        query = "select status::text from (select id, status from mutirao.instance union all select id, status from mutirao.closed) i where id = %s"
        return str(await self.one(query, instance))

    async def state(self, instance: int) -> dict[str, Any]:
        query = "select state from (select id, state from mutirao.instance union all select id, state from mutirao.closed) i where id = %s"
        return dict(await self.one(query, instance))

    async def reasons(self, instance: int) -> list[dict[str, Any]]:
        return list(await self.one("select coalesce(reasons, '[]') from mutirao.instance where id = %s", instance))

    async def codes(self, instance: int) -> list[str]:
        return [reason["code"] for reason in await self.reasons(instance)]

    async def jobs(self, instance: int) -> dict[str, str]:
        """The jobs of an instance: their status by task."""
        query = "select t.name, j.status::text from mutirao.job j join mutirao.task t on t.id = j.task where j.instance = %s order by j.id"
        return dict(await self.rows(query, instance))

    async def job(self, instance: int, task: str) -> int:
        query = (
            "select j.id from mutirao.job j join mutirao.task t on t.id = j.task where j.instance = %s and t.name = %s"
        )
        return int(await self.one(query, instance, task))

    async def trace(self, instance: int) -> list[Step]:
        query = """
            select t.kind, n.name, array(select f.name from unnest(t.fired) with ordinality x(id, o) join mutirao.task f on f.id = x.id order by x.o),
              t.status::text, t.state, t.writer, t.job, t.cause, t.note
            from mutirao.trace t left join mutirao.task n on n.id = t.task where t.instance = %s order by t.id"""
        return [Step._make(row) for row in await self.rows(query, instance)]

    async def kinds(self, instance: int) -> list[str]:
        return [step.kind for step in await self.trace(instance)]

    async def everything(self) -> dict[str, Any]:
        """All rows of all tables, and what was generated from them."""
        async with self.session() as session:
            found = await session.execute(
                "select oid::regclass::text from pg_class where relnamespace = 'mutirao'::regnamespace and relkind = 'r' order by 1"
            )
            whole: dict[str, Any] = {}
            for (table,) in await found.fetchall():
                rows = await session.execute(f"select t::text from {table} t order by 1".encode())
                whole[table] = await rows.fetchall()
            found = await session.execute(
                "select p.oid::regprocedure::text, prosrc from pg_proc p where pronamespace = 'mutirao_rule'::regnamespace order by 1"
            )
            whole["generated"] = await found.fetchall()
            return whole

    @asynccontextmanager
    async def refused(self, code: str, says: str = "") -> AsyncIterator[None]:
        """What is done inside is refused with this code and these words, and nothing has changed."""
        before = await self.everything()
        with pytest.raises(psycopg.Error) as refusal:
            yield
        message = refusal.value.diag.message_primary or ""
        assert message.startswith(f"{code}: "), message
        assert says in message
        known = await self.rows("select code from mutirao.refusal where sqlstate = %s", refusal.value.sqlstate)
        assert known == [(code,)] or refusal.value.sqlstate == "40001"
        assert await self.everything() == before


def document(name: str, attributes: dict[str, Any], tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A flow as `mutirao.apply_flow` takes it. An attribute is given by its default, or by all that is to be said."""
    types = {bool: "boolean", int: "integer", float: "number", str: "text", type(None): "text"}
    return {
        "name": name,
        "attributes": [
            {"name": key, **(value if isinstance(value, dict) else {"type": types[type(value)], "default": value})}
            for key, value in attributes.items()
        ],
        "tasks": [
            {"name": key, **(value if isinstance(value, dict) else {"when": value})} for key, value in tasks.items()
        ],
        **more,
    }


def after(task: str, state: str = "succeeded", **more: Any) -> dict[str, Any]:
    """A task that depends on another one."""
    return {"depends": {"task": task, "state": state}, **more}


def _jobs(rows: list[Any], names: dict[int, str]) -> list[Job]:
    return [Job(row[1], row[2], row[3], names[row[4]], row[5], row[6], row[7]) for row in rows]


@pytest.fixture(name="engine")
async def fresh_engine(database_url: str) -> AsyncIterator[Engine]:
    """A file that imports this has the fixture `engine`: a database of its own, without a flow."""
    async with Engine(database_url) as made:
        yield made

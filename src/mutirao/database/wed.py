"""A session as a WED-worker has one: it takes a job, updates wed_flow, and commits. Blocking, as that worker is.

What it updates with is a SET clause that somebody wrote. It runs with the rights of the session's own role.
"""

import time
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, NamedTuple, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mutirao.database.connection import refusals
from mutirao.database.keepalive import parameters
from mutirao.database.protocol import CLOCK_ROOM
from mutirao.database.sql import query
from mutirao.errors import FlowError, LeaseLost, RequestError

_NO_LEASE = timedelta(0)
_BUSY_PAUSE = 0.01


class TakenJob(NamedTuple):
    job: int
    attempt: int
    wid: int
    payload: dict[str, Any]


class WedSession:
    """One connection, by `dbs`, a libpq connection string; it does the jobs of one task of one flow."""

    def __init__(self, dbs: str, task: str, flow: str | None) -> None:
        with refusals():
            self._name = str(conninfo_to_dict(dbs).get("application_name") or f"ww-{task}")
            self._connection = psycopg.connect(dbs, autocommit=True, **parameters(dbs))
        self._task = task
        try:
            self._flow_number, self._flow = self._find_flow(flow)
            self._rows("listen")
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def _find_flow(self, given: str | None) -> tuple[int, str]:
        found = self._rows("flows_with_task", self._task)
        chosen = [(number, name) for number, name in found if given in (None, name)]
        if len(chosen) == 1:
            return chosen[0]
        names = ", ".join(name for _, name in found)
        if not found:
            raise FlowError("unknown_task", f'no flow in this database has a task "{self._task}"')
        if not chosen:
            raise FlowError("unknown_task", f'flow "{given}" has no task "{self._task}"; those that have: {names}')
        raise FlowError(
            "ambiguous_task",
            f'several flows have a task "{self._task}": {names}; say which in the worker\'s class: flow = "{chosen[0][1]}"',
        )

    def take(self) -> TakenJob | None:
        """Lease one job. It is committed at once, so that the clock can take the job away from us."""
        rows = self._rows("take", self._flow_number, self._task)
        return TakenJob._make(rows[0]) if rows else None

    def finish(self, taken: TakenJob, clause: str) -> None:
        """End the job by this SET clause."""
        with refusals():
            while not self._is_updated(taken, clause):
                pass

    def _is_updated(self, taken: TakenJob, clause: str) -> bool:
        """False when somebody else has written the same attributes meanwhile: the clause must see what they are now."""
        update = f'update "{self._flow}".wed_flow set {clause} where wid = {taken.wid}'
        try:
            with self._connection.transaction():
                self._connection.execute(query("name_attempt"), [str(taken.attempt)])
                # Without parameters, so that the clause may contain whatever SQL may, also a percent sign.
                if self._connection.execute(update.encode()).rowcount != 1:
                    raise RequestError("wrong_call", f'"{clause}" updates more or less than instance {taken.wid}')
        except psycopg.errors.SerializationFailure:
            return False
        return True

    def fail(self, taken: TakenJob, error: str) -> None:
        """Report a failed attempt by a JSON text; nothing happens if the job is not ours any more."""
        report = (self._name, [taken.job], [taken.attempt], [None], [error], list[int](), 0, _NO_LEASE)
        while any(kind == "busy" for kind, *_ in self._rows("turn", *report)):
            time.sleep(_BUSY_PAUSE)

    def park(self, taken: TakenJob, problem: str) -> None:
        """Let the job wait until another one of its instance has ended."""
        with suppress(LeaseLost):
            self._rows("park", taken.job, taken.attempt, None, problem)

    def release(self, taken: TakenJob) -> None:
        self._rows("release", [taken.job], [taken.attempt])

    def turn_clock(self) -> float | None:
        """Look after time; answers in how many seconds there is something to do again."""
        [(_, next_in)] = self._rows("turn_clock", CLOCK_ROOM, None)
        return None if next_in is None else float(next_in)

    def wait(self, seconds: float) -> None:
        """Until something is ready in this database, or the time is over."""
        with refusals():
            for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                pass

    def _rows(self, name: str, *values: Any) -> list[Any]:
        with refusals():
            found = self._connection.execute(query(name), values or None)
            return found.fetchall() if found.description else []

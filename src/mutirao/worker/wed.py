"""The worker of WED-SQL: a class that names a transition and returns its change as the text of a SET clause.

    from mutirao.worker.wed import BaseClass

    class MyWorker(BaseClass):
        def __init__(self):
            super().__init__('tr_aaa', 'user=aaa dbname=aaa application_name=ww-tr_aaa', 5)

        def wed_trans(self, payload):
            return "a2='done', a4=(a4::integer+1)::text"

    MyWorker().run()

It does one job after another, in a database that it has a role in, and it needs nothing else from this package. New
programs are better off with `Worker`: typed, many jobs at a time.
"""

import logging
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from mutirao.database.protocol import Backoff, is_lost
from mutirao.database.wed import TakenJob, WedSession
from mutirao.errors import LeaseLost, MutiraoError
from mutirao.worker.running import failure, failure_of

log = logging.getLogger(__name__)

_PARKING = ("final_blocked", "condition_failed")
_SHORTEST_PAUSE = 0.02


class BaseClass(ABC):
    """`trname` is the task, `dbs` a libpq connection string, `wakeup_interval` how many seconds to wait for a call.

    Where several flows have a task of that name, set `flow` in the class.
    """

    flow: ClassVar[str | None] = None

    def __init__(self, trname: str, dbs: str, wakeup_interval: float) -> None:
        self._trname = trname
        self._dbs = dbs
        self._wakeup_interval = wakeup_interval

    @abstractmethod
    def wed_trans(self, payload: dict[str, Any]) -> str | None:
        """Do the task on the state that fired it. Return the new values as in SQL's SET, or None to abort."""

    def run(self) -> None:
        """Work until interrupted. The first connection must succeed; one that is lost later is made anew."""
        backoff = Backoff()
        session = self._connect()
        while True:
            try:
                with session:
                    self._work(session)
            except MutiraoError as error:
                if not is_lost(error):
                    raise
                log.warning("waiting for the server: %s", error)
            session = self._connect_again(backoff)

    def _connect(self) -> WedSession:
        return WedSession(self._dbs, self._trname, self.flow)

    def _connect_again(self, backoff: Backoff) -> WedSession:
        while True:
            time.sleep(backoff.next_pause())
            try:
                return self._connect()
            except MutiraoError as error:
                if not is_lost(error):
                    raise

    def _work(self, session: WedSession) -> None:
        while True:
            while taken := session.take():
                self._do(session, taken)
            session.wait(self._pause(session.turn_clock()))

    def _pause(self, next_in: float | None) -> float:
        """Until we are called, and no longer than until something falls due: so a lone worker needs no clock."""
        return self._wakeup_interval if next_in is None else min(self._wakeup_interval, max(next_in, _SHORTEST_PAUSE))

    def _do(self, session: WedSession, taken: TakenJob) -> None:
        try:
            clause = self.wed_trans(taken.payload)
        except Exception as error:  # noqa: BLE001 whatever user code raises is its outcome
            session.fail(taken, str(failure_of(error).error))
        except BaseException:
            with suppress(MutiraoError):
                session.release(taken)
            raise
        else:
            self._finish(session, taken, clause)

    def _finish(self, session: WedSession, taken: TakenJob, clause: str | None) -> None:
        if clause is None:
            session.fail(taken, str(failure("wed_trans returned None", code="returned_none").error))
            return
        try:
            session.finish(taken, clause)
        except LeaseLost as error:
            extra = {"instance": taken.wid, "job": taken.job, "attempt": taken.attempt, "task": self._trname}
            log.warning("job %s: %s", taken.job, error, extra=extra)
        except MutiraoError as error:
            if is_lost(error):
                raise
            if error.code in _PARKING:
                session.park(taken, msgspec.json.encode({"code": error.code, "error": error.message}).decode())
            else:
                session.fail(taken, str(failure(error.message, code=error.code).error))

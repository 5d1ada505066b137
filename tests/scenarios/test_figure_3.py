"""Figure 3 of WED-SQL: its worker runs with only its import line changed."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from psycopg import AsyncConnection, sql
from worker_stage import Stage, stage_on, until

from mutirao import Failed, FlowError
from mutirao.testing.database import TestServer
from mutirao.worker.wed import BaseClass

FIGURE_3 = """\
from BaseWorker import BaseClass

class MyWorker(BaseClass):

    #trname and dbs variables are static in order to conform
    #with the definition of wed_trans()
    trname = 'tr_aaa'
    dbs = 'user=aaa dbname=aaa application_name=ww-tr_aaa'
    wakeup_interval = 5

    def __init__(self):
        super().__init__(MyWorker.trname,MyWorker.dbs,MyWorker.wakeup_interval)

    # Compute the WED-transition and return a string as the new WED-state,
    #using the SQL SET clause syntax. Return None to abort transaction
    def wed_trans(self,payload):
        return "a2='done', a3='ready', a4=(a4::integer+1)::text"

w = MyWorker()
try:
    w.run()
except KeyboardInterrupt:
    print()
"""
THEIR_IMPORT = "from BaseWorker import BaseClass"
OUR_IMPORT = "from mutirao.worker.wed import BaseClass"

FLOW = """
select mutirao.create_flow('aaa');
begin;
insert into aaa.wed_attr (aname, adv) values ('a1', 'ready'), ('a2', null), ('a3', null), ('a4', '1');
insert into aaa.wed_trig (trname, cpred) values ('tr_aaa', $$a1 = 'ready' and a2 is null$$);
insert into aaa.wed_trig (cpred, cfinal) values ($$a2 = 'done' and a3 = 'ready'$$, true);
commit;
"""


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with stage_on(database_url) as made:
        await made.do(FLOW)
        yield made


# -------------------------------------------------------------------------------------------------------------- as printed


@pytest.fixture
async def database_aaa(server: TestServer, database_url: str) -> AsyncIterator[str]:
    """The figure's own database and user; who it is may do jobs, and nothing else."""
    async with await AsyncConnection.connect(database_url, autocommit=True) as owner:
        await owner.execute(FLOW.encode())
    name = sql.Identifier(urlsplit(database_url).path[1:])
    async with await AsyncConnection.connect(server.superuser_url("postgres"), autocommit=True) as superuser:
        await superuser.execute("create role aaa login")
        await superuser.execute(sql.SQL("alter database {} rename to aaa").format(name))
    async with await AsyncConnection.connect(server.url("aaa"), autocommit=True) as owner:
        await owner.execute("select mutirao.grant_role('aaa', 'work')")
    yield server.url("aaa")
    async with await AsyncConnection.connect(server.superuser_url("aaa"), autocommit=True) as superuser:
        await superuser.execute("drop owned by aaa")
    async with await AsyncConnection.connect(server.superuser_url("postgres"), autocommit=True) as superuser:
        await superuser.execute(sql.SQL("alter database aaa rename to {}").format(name))
        await superuser.execute("drop role aaa")


async def test_figure_3_runs_with_only_its_import_line_changed(database_aaa: str, tmp_path: Path) -> None:
    file = tmp_path / "figure_3.py"
    file.write_text(FIGURE_3.replace(THEIR_IMPORT, OUR_IMPORT))
    host = parse_qs(urlsplit(database_aaa).query)["host"][0]
    process = await asyncio.create_subprocess_exec(
        sys.executable, file, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={"PGHOST": host}
    )
    try:
        async with stage_on(database_aaa) as stage:
            for _ in range(3):
                [(wid,)] = await stage.rows("insert into aaa.wed_flow default values returning wid")
                found = await stage.comes_to(wid)
                assert found.state == {"a1": "ready", "a2": "done", "a3": "ready", "a4": "2"}
            trace = await stage.rows("select trw, status from aaa.wed_trace where wid = %s order by tstmp", wid)
            assert trace == [(None, "R"), ("tr_aaa", "F")]
            assert (await stage.engine.trace(wid))[-1].writer == "aaa"
        process.send_signal(signal.SIGINT)
        said, complained = await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, said.decode(), complained.decode()) == (0, "\n", "")


# ---------------------------------------------------------------------------------------------------- the class in general


class Enough(BaseException):
    """Raised by user code to end `run`, as Ctrl-C would."""


class Scripted(BaseClass):
    """Returns what it is told, one job after another; with the next job after `has_enough` it ends."""

    def __init__(self, url: str, *script: Any, trname: str = "tr_aaa") -> None:
        super().__init__(trname, f"{url}&application_name=ww-{trname}", 0.05)
        self.script = list(script)
        self.payloads: list[dict[str, Any]] = []
        self.has_enough = False

    def wed_trans(self, payload: dict[str, Any]) -> str | None:
        if self.has_enough:
            raise Enough
        self.payloads.append(payload)
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        assert step is None or isinstance(step, str)
        return step


@asynccontextmanager
async def working(stage: Stage, worker: Scripted) -> AsyncIterator[None]:
    running = asyncio.create_task(asyncio.to_thread(worker.run))
    try:
        yield
    finally:
        worker.has_enough = True
        await start(stage, worker.flow or "aaa")
        with pytest.raises(Enough):
            await asyncio.wait_for(running, 30)


async def start(stage: Stage, flow: str = "aaa") -> int:
    [(wid,)] = await stage.rows(f"insert into {flow}.wed_flow default values returning wid")
    return int(wid)


DONE = "a2='done', a3='ready'"


async def test_payload_is_the_state_and_an_interrupt_gives_the_job_back(stage: Stage, database_url: str) -> None:
    worker = Scripted(database_url, DONE)
    async with working(stage, worker):
        await stage.comes_to(await start(stage))
    assert worker.payloads == [{"a1": "ready", "a2": None, "a3": None, "a4": "1"}]
    [job] = await stage.engine.jobs()
    assert (job.status, job.failures, job.worker) == ("ready", 0, None)


@pytest.mark.parametrize(
    ("step", "code", "says"),
    [
        (None, "returned_none", "wed_trans returned None"),
        (LookupError("no hotel"), "LookupError", "no hotel"),
        ("a2 = ", "database_error", "syntax error"),
        ("a9 = 'x'", "database_error", "a9"),
        ("a4 = ('x'::integer)::text", "wrong_call", "invalid input syntax"),
        ("a4 = 'x' where false --", "wrong_call", "more or less"),
    ],
)
async def test_what_aborts_uses_a_retry_and_is_tried_again(
    stage: Stage, database_url: str, step: Any, code: str, says: str
) -> None:
    """It looks after time itself: nobody else is there to wake what waits for another try."""
    async with working(stage, Scripted(database_url, step, DONE)):
        wid = await start(stage)
        await stage.comes_to(wid)
    trace = await stage.engine.trace(wid)
    assert [row.kind for row in trace] == ["start", "retry", "finish"]
    assert trace[1].note is not None
    assert trace[1].note["code"] == code
    assert says in trace[1].note["error"]


async def test_failed_is_for_good(stage: Stage, database_url: str) -> None:
    async with working(stage, Scripted(database_url, Failed("closed down"))):
        await stage.comes_to(await start(stage), "open.exception")


async def test_final_state_waits_for_the_other_jobs(stage: Stage, database_url: str) -> None:
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("insert into aaa.wed_attr (aname) values ('b')")
        await connection.execute("insert into aaa.wed_trig (trname, cpred) values ('tr_b', 'b is null')")
    async with working(stage, Scripted(database_url, DONE, DONE)):
        wid = await start(stage)
        parked = await stage.job_comes_to(wid, "parked")
        assert (parked.task, parked.failures) == ("tr_aaa", 0)
        async with working(stage, Scripted(database_url, "b = 'done'", trname="tr_b")):
            await stage.comes_to(wid)
    assert await stage.kinds(wid) == ["start", "parked", "finish", "finish"]


async def test_lost_lease_is_not_written(stage: Stage, database_url: str) -> None:
    loop = asyncio.get_running_loop()

    class Robbed(Scripted):
        def wed_trans(self, payload: dict[str, Any]) -> str | None:
            if not self.payloads:
                asyncio.run_coroutine_threadsafe(steal(), loop).result(30)
            return super().wed_trans(payload)

    async def steal() -> None:
        await stage.advance(hours=1)
        await stage.rows("select * from mutirao.turn_clock()")
        [(number,)] = await stage.rows("select id from mutirao.task_ids('aaa')")
        [claimed] = await stage.rows("select job, attempt from mutirao.claim('bob', array[%s])", number)
        change = '{"a2": "done", "a3": "ready", "a4": "bob"}'
        await stage.rows("select mutirao.complete(%s, %s, %s)", *claimed, change)

    worker = Robbed(database_url, DONE, DONE)
    async with working(stage, worker):
        wid = await start(stage)
        await stage.comes_to(wid)
        await stage.comes_to(await start(stage))  # it goes on
    assert (await stage.engine.instance(wid)).state["a4"] == "bob"
    assert await stage.kinds(wid) == ["start", "finish"]


async def test_worker_comes_back_when_its_connection_was_lost(stage: Stage, database_url: str) -> None:
    kill = (
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
        "where datname = current_database() and application_name = 'ww-tr_aaa'"
    )
    async with working(stage, Scripted(database_url, DONE, DONE, DONE)):
        await stage.comes_to(await start(stage))
        for _ in range(2):
            await until(lambda: stage.rows(kill))
            await stage.comes_to(await start(stage))


async def test_unknown_task_is_refused_at_once(stage: Stage, database_url: str) -> None:
    assert await stage.engine.flows("aaa")
    with pytest.raises(FlowError, match='unknown_task: no flow in this database has a task "tr_zzz"'):
        Scripted(database_url, trname="tr_zzz").run()


async def test_task_of_several_flows_needs_the_flow_named(stage: Stage, database_url: str) -> None:
    await stage.do(FLOW.replace("aaa.", "bbb.").replace("'aaa'", "'bbb'"))
    with pytest.raises(FlowError) as refusal:
        Scripted(database_url).run()
    assert refusal.value.code == "ambiguous_task"
    assert 'aaa, bbb; say which in the worker\'s class: flow = "aaa"' in str(refusal.value)

    class Chosen(Scripted):
        flow = "bbb"

    async with working(stage, Chosen(database_url, DONE)):
        await stage.comes_to(await start(stage, "bbb"))


async def test_flow_without_the_task_is_refused(stage: Stage, database_url: str) -> None:
    class Mistaken(Scripted):
        flow = "ccc"

    assert await stage.engine.flows("aaa")
    with pytest.raises(FlowError, match='unknown_task: flow "ccc" has no task "tr_aaa"; those that have: aaa'):
        Mistaken(database_url).run()

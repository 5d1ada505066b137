"""What a worker gives to the functions of a flow, and what it makes of what they return."""

import asyncio
import threading
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from one_task import FIVE_MINUTES, Once, first_failure
from worker_stage import Stage, fresh_stage, until  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, FlowError, Job, Json, handles, task


async def test_async_and_blocking_functions_work_side_by_side(stage: Stage) -> None:
    class Both(Flow):
        one: str | None = None
        other: str | None = None
        final = "one is not null and other is not null"

        @task(when="one is null")
        async def on_the_loop(self) -> Change:
            await asyncio.sleep(0)
            return {"one": threading.current_thread().name}

        @task(when="other is null")
        def in_a_thread(self) -> Change:
            return {"other": threading.current_thread().name}

    async with stage.working(Both):
        started = await stage.engine.start(Both())
        state = (await stage.comes_to(started)).state
    assert state["one"] == "MainThread"
    assert state["other"].startswith("mutirao-job")


async def test_state_comes_typed_and_changes_are_merged(stage: Stage) -> None:
    seen: list[Any] = []

    class Typed(Once):
        text: str = "ä"
        whole: int = 7
        exact: Decimal = Decimal("0.10")
        yes: bool = True
        day: date = date(2024, 2, 29)
        moment: datetime = datetime(2024, 2, 29, 12, tzinfo=UTC)
        anything: Json = None

        @task(when="result is null")
        async def look(self) -> Change:
            seen.append(self)
            return {"result": "seen", "exact": self.exact + 1, "anything": [self.day.isoformat(), None]}

    given = Typed(whole=8, anything={"a": [1]})
    async with stage.working(Typed):
        started = await stage.engine.start(given)
        state = (await stage.comes_to(started)).state
    assert seen == [given]
    assert Typed.load_state(await _state_text(stage, started)).exact == Decimal("1.10")
    assert state["anything"] == ["2024-02-29", None]
    assert state["text"] == "ä"


async def _state_text(stage: Stage, instance: int) -> str:
    [(text,)] = await stage.rows("select state::text from mutirao.closed where id = %s", instance)
    return str(text)


async def test_function_that_asks_for_its_job_gets_it(stage: Stage) -> None:
    seen: list[Job] = []

    class Asking(Once):
        @task(when="result is null", backoff=timedelta(0))
        def look(self, job: Job) -> Change:
            seen.append(job)
            if job.retries_used == 0:
                raise RuntimeError
            return {"result": "seen"}

    async with stage.working(Asking):
        started = await stage.engine.start(Asking())
        await stage.comes_to(started)
    first, second = seen
    assert (first.flow, first.task, first.instance_id, first.retries_used) == ("asking", "look", started, 0)
    assert (second.id, second.retries_used) == (first.id, 1)
    assert second.attempt > first.attempt


async def test_functions_bound_by_handles_do_jobs_of_a_flow_in_sql(stage: Stage) -> None:
    await stage.do("select mutirao.create_flow('travel')")
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("insert into travel.wed_attr (aname, adv) values ('a1', 'ready'), ('a2', null)")
        await connection.execute("insert into travel.wed_trig (trname, cpred) values ('tr_a2', 'a2 is null')")
        await connection.execute("insert into travel.wed_trig (cpred, cfinal) values ('a2 is not null', true)")

    @handles("travel", "tr_a2")
    def book(state: Mapping[str, Any]) -> Change:
        return {"a2": f"{state['a1']} and done"}

    async with stage.working(book):
        [(started,)] = await stage.rows("insert into travel.wed_flow default values returning wid")
        state = (await stage.comes_to(started)).state
    assert state == {"a1": "ready", "a2": "ready and done"}


async def test_one_worker_does_several_flows(stage: Stage) -> None:
    class First(Once):
        @task(when="result is null")
        async def work(self) -> Change:
            return {"result": "first"}

    class Second(Once):
        @task(when="result is null")
        def work(self) -> Change:
            return {"result": "second"}

    async with stage.working(First, Second):
        first, second = await stage.engine.start(First()), await stage.engine.start(Second())
        assert (await stage.comes_to(first)).state == {"result": "first"}
        assert (await stage.comes_to(second)).state == {"result": "second"}


async def test_worker_leaves_tasks_alone_that_it_has_no_function_for(stage: Stage) -> None:
    await stage.do("select mutirao.create_flow('shared')")
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("insert into shared.wed_attr (aname) values ('a'), ('b')")
        await connection.execute(
            "insert into shared.wed_trig (trname, cpred) values ('ta', 'a is null'), ('tb', 'b is null')"
        )
        await connection.execute("insert into shared.wed_trig (cpred, cfinal) values ('a = b', true)")

    @handles("shared", "ta")
    async def ours(_: Mapping[str, Any]) -> Change:
        return {"a": "done"}

    async with stage.working(ours):
        [(started,)] = await stage.rows("insert into shared.wed_flow default values returning wid")

        async def only_the_other_is_left() -> bool:
            return [(each.task, each.status) for each in await stage.engine.jobs(started)] == [("tb", "ready")]

        await until(only_the_other_is_left)


@pytest.mark.parametrize("wrong", ["travel:Travel", print, Once])
async def test_worker_refuses_what_is_no_flow(stage: Stage, wrong: object) -> None:
    with pytest.raises((FlowError, AttributeError)):
        async with stage.working(wrong):
            await stage.rows("select")


async def test_none_is_a_failed_attempt(stage: Stage) -> None:
    class Forgetful(Once):
        @task(when="result is null", backoff=FIVE_MINUTES)
        async def work(self) -> Change:
            return None  # type: ignore[return-value]

    error = await first_failure(stage, Forgetful)
    assert error["code"] == "returned_none"
    assert "return the change" in error["error"]


@pytest.mark.parametrize(
    ("returned", "code", "says"),
    [
        ({"reslut": "x"}, "unknown_attribute", 'has no attribute "reslut"'),
        ({"result": 5}, "wrong_type", 'attribute "result"'),
        ({"result": "a\0b"}, "wrong_type", 'attribute "result"'),
        ("done", "wrong_type", "got str"),
        (["result"], "wrong_type", "got list"),
    ],
)
async def test_wrong_change_is_a_failed_attempt_told_in_one_line(
    stage: Stage, returned: Any, code: str, says: str
) -> None:
    class Wrong(Once):
        @task(when="result is null", backoff=FIVE_MINUTES)
        def work(self) -> Change:
            return returned  # type: ignore[no-any-return]

    error = await first_failure(stage, Wrong)
    assert error["code"] == code
    assert says in error["error"]
    assert "\n" not in error["error"]
    assert "traceback" not in error


async def test_wrong_change_for_a_flow_in_sql_is_a_failed_attempt(stage: Stage) -> None:
    await stage.do("select mutirao.create_flow('plain')")
    async with stage.engine.connection() as connection, connection.transaction():
        await connection.execute("insert into plain.wed_attr (aname, atype) values ('n', 'integer')")
        await connection.execute("insert into plain.wed_trig (trname, cpred) values ('count', 'n is null')")
        await connection.execute("insert into plain.wed_trig (cpred, cfinal) values ('n > 1', true)")

    @handles("plain", "count")
    def count(_: Mapping[str, Any]) -> Change:
        return {"n": "many"}

    async with stage.working(count):
        [(started,)] = await stage.rows("insert into plain.wed_flow default values returning wid")
        job = await stage.job_comes_to(started, "waiting")
    assert job.error is not None
    assert job.error["code"] in ("wrong_type", "unknown_attribute")

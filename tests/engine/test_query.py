"""Queries: asked of a named database when a job begins, written before its work does, and never able to write there."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

import pytest
from worker_stage import Stage, stage_on, until

from mutirao import Change, Flow, FlowError, Query, RequestError, handles, task
from mutirao.database.query import MOST_BYTES, MOST_ROWS, run_queries
from mutirao.model import Attribute, Definition, Offer, Task
from mutirao.testing.database import TestServer

HOTELS = "select name, stars, price from hotel where city = :city and stars >= :stars order by name"


class Trip(Flow):
    city: str = "Recife"
    stars: int = 3
    hotels: Annotated[list[Any] | None, Query("guide", HOTELS)] = None
    hotel: str | None = None
    final = "hotel is not null"

    @task(when="hotel is null", retries=0)
    def book(self) -> Change:
        assert self.hotels is not None
        return {"hotel": self.hotels[0]["name"]}


def asking(expression: str, **more: Any) -> Definition:
    """A flow with one task that takes `rows`."""
    attributes = (
        Attribute("city", "text", default="Recife"),
        Attribute("rows", "json", query=Query("guide", expression)),
        Attribute("done", "boolean", default=False),
    )
    asks = Task(name="use", when="not done", retries=0, **more)
    idle = Task(name="idle", when="city = 'Olinda'", fires="once", inputs=("city",))
    return Definition(name="asking", attributes=attributes, tasks=(asks, idle), final="done")


@pytest.fixture
async def guide(server: TestServer) -> AsyncIterator[str]:
    """Another database, of hotels."""
    async with server.clone() as url, stage_on(url) as other:
        await other.do("create sequence number")
        await other.do("create table hotel (name text, city text, stars int, price numeric, seen timestamptz)")
        await other.do(
            "insert into hotel values ('Sol', 'Recife', 4, 99.90, '2031-12-24T18:00Z'), ('Mar', 'Recife', 3, "
            "12345678901234567890.123, null), ('Lua', 'Recife', 2, 10, null), ('Praia', 'Olinda', 5, 300, null)"
        )
        yield url


@pytest.fixture
async def stage(database_url: str, guide: str) -> AsyncIterator[Stage]:
    async with stage_on(database_url) as made:
        await made.engine.sources.put("guide", guide, within=timedelta(seconds=5))
        yield made


async def problem(stage: Stage, expression: str, **more: Any) -> dict[str, Any]:
    """How the one attempt of a job failed whose task takes what the expression gives."""
    await stage.engine.apply(asking(expression, **more))
    async with stage.working(use):
        [number] = await stage.engine.start_named("asking", [{}])
        found = await stage.job_comes_to(number, "failed")
    assert found.error is not None
    assert (await stage.engine.instance(number)).state["rows"] is None
    return found.error


@handles("asking", "use")
def use(_: Any) -> Change:
    return {"done": True}


async def test_rows_are_written_before_the_work_begins(stage: Stage) -> None:
    async with stage.working(Trip):
        number = await stage.engine.start(Trip())
        found = await stage.comes_to(number)
    assert found.state["hotel"] == "Mar"
    assert [each["stars"] for each in found.state["hotels"]] == [3, 4]
    assert str(found.state["hotels"][0]["price"]) == "12345678901234567890.123"
    assert await stage.kinds(number) == ["start", "query", "finish"]
    asked = (await stage.engine.trace(number))[1]
    assert (asked.task, asked.writer, asked.note) == ("book", "test", {"attributes": ["hotels"]})
    assert asked.job is not None
    assert asked.attempt is not None


async def test_a_parameter_is_a_value_whatever_it_says(stage: Stage) -> None:
    async with stage.working(Trip):
        number = await stage.engine.start(Trip(city="Recife' or 'a' = 'a", stars=0))
        job = await stage.job_comes_to(number, "failed")
    assert job.error is not None
    assert job.error["code"] == "IndexError"  # no hotel there
    assert (await stage.engine.instance(number)).state["hotels"] == []


async def test_an_answer_lets_conditions_be_looked_at(stage: Stage) -> None:
    flow = asking("select 1 as one")
    flow = replace(flow, tasks=(*flow.tasks, Task(name="look", when="rows is not null", fires="once", inputs=())))
    await stage.engine.apply(flow)
    [number] = await stage.engine.start_named("asking", [{}])
    [(tid,)] = await stage.rows("select id from mutirao.task where name = 'use'")
    [(job, attempt)] = await stage.rows("select job, attempt from mutirao.claim('ann', array[%s]::int[])", tid)
    state = await run_queries(stage.engine, job, attempt)
    assert state is not None
    assert b'"rows": [{"one": 1}]' in state
    assert {each.task for each in await stage.engine.jobs(number)} == {"use", "look"}
    assert await run_queries(stage.engine, job, attempt) is None  # once in an attempt
    assert await stage.kinds(number) == ["start", "query"]


async def test_who_does_not_hold_the_job_writes_nothing(stage: Stage) -> None:
    await stage.engine.apply(asking("select 1 as one"))
    [number] = await stage.engine.start_named("asking", [{}])
    [job] = await stage.engine.jobs(number)
    assert await run_queries(stage.engine, job.id, 999) is None
    with pytest.raises(RequestError) as refusal:
        await stage.do("select mutirao.fill(%s, 999, '{\"rows\": []}')", job.id)
    assert refusal.value.code == "lease_lost"
    [(tid,)] = await stage.rows("select id from mutirao.task where name = 'use'")
    [(attempt,)] = await stage.rows("select attempt from mutirao.claim('ann', array[%s]::int[])", tid)
    with pytest.raises(RequestError) as refusal:
        await stage.do("select mutirao.fill(%s, %s, '{\"done\": true}')", job.id, attempt)
    assert refusal.value.code == "wrong_output"


async def test_a_task_that_does_not_take_it_does_not_ask(stage: Stage) -> None:
    @handles("asking", "idle")
    def idle(_: Any) -> Change:
        return {}

    await stage.engine.apply(asking("select 1 / 0 as never", inputs=("rows",)))
    async with stage.working(idle):
        [number] = await stage.engine.start_named("asking", [{"city": "Olinda"}])

        async def done() -> bool:
            return "finish" in await stage.kinds(number)

        await until(done)
    assert await stage.kinds(number) == ["start", "finish"]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("select * from hotels", 'relation "hotels" does not exist'),
        ("insert into hotel (name) values ('x') returning name", "syntax error"),
        ("with gone as (delete from hotel returning name) select * from gone", "must be at the top level"),
        ("select setval('s', 1) from (select 1) x", "does not exist"),
        ("select nextval('number')", "read-only transaction"),
        ("select set_config('transaction_read_only', 'off', false)", "read-write mode must be set before any query"),
        ("select 1) q; drop table hotel; --", "one statement"),
        ("select 1 as a) q limit 0 --\n; drop table hotel", "one statement"),
        ("select n from generate_series(1, 20000) n", f"more than {MOST_ROWS:,} rows"),
        ("select repeat('x', 2000000) as x", f"{MOST_BYTES:,} bytes"),
    ],
)
async def test_what_cannot_be_had_fails_the_attempt(stage: Stage, guide: str, expression: str, says: str) -> None:
    if "one statement" in says:
        await stage.engine.apply(asking("select 1"))
        await stage.do(
            "update mutirao.attribute set query = jsonb_set(query, '{expression}', to_jsonb(%s::text)) "
            "where query is not null",
            expression,
        )
        async with stage.working(use):
            [number] = await stage.engine.start_named("asking", [{}])
            error = (await stage.job_comes_to(number, "failed")).error
        assert error is not None
    else:
        error = await problem(stage, expression)
    assert error["code"] == "query_failed"
    assert error["error"].startswith('attribute "rows", database "guide": ')
    assert says in error["error"]
    async with stage_on(guide) as other:
        assert await other.rows("select count(*) from hotel") == [(4,)]


async def test_what_a_query_wrote_all_the_same_is_undone(stage: Stage, guide: str) -> None:
    """In PostgreSQL 15, large objects can be made in a read-only transaction."""
    await stage.engine.apply(asking("select lo_create(0) is not null as made"))
    async with stage.working(use):
        [number] = await stage.engine.start_named("asking", [{}])
        await until(lambda: stage.rows("select from mutirao.trace where instance = %s and kind <> 'start'", number))
    async with stage_on(guide) as other:
        assert await other.rows("select from pg_largeobject_metadata") == []


async def test_a_query_that_takes_too_long_is_stopped(stage: Stage, guide: str) -> None:
    await stage.engine.sources.put("guide", guide, within=timedelta(milliseconds=200))
    error = await problem(stage, "select pg_sleep(30)")
    assert error["error"] == 'attribute "rows", database "guide": it took longer than 0.2 s'


async def test_a_database_that_nobody_named_or_that_is_away(stage: Stage) -> None:
    """A flow that is in place stays as it is; one that is put in place is refused."""
    await stage.engine.apply(asking("select 1 as one"))
    await stage.engine.sources.remove("guide")
    assert "there is no database of that name" in (await problem(stage, "select 1 as one"))["error"]
    with pytest.raises(
        FlowError, match='"rows": there is no database "guide"; name it first, by mutirao database add'
    ) as refused:
        await stage.engine.apply(asking("select 2 as two"))
    assert refused.value.code == "unknown_database"
    await stage.engine.sources.put("guides", "postgresql://nobody@127.0.0.1:1/nowhere")
    with pytest.raises(FlowError, match='did you mean "guides"'):
        await stage.engine.apply(asking("select 2 as two"))


async def test_the_password_is_in_no_refusal(stage: Stage) -> None:
    await stage.engine.sources.put("guide", "postgresql://reader:s3cret@127.0.0.1:1/nowhere")
    error = await problem(stage, "select 1 as one")
    assert error["code"] == "query_failed"
    assert "s3cret" not in str(error)
    assert "s3cret" not in repr(await stage.engine.sources.all())


async def test_a_failed_query_uses_a_retry_like_any_failure(stage: Stage, guide: str) -> None:
    flow = asking("select * from later")
    tasks = (replace(flow.tasks[0], retries=1, backoff=timedelta(minutes=1)), *flow.tasks[1:])
    await stage.engine.apply(replace(flow, tasks=tasks))
    async with stage.working(use), stage_on(guide) as other:
        [number] = await stage.engine.start_named("asking", [{}])
        await stage.job_comes_to(number, "waiting")
        await other.do("create table later (a int)")
        await stage.advance(minutes=10)
        await stage.comes_to(number)
    assert await stage.kinds(number) == ["start", "retry", "query", "finish"]


async def test_a_worker_hears_of_a_query_that_is_defined_while_it_works(stage: Stage) -> None:
    before = asking("select 1 as one")
    attributes = tuple(replace(each, query=None) for each in before.attributes)
    await stage.engine.apply(replace(before, attributes=attributes))
    async with stage.working(use) as worker:
        [number] = await stage.engine.start_named("asking", [{}])
        assert (await stage.comes_to(number)).state["rows"] is None
        await stage.engine.apply(before)

        async def heard() -> bool:
            return bool(worker._asking._tasks)  # noqa: SLF001 nothing else tells

        await until(heard)
        [number] = await stage.engine.start_named("asking", [{}])
        assert (await stage.comes_to(number)).state["rows"] == [{"one": 1}]


async def people(stage: Stage, expression: str) -> tuple[int, int]:
    """A person, and an item that they may select, which takes rows."""
    await stage.do("insert into mutirao.role (name, made_at) values ('clerk', now())")
    [(person,)] = await stage.rows(
        "insert into mutirao.person (name, made_by, made_at) values ('clerk_1', 'test', now()) returning id"
    )
    await stage.do("insert into mutirao.member select id, %s from mutirao.role where name = 'clerk'", person)
    await stage.engine.apply(asking(expression, offer=Offer(role="clerk"), inputs=("rows",)))
    [number] = await stage.engine.start_named("asking", [{}])
    [job] = await stage.engine.jobs(number)
    return person, job.id


async def test_a_person_who_selects_an_item_gets_its_rows(stage: Stage) -> None:
    person, job = await people(stage, "select name from hotel where city = :city order by 1 limit 1")
    attempt = await stage.engine.worklists.select(person, job)
    found = await stage.engine.job(job)
    assert (found.status, found.attempt) == ("running", attempt)
    assert (await stage.engine.instance(found.instance)).state["rows"] == [{"name": "Lua"}]
    await stage.engine.sources.remove("guide")
    assert await stage.engine.worklists.select(person, job) == attempt  # asked twice, but not the other database


async def test_where_rows_cannot_be_had_the_item_is_not_selected(stage: Stage) -> None:
    person, job = await people(stage, "select 1 / 0 as nothing")
    with pytest.raises(RequestError, match="division by zero") as refusal:
        await stage.engine.worklists.select(person, job)
    assert refusal.value.code == "query_failed"
    with pytest.raises(RequestError, match="division by zero"):
        await stage.engine.worklists.next(person)
    assert (await stage.engine.job(job)).status == "ready"


async def test_the_names_of_databases(stage: Stage) -> None:
    await stage.engine.apply(Trip)
    [source] = await stage.engine.sources.all()
    assert (source.name, source.timeout, source.flows) == ("guide", timedelta(seconds=5), ["trip"])
    assert await stage.engine.sources.rows("guide", "select 1 as one") == [{"one": 1}]
    for call in (
        stage.engine.sources.put("", "postgresql://x/y"),
        stage.engine.sources.put("a", "no address"),
        stage.engine.sources.put("a", "postgresql://x/y", within=timedelta(0)),
    ):
        with pytest.raises(RequestError) as refusal:
            await call
        assert refusal.value.code == "wrong_call"
    for removal in (stage.engine.sources.remove("b"), stage.engine.sources.rows("b")):
        with pytest.raises(RequestError, match='there is no database "b"'):
            await removal


async def test_addresses_are_for_no_reader(stage: Stage) -> None:
    """Whoever was granted `read`, or `work`, sees no address but that of a job they hold."""
    [(level,)] = await stage.rows("select level from mutirao.callable where function = 'sources'")
    assert level == "define"
    assert (
        await stage.rows(
            "select from information_schema.tables where table_schema = 'mutirao' and table_name = 'source'"
        )
        == []
    )

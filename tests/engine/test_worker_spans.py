"""OpenTelemetry: one span a job, in the trace of whoever started the instance."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from psycopg import AsyncConnection
from worker_stage import HOUR, Stage, fresh_stage, happens  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, blocking_engine, task
from mutirao.worker import Worker, WorkerOptions
from mutirao.worker.spans import Spans


class Receiver:
    """Where the spans of a test go."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracer = self.provider.get_tracer("test")

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._kept.get_finished_spans() if span.name == name]

    def only(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@asynccontextmanager
async def working(stage: Stage, receiver: Receiver, *flows: object, **options: Any) -> AsyncIterator[None]:
    worker = Worker(
        stage.engine, flows, WorkerOptions(**{"name": "ann", "poll": HOUR, **options}), [Spans(receiver.provider)]
    )
    running = asyncio.create_task(worker.run())
    await happens(worker.ready)
    try:
        yield
    finally:
        worker.stop()
        await running


def parent(span: ReadableSpan) -> int | None:
    return span.parent and span.parent.span_id


def number(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


class Places(Flow):
    """A task in each place where user code runs; each makes a span of its own."""

    a: bool = False
    b: bool = False
    c: bool = False
    final = "a and b and c"

    @task(when="not a")
    async def on_loop(self) -> Change:
        with TRACER.get().start_as_current_span("inside on_loop"):
            await asyncio.sleep(0)
        return {"a": True}

    @task(when="not b")
    def in_thread(self) -> Change:
        with TRACER.get().start_as_current_span("inside in_thread"):
            return {"b": True}

    @task(when="not c", transactional=True)
    async def in_transaction(self, connection: AsyncConnection[Any]) -> Change:
        await connection.execute("select 1")
        with TRACER.get().start_as_current_span("inside in_transaction"):
            return {"c": True}


class TRACER:
    """The tracer of the test that runs: flows are made before it is."""

    current: trace.Tracer

    @classmethod
    def get(cls) -> trace.Tracer:
        return cls.current


async def test_jobs_and_what_they_do_belong_to_the_starters_trace(stage: Stage, receiver: Receiver) -> None:
    TRACER.current = receiver.tracer
    await stage.engine.apply(Places)
    async with working(stage, receiver, Places):
        with receiver.tracer.start_as_current_span("request"):
            instance = await stage.engine.start(Places())
        other = await stage.engine.start(Places())
        await stage.comes_to(instance)
        await stage.comes_to(other)
    request = receiver.only("request")
    for name in ("on_loop", "in_thread", "in_transaction"):
        spans = {(span.attributes or {})["mutirao.instance"]: span for span in receiver.named(f"places.{name}")}
        assert parent(spans[instance]) == number(request)
        assert parent(spans[other]) is None
        inside = [parent(span) for span in receiver.named(f"inside {name}")]
        assert sorted(filter(None, inside)) == sorted(number(span) for span in spans.values())
        assert spans[instance].status.is_ok or spans[instance].status.is_unset
    [row, *_] = await stage.engine.trace(instance)
    assert row.note is not None
    assert row.note["traceparent"].split("-")[2] == f"{number(request):016x}"


class Shaky(Flow):
    how: str
    done: bool = False
    final = "done"

    @task(when="not done", retries=0, timeout=timedelta(milliseconds=300))
    async def work(self) -> Change:
        if self.how == "raise":
            raise ConnectionError("not today")
        await asyncio.Event().wait()
        return {"done": True}


async def test_span_of_a_failure_has_its_exception(stage: Stage, receiver: Receiver) -> None:
    async with working(stage, receiver, Shaky):
        instance = await stage.engine.start(Shaky(how="raise"))
        await stage.comes_to(instance, "open.exception")
    span = receiver.only("shaky.work")
    assert not span.status.is_ok
    assert span.status.description == "ConnectionError: not today"
    [event] = span.events
    told = event.attributes or {}
    assert (event.name, told["exception.type"]) == ("exception", "ConnectionError")
    assert 'raise ConnectionError("not today")' in str(told["exception.stacktrace"])
    job = {
        name: value for name, value in (span.attributes or {}).items() if name not in ("mutirao.job", "mutirao.attempt")
    }
    assert job == {
        "mutirao.flow": "shaky",
        "mutirao.task": "work",
        "mutirao.instance": instance,
        "mutirao.failures": 0,
        "mutirao.worker": "ann",
    }


async def test_span_of_a_job_whose_time_is_over_ends_as_an_error(stage: Stage, receiver: Receiver) -> None:
    async with working(stage, receiver, Shaky):
        await stage.comes_to(await stage.engine.start(Shaky(how="hang")), "open.exception")
    span = receiver.only("shaky.work")
    assert (span.status.description or "").startswith("stopped: ")


async def test_contexts_of_a_turn_are_asked_for_once_and_then_known(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    origins = stage.engine.origins

    async def count(instances: Any) -> dict[int, str]:
        asked.extend(instances)
        return await origins(instances)

    monkeypatch.setattr(stage.engine, "origins", count)

    class Long(Flow):
        n: int = 0
        final = "n = 5"

        @task(when="n < 5")
        async def step(self) -> Change:
            return {"n": self.n + 1}

    await stage.engine.apply(Long)
    with receiver.tracer.start_as_current_span("request"):
        started = await stage.engine.start_many([Long() for _ in range(50)])
    async with working(stage, receiver, Long):
        await stage.all_close("long", 50)
    assert sorted(asked) == sorted(started)
    assert {parent(span) for span in receiver.named("long.step")} == {number(receiver.only("request"))}


def test_context_passes_the_bridge_to_a_program_without_a_loop(database_url: str, receiver: Receiver) -> None:
    with blocking_engine(database_url) as (engine, wait):
        wait(engine.apply(Shaky))
        with receiver.tracer.start_as_current_span("request"):
            instance = wait(engine.start(Shaky(how="raise")))
        [row] = wait(engine.trace(instance))
    assert row.note is not None
    assert f"{number(receiver.only('request')):016x}" in row.note["traceparent"]

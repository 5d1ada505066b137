"""`mutirao worker --otel`: spans go where the flow's module or the operator says; if nowhere, that is told."""

from pathlib import Path

from command import FLOWS, answer, assert_refused, mutirao, running

TRACED = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from mutirao import Change, Flow, task

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(provider)


class Talk(Flow):
    done: bool = False
    final = "done"

    @task(when="not done")
    def say(self) -> Change:
        return {"done": True}
"""


def test_worker_sends_a_span_for_a_job(database_url: str, tmp_path: Path) -> None:
    shop = tmp_path / "shop.py"
    shop.write_text(TRACED)
    with running("worker", shop, "--otel", "--database", database_url) as worker:
        worker.wait_for("is ready")
        answer("instance", "start", "talk", "--database", database_url)
        worker.wait_for('"name": "talk.say"')
        worker.wait_for('"mutirao.task": "say"')


def test_spans_that_nobody_would_receive_are_refused() -> None:
    assert_refused(mutirao("worker", f"{FLOWS}:Order", "--otel"), "otel_not_set_up", exit_code=3)


def test_spans_without_the_library_are_refused(tmp_path: Path) -> None:
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").write_text("raise ImportError('not installed')\n")
    said = mutirao("worker", f"{FLOWS}:Order", "--otel", PYTHONPATH=tmp_path)
    assert_refused(said, "otel_missing", exit_code=3)
    assert "mutirao[otel]" in said.stderr

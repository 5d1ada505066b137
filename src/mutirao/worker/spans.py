"""One OpenTelemetry span a job, in the trace of whoever started the instance. Needs the extra `mutirao[otel]`.

The starter's context is kept with the instance's start (`mutirao.database.origin`). The contexts of the jobs that come with
one turn are fetched in one query. Whoever runs the program decides where spans go, by the SDK's own means.
"""

from collections import OrderedDict
from collections.abc import Sequence

from mutirao.database.engine import Engine
from mutirao.errors import OperatorError
from mutirao.worker.observer import Observer
from mutirao.worker.running import Outcome, Running

try:
    from opentelemetry import context, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as missing:
    raise OperatorError(
        "otel_missing", "spans need OpenTelemetry: install mutirao[otel], or leave out --otel"
    ) from missing

_MOST_KEPT = 10_000
_PROPAGATOR = TraceContextTextMapPropagator()


def spans() -> "Spans":
    """For a command, whose operator should hear it if nobody would receive them."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        raise OperatorError(
            "otel_not_set_up",
            "nobody would receive the spans: run this under opentelemetry-instrument, "
            "or call trace.set_tracer_provider in the flow's module",
        )
    return Spans()


class Spans(Observer):
    """Give it to a worker as an observer. Without a `provider` it is OpenTelemetry's global one."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("mutirao", tracer_provider=provider)
        self._origins: OrderedDict[tuple[str, int], str | None] = OrderedDict()

    async def prepare(self, engine: Engine, jobs: Sequence[Running]) -> None:
        """Find out in whose context these instances were started; what is known is not asked for again."""
        wanted = {running.told.instance for running in jobs}
        new = [instance for instance in wanted if (engine.url, instance) not in self._origins]
        if new:
            found = await engine.origins(new)
            self._origins.update(((engine.url, instance), found.get(instance)) for instance in new)
        for running in jobs:
            key = (engine.url, running.told.instance)
            self._origins.move_to_end(key)
            running.observed[self] = self._origins[key]
        while len(self._origins) > _MOST_KEPT:
            self._origins.popitem(last=False)

    def begins(self, running: Running) -> None:
        told, handler = running.told, running.handler
        origin = running.observed.get(self)
        span = self._tracer.start_span(
            f"{handler.flow}.{handler.task}",
            context=_PROPAGATOR.extract({"traceparent": origin}, context.Context()) if origin else context.Context(),
            kind=SpanKind.CONSUMER,
            attributes={
                "mutirao.flow": handler.flow,
                "mutirao.task": handler.task,
                "mutirao.instance": told.instance,
                "mutirao.job": told.job,
                "mutirao.attempt": told.attempt,
                "mutirao.failures": told.failures,
                "mutirao.worker": running.worker,
            },
        )
        running.observed[self] = (span, context.attach(trace.set_span_in_context(span)))

    def ends(self, running: Running, outcome: Outcome | None) -> None:
        span, token = running.observed[self]
        context.detach(token)
        if outcome is None:
            span.set_status(
                Status(StatusCode.ERROR, "stopped: its time was over, its lease was lost, or its worker stopped")
            )
        elif outcome.error is not None:
            problem = outcome.problem
            told = {
                "type": problem.get("code"),
                "message": problem.get("error"),
                "stacktrace": problem.get("traceback"),
            }
            span.add_event("exception", {f"exception.{name}": text for name, text in told.items() if text})
            span.set_status(Status(StatusCode.ERROR, str(problem.get("error", "")).partition("\n")[0]))
        span.end()

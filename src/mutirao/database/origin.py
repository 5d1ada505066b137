"""In whose OpenTelemetry context an instance is started: kept with its start, so that its jobs belong to the same trace.

A program that has no OpenTelemetry pays for nothing here: it is looked for only among what is imported already.
"""

import sys
from collections.abc import Mapping
from typing import Any


def carried_along(note: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The note of a start, with the span that is active, as W3C writes it."""
    if "opentelemetry.trace" not in sys.modules or "traceparent" in (note or ()):
        return note
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415 an extra

    found: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(found)
    return {**(note or {}), "traceparent": found["traceparent"]} if "traceparent" in found else note

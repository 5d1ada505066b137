"""What operators may ask of every program that runs on: how it logs, and whom it tells what it does."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from mutirao.cli.logs import LogFormat, LogLevel, voice
from mutirao.worker import Observer

LogFormatOption = Annotated[
    LogFormat | None, typer.Option("--log-format", help="How log lines look. Default: text on a terminal, else JSON.")
]

LogLevelOption = Annotated[
    LogLevel | None, typer.Option("--log-level", help="From where on lines are written. Default: info.")
]

MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", min=0, max=65535, metavar="PORT", help="Serve /metrics and /healthz here; 0: a free port."
    ),
]

MetricsAddress = Annotated[
    str, typer.Option("--metrics-address", metavar="ADDRESS", help="Where to listen for that; 0.0.0.0: everywhere.")
]

Otel = Annotated[bool, typer.Option("--otel", help="One OpenTelemetry span a job. Needs mutirao\\[otel].")]

# How long the database may answer nothing before /healthz says so. A clock asks every second; a worker may be full.
CLOCK_SILENCE = 15.0
WORKER_SILENCE = 90.0


@dataclass(frozen=True)
class Wanted:
    """Who shall be told. What was not asked for is not even imported."""

    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    otel: bool = False
    silence: float = WORKER_SILENCE
    log_format: LogFormat | None = None

    @property
    def say(self) -> Callable[[str], None]:
        return voice(self.log_format)


@contextmanager
def observing(wanted: Wanted) -> Iterator[Sequence[Observer]]:
    """Those to tell, for as long as the block lasts. A port that cannot be had is refused at once."""
    observers: list[Observer] = []
    if wanted.otel:
        from mutirao.worker.spans import spans  # noqa: PLC0415 an extra

        observers.append(spans())
    if wanted.metrics_port is None:
        yield observers
        return
    from mutirao.worker.metrics import Metrics  # noqa: PLC0415 only where it is used
    from mutirao.worker.metrics_server import MetricsServer  # noqa: PLC0415

    metrics = Metrics(wanted.silence)
    with MetricsServer(metrics, wanted.metrics_port, wanted.metrics_address) as server:
        wanted.say(f"Metrics: {server.url}")
        yield [*observers, metrics]

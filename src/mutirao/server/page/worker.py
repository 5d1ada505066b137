"""Workers and health: who is alive, what waits for them, how fast it goes, and how the database is. For administrators."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from babel.dates import format_time
from fastapi import Request, Response

from mutirao.database.application import application_tasks
from mutirao.database.engine import Engine
from mutirao.database.health import MOST_COUNTED, Health, Pace, Queue
from mutirao.database.record import WorkerRecord
from mutirao.server.metrics import ServerMetrics
from mutirao.server.need import Administrator
from mutirao.server.page.chart import Chart, Series
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render

router = pages()

_SHOWN = 30
"""Of the workers that are gone."""
_ENOUGH = 1000
"""So many exceptions stand for as many or more."""
_LATE = 10.0
_LONG_TRANSACTION = 600.0
_CROWDED = 0.8
_SECOND, _MINUTE, _HOUR = 1.0, 60.0, 3600.0


@dataclass(frozen=True)
class Orphan:
    """A task whose jobs nobody takes. `last` is who did it before; `has_application`: any worker that runs applications will do."""

    queue: Queue
    last: WorkerRecord | None
    has_application: bool


@router.get("/workers")
async def workers(request: Request, who: Administrator) -> Response:
    engine = who.engine
    found = await engine.workers()
    queue = await engine.queue()
    pace = await engine.pace(by_task=False)
    health = await engine.health()
    exceptions = await who.sight.exception_count()
    reader = Reader.of(request)
    silent = [each for each in found if not each.alive and each.stopped_at is None]
    stopped = [each for each in found if each.stopped_at is not None]
    metrics: ServerMetrics = request.app.state.metrics
    return render(
        request,
        "worker.html",
        alive=[each for each in found if each.alive],
        gone=[(each, each.stopped_at is None) for each in (*silent, *stopped)][:_SHOWN],
        gone_count=len(silent) + len(stopped),
        silent_count=len(silent),
        queue=queue,
        exceptions=exceptions,
        is_more=exceptions == _ENOUGH,
        most=MOST_COUNTED,
        orphans=await _orphans(engine, queue, found),
        notices=list(_notices(health)),
        health=health,
        limits=await engine.limits(),
        done=sum(each.done for each in pace.minutes),
        failed=sum(each.failed for each in pace.minutes),
        last=pace.minutes[-2],
        throughput=_throughput(pace, reader),
        latency=_latency(pace, reader),
        spell=lambda seconds: spell(seconds, reader),
        program=request.app.version,
        uptime=metrics.uptime,
        streams=len(request.app.state.hub.streams),
    )


async def _orphans(engine: Engine, queue: Sequence[Queue], workers: Sequence[WorkerRecord]) -> list[Orphan]:
    alone = [each for each in queue if each.ready and not each.workers]
    if not alone:
        return []
    programs = {(each.flow, each.task) for each in await application_tasks(engine)}
    return [
        Orphan(
            each,
            next((worker for worker in workers if f"{each.flow}.{each.task}" in worker.tasks), None),
            (each.flow, each.task) in programs,
        )
        for each in alone
    ]


def _notices(health: Health) -> Iterator[tuple[str, float]]:
    """What an operator should see to: its kind, and the number that goes with it."""
    facts = health.facts
    yield from ((what, late) for what, late in health.overdue.items() if late > _LATE)
    if facts.connections > _CROWDED * facts.most_connections:
        yield "connections", facts.connections
    if (facts.oldest_transaction or 0) > _LONG_TRANSACTION:
        yield "transaction", facts.oldest_transaction or 0


def _throughput(pace: Pace, reader: Reader) -> Chart:
    series = (
        Series("done", [each.done for each in pace.minutes]),
        Series("failed", [each.failed for each in pace.minutes]),
    )
    return Chart("throughput", _times(pace, reader), series, reader.number, is_stacked=True, least=2)


def _latency(pace: Pace, reader: Reader) -> Chart:
    series = (
        Series("p50", [each.p50 for each in pace.minutes]),
        Series("p95", [each.p95 for each in pace.minutes]),
    )
    return Chart("latency", _times(pace, reader), series, lambda seconds: spell(seconds, reader))


def _times(pace: Pace, reader: Reader) -> list[str]:
    return [_time(each.minute, reader) for each in pace.minutes]


def _time(at: datetime, reader: Reader) -> str:
    return format_time(at, "short", tzinfo=reader.zone, locale=reader.locale)


def spell(seconds: float | None, reader: Reader) -> str:
    """A duration as short as an axis needs it, to two or three places."""
    if seconds is None:
        return ""
    if seconds == 0:
        return "0"
    if seconds < _SECOND:
        milliseconds = seconds * 1000
        return f"{reader.number(round(milliseconds, 0 if milliseconds >= 10 else 1))} ms"  # noqa: PLR2004 two places
    for unit, size in (("s", _SECOND), ("min", _MINUTE), ("h", _HOUR)):
        amount = seconds / size
        if amount < 60 or unit == "h":  # noqa: PLR2004 the next unit begins
            break
    return f"{reader.number(round(amount, 0 if amount >= 10 else 1))} {unit}"  # noqa: PLR2004 two places

"""What the server does, for Prometheus; and what waits in its database, as workers tell it."""

import time
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mutirao.database.engine import Engine
from mutirao.errors import MutiraoError
from mutirao.server.hub import Hub
from mutirao.worker.backlog import Database, told_of_databases
from mutirao.worker.family import Labels, counter, gauge, histogram
from mutirao.worker.timing import CALL_SECONDS, Timing


class ServerMetrics(Collector):
    """Counts on the event loop alone; written down when asked."""

    def __init__(self, engine: Engine, hub: Hub) -> None:
        self._hub = hub
        self._database = Database(engine, self._called)
        self._requests: Counter[Labels] = Counter()
        self._seconds: dict[Labels, Timing] = {}
        self.open = 0
        self._began = time.monotonic()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    @property
    def uptime(self) -> float:
        """In seconds."""
        return time.monotonic() - self._began

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, str(status)] += 1
        self._seconds.setdefault((method, route), Timing(CALL_SECONDS)).add(seconds)

    def _called(self, call: str, seconds: float, error: MutiraoError | None) -> None:
        """How long the database took for this is no request of anybody's."""

    async def scrape(self, accept: str) -> tuple[bytes, str]:
        await self._database.refresh()
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def collect(self) -> Iterator[Metric]:
        route = ("method", "route")
        yield counter("mutirao_http_requests", "Requests that were answered.", (*route, "status"), self._requests)
        yield histogram("mutirao_http_seconds", "Time until a request was answered.", route, self._seconds)
        yield gauge("mutirao_http_open", "Requests that are not answered yet.", (), {(): self.open})
        yield gauge("mutirao_http_streams", "Open event streams.", (), {(): len(self._hub.streams)})
        yield from told_of_databases([self._database])

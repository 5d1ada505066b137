"""Pages of a large office: how long the server takes for each, what scripts weigh, and how long a large graph takes to be drawn."""

import asyncio
import http.client
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from benchmarks.crowd import serving
from benchmarks.measure import BrokenRunError, Run
from benchmarks.noise import NoiseMeter
from benchmarks.office import ADMINISTRATOR, CLERK, GRAPH, GRAPH_TASKS, PASSWORD, Office, make_office
from benchmarks.server import BenchServer
from mutirao.database.engine import Engine
from mutirao.server.app import make_app
from mutirao.server.openapi import page_routes
from mutirao.server.page.asset import assets

PAGE_MS = 50.0
SCRIPT_KB = 120.0
GRAPH_MS = 500.0

_ROUNDS = 40
_WARM_UP = 3
_NOT_PAGES = ("/asset/{name}",)
_READERS = (ADMINISTRATOR, CLERK)
_GOOD, _REFUSED = (200, 303), (403, 404)
_GRAPH_ROUNDS = 5

# What else a page is asked for, beside its plain address. `stuck` and the like are filled in as in the path.
VARIANTS: dict[str, tuple[str, ...]] = {
    "/work": ("?sort=priority", "?sort=deadline", "?sort=size", "?sort=hand", "?status=running", "?text=task_0", "?text=nothing+like+it", "?attribute=customer%3Dcustomer+7"),
    "/messages": ("?unread=true",),
    "/instances": ("?status=open", "?status=closed", "?status=open.exception", "?flow=flow_3", "?flow=flow_3&status=closed.completed",
      "?flow=flow_3&attribute=customer&value=customer+7", "?who=person_1", "?who=person_1&role=person", "?text=old+77", "?older=30d"),
    "/flows/{name}": ("../five_steps", f"../{GRAPH}"),
    "/exceptions": ("?flow=shaky",),
    "/exceptions/{instance}": ("../{stuck}",),
    "/instances/{instance}": ("../{stuck}", "../77"),
    "/batches/new": ("?kind=cancel&flow=flow_3&all=true", "?kind=cancel&instance={instance}"),
    "/schedules/form": ("?name=schedule_7",),
    "/schedules/times": ("?cron=0+8+*+*+*&zone=UTC",),
    "/people": ("?search=person_99", "?status=here"),
}  # fmt: skip
# Whose plain address is none.
_ONLY_VARIANTS = ("/exceptions/{instance}", "/batches/new")


@dataclass(frozen=True)
class Figures:
    """Milliseconds, the slowest in twenty, by route; what scripts weigh, in kB; milliseconds until the graph is drawn."""

    pages: dict[str, Run]
    scripts: Run
    graph: Run


def measure(server: BenchServer, instances: int, items: int, say: Callable[[str], None]) -> Figures:
    office = make_office(server, instances, items, say)
    with serving(office.url) as port:
        readers = {name: Reader(port, name) for name in _READERS}
        pages = {}
        for path in paths():
            say(f"pages: {path}")
            pages[path] = _timed(path, office, readers, NoiseMeter(server.processes))
        say(f"pages: a graph of {GRAPH_TASKS} tasks")
        graph = asyncio.run(_drawn(port, NoiseMeter(server.processes)))
    server.drop("pages")
    return Figures(pages, Run(weight_of_scripts(), None), graph)


def paths() -> list[str]:
    """Of all pages that there are: none is left out by being forgotten here."""
    app = make_app(Engine("postgresql://nowhere/nothing"))
    return [route.path for route in page_routes(app) if "GET" in (route.methods or ()) and route.path not in _NOT_PAGES]


def addresses(path: str, known: dict[str, object]) -> Iterator[str]:
    filled = {name: quote(str(value), safe="") for name, value in known.items()}
    try:
        plain = path.format(**filled)
    except KeyError as error:
        raise BrokenRunError(
            f"the page {path} names a {error} that the benchmark does not know: see office.py"
        ) from error
    if path not in _ONLY_VARIANTS:
        yield plain
    for variant in VARIANTS.get(path, ()):
        if variant.startswith("../"):
            yield plain.rpartition("/")[0] + variant.format(**filled)[2:]
        else:
            yield plain + variant.format(**filled)


class Reader:
    """Somebody with a browser, signed in: one connection, asked for one page after another."""

    def __init__(self, port: int, name: str) -> None:
        self._port = port
        self.connect()
        body = json.dumps({"name": name, "password": PASSWORD})
        self._connection.request("POST", "/api/session", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        answer.read()
        cookies = [value.partition(";")[0] for name, value in answer.getheaders() if name.lower() == "set-cookie"]
        if not cookies:
            raise BrokenRunError(f"{name} cannot sign in: {answer.status}")
        self.cookies = cookies

    def connect(self) -> None:
        """Anew: a server closes what has been idle for some seconds."""
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)

    def get(self, address: str) -> tuple[int, float]:
        """The status, and after how many milliseconds the page was there."""
        began = time.perf_counter()
        self._connection.request("GET", address, headers={"Cookie": "; ".join(self.cookies), "Accept": "text/html"})
        answer = self._connection.getresponse()
        answer.read()
        return answer.status, (time.perf_counter() - began) * 1000


def _timed(path: str, office: Office, readers: dict[str, Reader], meter: NoiseMeter) -> Run:
    """The slowest address of a page for the reader who waits longest; pages that are not for a reader are not asked for."""
    found: dict[str, float] = {}
    for address in addresses(path, office.known):
        for name, reader in readers.items():
            reader.connect()
            status, _ = reader.get(address)
            if status in _REFUSED and name != ADMINISTRATOR:
                continue
            if status not in _GOOD:
                raise BrokenRunError(f"{name} asks for {address} and is answered {status}")
            for _ in range(_WARM_UP):
                reader.get(address)
            found[f"{name} {address}"] = _p95([reader.get(address)[1] for _ in range(_ROUNDS)])
    return Run(max(found.values()), meter.read(), found)


def _p95(times: Sequence[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def weight_of_scripts() -> float:
    """All that pages may load, gzipped, in kB."""
    return sum(len(each.packed) for name, each in assets().items() if name.endswith(".js")) / 1000


async def _drawn(port: int, meter: NoiseMeter) -> Run:
    """What the page itself says of how long it took, from the data to the picture."""
    try:
        from playwright.async_api import async_playwright  # noqa: PLC0415 it is for tests alone, and may not be there
    except ImportError as error:
        raise BrokenRunError("playwright is not installed: make .venv/.dev") from error
    times = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        context = await browser.new_context(base_url=f"http://127.0.0.1:{port}")
        await context.request.post("/api/session", data={"name": ADMINISTRATOR, "password": PASSWORD})
        page = await context.new_page()
        for _ in range(_GRAPH_ROUNDS):
            await page.goto(f"/flows/{GRAPH}")
            took = page.locator("[data-took]").first
            await took.wait_for()
            times.append(float(await took.get_attribute("data-took") or "nan"))
        await browser.close()
    times.sort()
    return Run(times[len(times) // 2], meter.read(), {"longest": times[-1], "shortest": times[0]})

"""The flows that are tortured. Each shows another promise; all carry the `ticket` of the start that asked for them.

    steps      four tasks, one after another: the bulk of the operations
    branches   three tasks side by side and a join, one of which fails at its first try now and then
    booking    two transactional tasks, one async and one blocking, each with an effect in the job's own transaction
    letter     a work item for a clerk, then a task
    lift       a task of the class `crane`, which excludes itself; it notes when it begins and ends
    survey     a task of the class `inspection`, which excludes `crane`
    nap        a timer, then a task
    parcel     waits for an event, unless somebody cancels it
    trip       a booking with a compensation, and a payment that is refused now and then: then all is undone
    stubborn   fails for good until somebody mends it
    digging    a task that takes a second or so: whoever is thought dead meanwhile comes back to find it taken

A worker does them by `mutirao worker torture.work`. What it needs to know is in its environment: TORTURE_DATABASE, where
notes of its own go, and TORTURE_WITNESS, a file for what it is told (see `witness`).
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from decimal import Decimal
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection

from mutirao import Change, Engine, Failed, Flow, Job, task, wait, work
from torture import witness

CLERK = "clerk"
EFFECT_OUTSIDE = "effect_outside"
"""A planted bug: the effect is committed by itself, before the job is. Named by TORTURE_PLANT."""

_EFFECT = "insert into torture.effect (job, attempt, instance, task, amount) values (%s, %s, %s, %s, %s)"
_BEGIN = "insert into torture.span (job, attempt, class) values (%s, %s, %s) on conflict do nothing"
_END = "update torture.span set end_at = coalesce(end_at, clock_timestamp()) where attempt = %s"
_IN_THE_CLASS = 0.01
_ONE_IN = 5

witness.install_if_wanted()


class Steps(Flow):
    ticket: str
    k: int = 0
    final = "k = 4"

    @task(when="k = 0")
    async def first(self) -> Change:
        return {"k": 1}

    @task(when="k = 1")
    async def second(self) -> Change:
        return {"k": 2}

    @task(when="k = 2")
    def third(self) -> Change:
        return {"k": 3}

    @task(when="k = 3")
    async def fourth(self) -> Change:
        return {"k": 4}


class Branches(Flow):
    ticket: str
    n: int
    a: int | None = None
    b: int | None = None
    c: int | None = None
    total: int | None = None
    final = "total is not null"

    @task(when="a is null")
    async def left(self) -> Change:
        return {"a": self.n}

    @task(when="b is null")
    async def middle(self, job: Job) -> Change:
        if self.n % _ONE_IN == 0 and job.retries_used == 0:
            raise ConnectionError("the other side did not answer")
        return {"b": self.n * 2}

    @task(when="c is null")
    def right(self) -> Change:
        return {"c": self.n * 3}

    @task(when="a is not null and b is not null and c is not null and total is null")
    async def join(self) -> Change:
        assert self.a is not None  # noqa: S101 the condition says so
        assert self.b is not None  # noqa: S101
        assert self.c is not None  # noqa: S101
        return {"total": self.a + self.b + self.c}


class Booking(Flow):
    ticket: str
    booked: bool = False
    billed: bool = False
    final = "billed"

    @task(when="not booked", transactional=True)
    async def book(self, job: Job, connection: AsyncConnection[Any]) -> Change:
        await write_effect(connection, job, 1)
        return {"booked": True}

    @task(when="booked and not billed", transactional=True)
    def bill(self, job: Job, connection: Connection[Any]) -> Change:
        connection.execute(_EFFECT, (*_of(job), 1))
        return {"billed": True}


class Letter(Flow):
    ticket: str
    answer: str | None = None
    filed: bool = False
    final = "filed"

    reply = work(CLERK, when="answer is null", outputs=("answer",))

    @task(when="answer is not null")
    async def file(self) -> Change:
        return {"filed": True}


class Lift(Flow):
    ticket: str
    lifted: bool = False
    final = "lifted"

    @task(when="not lifted", task_class="crane")
    async def lift(self, job: Job) -> Change:
        async with noted("crane", job):
            return {"lifted": True}


class Survey(Flow):
    ticket: str
    surveyed: bool = False
    final = "surveyed"

    @task(when="not surveyed", task_class="inspection")
    async def survey(self, job: Job) -> Change:
        async with noted("inspection", job):
            return {"surveyed": True}


class Nap(Flow):
    ticket: str
    until: datetime
    awake: bool = False

    sleep = wait("until", when="true")

    @task(depends=sleep)
    async def wake(self) -> Change:
        return {"awake": True}


class Parcel(Flow):
    ticket: str
    paid_at: datetime | None = None
    sent: bool = False

    payment = wait("paid_at", when="true")

    @task(depends=payment)
    async def send(self) -> Change:
        return {"sent": True}


class Trip(Flow):
    ticket: str
    is_refused: bool = False
    hotel: bool = False
    paid: bool = False
    final = "paid"

    @task(stands_by=True, transactional=True)
    async def free(self, job: Job, connection: AsyncConnection[Any]) -> Change:
        await write_effect(connection, job, -1)
        return {"hotel": False}

    @task(when="not hotel", fires="once", transactional=True, compensation=free)
    async def reserve(self, job: Job, connection: AsyncConnection[Any]) -> Change:
        await write_effect(connection, job, 1)
        return {"hotel": True}

    @task(depends=reserve, on_failure="roll_back", retries=0)
    async def pay(self) -> Change:
        if self.is_refused:
            raise Failed("refused")
        return {"paid": True}


class Stubborn(Flow):
    ticket: str
    mended: bool = False
    done: bool = False
    final = "done"

    @task(when="not done")
    async def try_it(self) -> Change:
        if not self.mended:
            raise Failed("not before somebody mends it")
        return {"done": True}


class Digging(Flow):
    ticket: str
    seconds: Decimal
    dug: bool = False
    final = "dug"

    @task(when="not dug")
    async def dig(self) -> Change:
        await asyncio.sleep(float(self.seconds))
        return {"dug": True}


FLOWS: tuple[type[Flow], ...] = (
    *(Steps, Branches, Booking, Letter, Lift, Survey),
    *(Nap, Parcel, Trip, Stubborn, Digging),
)

CLASSES = {"crane": ("crane",), "inspection": ("crane",)}

TRANSACTIONAL = [("booking", "book"), ("booking", "bill"), ("trip", "reserve"), ("trip", "free")]

WRITES: dict[tuple[str, str], tuple[str, ...]] = {
    **{("steps", name): ("k",) for name in ("first", "second", "third", "fourth")},
    **{("branches", name): (wrote,) for name, wrote in (("left", "a"), ("middle", "b"), ("right", "c"))},
    ("branches", "join"): ("total",),
    ("booking", "book"): ("booked",),
    ("booking", "bill"): ("billed",),
    ("letter", "reply"): ("answer",),
    ("letter", "file"): ("filed",),
    ("lift", "lift"): ("lifted",),
    ("survey", "survey"): ("surveyed",),
    ("nap", "wake"): ("awake",),
    ("parcel", "send"): ("sent",),
    ("trip", "reserve"): ("hotel",),
    ("trip", "free"): ("hotel",),
    ("trip", "pay"): ("paid",),
    ("stubborn", "try_it"): ("done",),
    ("digging", "dig"): ("dug",),
}
"""Which attributes a task writes: any other that differs after its end was lost or overwritten. Not named: none."""


async def prepare(engine: Engine) -> None:
    """Put all in place: the harness's own tables, the role, the classes, the flows."""
    async with engine.connection() as connection:
        # It comes with the program, so it is as good as a literal.
        await connection.execute(files("torture").joinpath("work.sql").read_text("utf-8").encode())
    await engine.roles.add(None, CLERK)
    for name in CLASSES:
        await engine.classes.put(name)
    for name, conflicts in CLASSES.items():
        await engine.classes.put(name, conflicts)
    for flow in FLOWS:
        await engine.apply(flow)


async def write_effect(connection: AsyncConnection[Any], job: Job, amount: int) -> None:
    if os.environ.get("TORTURE_PLANT") == EFFECT_OUTSIDE:
        await _surely(_EFFECT, *_of(job), amount)
        await asyncio.sleep(0.2)
    else:
        await connection.execute(_EFFECT, (*_of(job), amount))


@asynccontextmanager
async def noted(name: str, job: Job) -> AsyncIterator[None]:
    """Note that a job of a class begins and ends, by the server's clock and seen by everybody at once."""
    await _surely(_BEGIN, job.id, job.attempt, name)
    await asyncio.sleep(_IN_THE_CLASS)
    yield
    await _surely(_END, job.attempt)


def _of(job: Job) -> tuple[int, int, int, str]:
    return job.id, job.attempt, job.instance_id, job.task


# A connection of the worker's own, for notes that are to stand whatever becomes of the job.

_noting = asyncio.Lock()
_connection: AsyncConnection[Any] | None = None


async def _surely(statement: str, *values: Any) -> None:
    """Write it, and again for as long as the server is away. Whoever is written twice must be able to bear it."""
    while True:
        try:
            async with _noting:
                await (await _connected()).execute(statement.encode(), values)
        except psycopg.OperationalError:
            await asyncio.sleep(0.1)
        else:
            return


async def _connected() -> AsyncConnection[Any]:
    global _connection  # noqa: PLW0603 one for the process
    if _connection is None or _connection.closed:
        if _connection is not None:
            with suppress(psycopg.Error):
                await _connection.close()
        url = os.environ["TORTURE_DATABASE"]
        _connection = await AsyncConnection.connect(url, autocommit=True, application_name="torture notes")
    return _connection

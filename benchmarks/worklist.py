"""Worklists with many persons and items: a page in every order, selecting, and many who go for one item at once."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.crowd import Crowd
from benchmarks.measure import Run, one
from benchmarks.noise import NoiseMeter
from benchmarks.server import BenchServer
from mutirao.database.engine import Engine
from mutirao.model import Attribute, Definition, Offer, Task

PAGE_MS = 20.0
SELECT_MS = 5.0
CROWD = 200
CROWD_MS = 1000.0

_FLOWS, _TASKS = 20, 10  # a role for each task of each flow; idle roles have no items
_SEEN_ROLES = 10
_ROUNDS = 60
_CUSTOMERS = 2_000

PEOPLE = """
    insert into mutirao.role (name, made_at) select 'role_' || n, now() from generate_series(0, 199) n;
    insert into mutirao.role (name, made_at) select 'idle_' || n, now() from generate_series(0, 9) n;
    insert into mutirao.person (name, made_by, made_at) select 'person_' || n, 'bench', now() from generate_series(1, 10000) n;
    insert into mutirao.member (role, person) select r.id, p.id from mutirao.role r join mutirao.person p on p.id % 200 = r.id % 200 where r.name like 'role_%';
    insert into mutirao.member (role, person)
    select r.id, p.id from mutirao.role r, mutirao.person p where p.name = 'person_1' and (r.name in (select 'role_' || n * 20 from generate_series(0, 9) n) or r.name like 'idle_%')
    on conflict do nothing;
    insert into mutirao.member (role, person)
    select r.id, p.id from mutirao.role r, mutirao.person p where r.name = 'role_199' and p.id <= 200 on conflict do nothing;"""

ORDERS: dict[str, dict[str, Any]] = {
    "arrival": {},
    "priority": {"sort": "priority"},
    "deadline": {"sort": "deadline"},
    "size": {"sort": "size"},
    "hand": {"sort": "hand"},
    "deadline, latest first": {"sort": "deadline", "descending": True},
    "arrival, of some priority": {"priority": 3},
    "deadline, of one customer": {"sort": "deadline", "attributes": {"customer": "customer 7"}},
    "deadline, with a text": {"sort": "deadline", "text": "task_0"},
    "arrival, with a text that is nowhere": {"text": "nothing like it"},
}


@dataclass(frozen=True)
class Figures:
    """Milliseconds, but for `offered`: items a second."""

    offered: Run
    pages: dict[str, Run]
    select: Run
    crowd: Run
    http_crowd: Run


def measure(server: BenchServer, items: int, say: Callable[[str], None]) -> Figures:
    url = server.fresh("five", "worklist")
    say("worklist: persons and flows")
    with psycopg.connect(url) as connection:
        connection.execute(PEOPLE)
    meter = NoiseMeter(server.processes)
    say(f"worklist: offering {items:,} items")
    offered = Run(asyncio.run(offer(url, items)), meter.read())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        server.checkpoint()
        person = one(connection, "select id from mutirao.person where name = 'person_1'")
        _move_some(connection, person)
        pages = {}
        for name, wanted in ORDERS.items():
            say(f"worklist: by {name}")
            pages[name] = _pages(connection, person, wanted, NoiseMeter(server.processes))
        say("worklist: selecting")
        select = _selects(connection, person, NoiseMeter(server.processes))
    say(f"worklist: {CROWD} go for one item")
    crowd = Crowd(url, "role_199", CROWD)
    in_database = crowd.in_database(NoiseMeter(server.processes))
    over_http = crowd.over_http(NoiseMeter(server.processes))
    server.drop("worklist")
    return Figures(offered, pages, select, in_database, over_http)


def flow_of(number: int) -> Definition:
    return Definition(
        name=f"flow_{number}",
        ends="quiet",
        attributes=(
            Attribute("customer", "text", searchable=True),
            Attribute("n", "integer"),
            Attribute("done", "text"),
        ),
        tasks=tuple(
            Task(
                name=f"task_{task}",
                when=f"n % {_TASKS} = {task}",
                fires="once",
                priority=task,
                offer=Offer(
                    role=f"role_{number * _TASKS + task}", deadline=timedelta(hours=10 + number) if number % 3 else None
                ),
                inputs=("customer", "n"),
                outputs=("done",),
            )
            for task in range(_TASKS)
        ),
    )


async def offer(url: str, items: int) -> float:
    """Items a second that `start_many` offers."""
    each = items // _FLOWS
    async with Engine(url) as engine:
        for number in range(_FLOWS):
            await engine.apply(flow_of(number))
        began = time.perf_counter()
        for number in range(_FLOWS):
            states = ({"customer": f"customer {(n * 7 + number) % _CUSTOMERS}", "n": n} for n in range(each))
            await engine.start_named(f"flow_{number}", states, keys=[f"case {n}" for n in range(each)])
        return each * _FLOWS / (time.perf_counter() - began)


def _move_some(connection: psycopg.Connection[Any], person: int) -> None:
    """Every hundredth item of theirs has been moved by hand."""
    connection.execute(
        "insert into mutirao.place (person, job, rank) select %(person)s, j.id, j.id + 1000.5 from mutirao.job j "
        "join mutirao.member m on m.role = j.role and m.person = %(person)s where j.id %% 100 = 0",
        {"person": person},
    )


def _pages(connection: psycopg.Connection[Any], person: int, wanted: dict[str, Any], meter: NoiseMeter) -> Run:
    """One page after another, from the first again after the last."""
    times, after = [], None
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        rows = connection.execute(
            "select (item).*, cursor from mutirao.worklist(%s, %s, %s)", [person, Jsonb(wanted), after]
        ).fetchall()
        times.append((time.perf_counter() - began) * 1000)
        after = rows[-1][-1] if len(rows) == 50 else None  # noqa: PLR2004 a page
    return _p95(times, meter)


def _selects(connection: psycopg.Connection[Any], person: int, meter: NoiseMeter) -> Run:
    rows = connection.execute(
        "select (item).job from mutirao.worklist(%s, '{}', null, %s)", [person, _ROUNDS * 2]
    ).fetchall()
    times = []
    for (job,) in rows:
        began = time.perf_counter()
        connection.execute("select mutirao.select_item(%s, %s)", [person, job])
        times.append((time.perf_counter() - began) * 1000)
    return _p95(times, meter)


def _p95(times: Sequence[float], meter: NoiseMeter) -> Run:
    ordered = sorted(times)
    value = ordered[int(len(ordered) * 0.95)]
    return Run(value, meter.read(), {"p50": ordered[len(ordered) // 2], "longest": ordered[-1]})

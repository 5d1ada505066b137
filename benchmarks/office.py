"""A large office, for its pages: a million instances, most of them finished, and something of everything that pages show."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from typing import Any

import psycopg

from benchmarks.server import BenchServer
from benchmarks.work import WORKS
from benchmarks.worklist import PEOPLE, offer
from mutirao.database.batch import Filter
from mutirao.database.engine import Engine
from mutirao.model import Attribute, Definition, Task
from mutirao.model.dependency import dependency
from mutirao.people import set_password

ADMINISTRATOR, CLERK = "boss", "person_1"
PASSWORD = "correct horse battery"  # noqa: S105 of a database that goes away
GRAPH = "graph_of_200"
GRAPH_TASKS = 200

_CHUNK = 20_000
_READY, _STUCK = 20_000, 1_000
_OFTEN = 200

_SHAKY = Definition(
    name="shaky",
    attributes=(Attribute("n", "integer"),),
    tasks=(Task(name="fall", when="n is not null"),),
    final="n is null",
)

_MORE = """
    insert into mutirao.message (person, kind, instance, sender, text, at, read_at)
    select p.id, 'instance_ended', n, 'old ' || n, 'instance ' || n || ' has ended', now() - n * interval '1 minute', case when n > 2000 then now() end
    from mutirao.person p, generate_series(1, 10000) n where p.name in ('person_1', 'boss');
    insert into mutirao.charge (instance, person) select i.id, p.id from mutirao.instance i, mutirao.person p where p.name = 'person_1' and i.id % 20 = 0;
    insert into mutirao.participation (instance, person) select i.id, p.id from mutirao.instance i, mutirao.person p where p.name = 'person_1' and i.id % 20 = 0;
    select mutirao.announce('worker ' || n, array(select t.id from mutirao.task t limit 50), 'host-' || n % 9, '1.0') from generate_series(1, 300) n;
    select mutirao.leave('worker ' || n) from generate_series(51, 300) n;
    select mutirao.put_schedule('schedule_' || n, 'flow_' || n % 20, format('%s %s * * *', n % 60, n % 24), '{"customer": "customer 7", "n": 1}') from generate_series(1, 200) n;
    insert into mutirao.minute_pace (minute, task, done, failed, took)
    select date_trunc('minute', now()) - m * interval '1 minute', t.id, 100, 1, array(select (k * 7) % 20 from generate_series(1, 30) k) from (select id from mutirao.task union all select 0) t, generate_series(0, 1439) m;
"""


@dataclass(frozen=True)
class Office:
    """Where it is, and what the addresses of its pages name."""

    url: str
    known: dict[str, Any]


def make_office(server: BenchServer, instances: int, items: int, say: Callable[[str], None]) -> Office:
    url = server.fresh("five", "pages")
    with psycopg.connect(url) as connection:
        connection.execute(PEOPLE)
    say("pages: persons and flows")
    asyncio.run(_people(url))
    asyncio.run(offer(url, 0))
    past = max(instances - items, _CHUNK)
    _remember(url, past, say)
    say(f"pages: offering {items:,} items")
    asyncio.run(offer(url, items))
    say("pages: something of everything")
    asyncio.run(_busy(url))
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in filter(str.strip, _MORE.split(";\n")):
            connection.execute(statement.encode())
        connection.execute("vacuum analyze")
        known = _known(connection)
    server.checkpoint()
    return Office(url, known)


async def _people(url: str) -> None:
    async with Engine(url) as engine:
        await engine.persons.add(None, ADMINISTRATOR, roles=("administrator",))
        for name in (ADMINISTRATOR, CLERK):
            await set_password(engine, None, name, PASSWORD)


def _remember(url: str, instances: int, say: Callable[[str], None]) -> None:
    rows = files("benchmarks").joinpath("past.sql").read_text("utf-8")
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        for first in range(1, instances + 1, _CHUNK):
            last = min(first + _CHUNK - 1, instances)
            connection.execute(rows.encode(), {"first": first, "last": last, "all": instances})
            say(f"pages: finished instances, {last:,} of {instances:,}")
        for name in ("instance_id", "trace_id", "job_id", "attempt_number"):
            connection.execute("select setval(%s, %s)", (f"mutirao.{name}", 2 * instances + 2))


async def _busy(url: str) -> None:
    """A backlog that no worker does, exceptions, and batches."""
    async with Engine(url) as engine:
        await engine.apply(_SHAKY)
        await engine.apply(graph())
        await engine.start_many(list(islice(WORKS["five"].states(_READY), _READY)))
        await engine.start_named("shaky", [{"n": n} for n in range(_STUCK)])
        numbers, _ = await engine.task_numbers("shaky", ["fall"])
        async with engine.connection() as connection:
            await connection.execute(
                "select mutirao.fail(c.job, c.attempt, 'the bridge is closed', true) from mutirao.claim('bench', %s, %s) c",
                [[numbers["fall"]], _STUCK],
            )
        newest = await engine.instances("flow_3", limit=_OFTEN)
        for each in newest:
            await engine.make_batch("suspend", Filter(ids=(each.id,)))
        await engine.classes.put("crane", ["crane"])


def graph() -> Definition:
    """Layer upon layer, each task after two of the layer before."""
    tasks = [Task(name=f"step_{number}", when="true", fires="once") for number in range(10)]
    for number in range(10, GRAPH_TASKS):
        layer, place = divmod(number, 10)
        rule = dependency(f"step_{(layer - 1) * 10 + place}") & f"step_{(layer - 1) * 10 + (place * 3 + 1) % 10}"
        tasks.append(Task(name=f"step_{number}", depends=rule))
    return Definition(name=GRAPH, tasks=tuple(tasks), ends="quiet")


def _known(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """An item and an instance that both readers may see, and one of everything else."""
    row = connection.execute(
        "select j.instance, j.id, f.name, t.name, r.name from mutirao.job j join mutirao.flow f on f.id = j.flow join mutirao.task t on t.id = j.task"
        " join mutirao.role r on r.id = j.role join mutirao.member m on m.role = r.id join mutirao.person p on p.id = m.person"
        " where p.name = %s order by j.id limit 1",
        [CLERK],
    ).fetchone()
    if row is None:
        raise RuntimeError(f"{CLERK} has no items")
    instance, job, flow, task, role = row
    connection.execute(
        "insert into mutirao.participation (instance, person) select %s, id from mutirao.person where name = %s on conflict do nothing",
        [instance, CLERK],
    )
    [batch, stuck] = connection.execute(
        "select (select max(id) from mutirao.batch), (select min(i.id) from mutirao.instance i join mutirao.flow f on f.id = i.flow where f.name = 'shaky')"
    ).fetchone() or (0, 0)
    return {
        "instance": instance, "job": job, "flow": flow, "name": flow, "task": task, "role": role, "batch": batch, "stuck": stuck, "person": CLERK,
    }  # fmt: skip

"""A long past: finished instances by the million, made by set-based SQL in a minute instead of worked off in an hour."""

import asyncio
from collections.abc import Callable
from importlib.resources import files

import psycopg

from benchmarks.server import BenchServer
from mutirao.database.engine import Engine
from mutirao.model import Attribute, Definition, Offer, Task

_CHUNK = 20_000

# What waits for a person, for a time, and for a worker that is not there.
BACKLOG = Definition(
    name="backlog",
    final="kind = 'done'",
    attributes=(Attribute("kind", "text"), Attribute("due", "timestamp")),
    tasks=(
        Task(name="agree", when="kind = 'agree'", offer=Offer(role="clerk"), inputs=("kind",), outputs=("kind",)),
        Task(name="sleep", when="kind = 'sleep'", wait="due", by_clock=True),
        Task(name="compute", when="kind = 'compute'"),
    ),
)


def make_history(server: BenchServer, instances: int, say: Callable[[str], None], name: str = "history") -> str:
    """The URL of a database with that many finished instances of five steps; `say` hears how far it is."""
    url = server.fresh("five", name)
    _fill(url, "history.sql", "five_steps", instances, say)
    return url


def make_live_history(server: BenchServer, instances: int, say: Callable[[str], None]) -> str:
    """The same for a flow that is defined by SQL."""
    url = server.fresh("five", "change")
    with psycopg.connect(url) as connection:
        connection.execute(files("benchmarks").joinpath("live.sql").read_bytes())
    _fill(url, "history.sql", "live", instances, say)
    return url


def make_sleepers(server: BenchServer, instances: int, schedules: int, say: Callable[[str], None]) -> str:
    """The URL of a database with that many instances that wait for a time, and schedules that fire once a day each."""
    url = server.fresh("beside_sleepers", "sleepers")
    _fill(url, "sleeper.sql", "sleeper", instances, say)
    say("making schedules")
    with psycopg.connect(url) as connection:
        connection.execute(
            "select mutirao.put_schedule(format('s%%s', n), 'sleeper', format('%%s %%s * * *', n %% 60, n / 60 %% 24), '{\"due\": \"2100-01-01\"}') "
            "from generate_series(1, %s) n",
            [schedules],
        )
    return url


def make_backlog(server: BenchServer, instances: int, say: Callable[[str], None], name: str) -> str:
    """The URL of a database with that many open instances: a third each wait for a person, a time, a worker not there."""
    url = server.fresh("five", name)
    with psycopg.connect(url) as connection:
        connection.execute("insert into mutirao.role (name, made_at) values ('clerk', now())")
    asyncio.run(_apply(url, BACKLOG))
    _fill(url, "backlog.sql", BACKLOG.name, instances, say)
    return url


def make_queue(server: BenchServer, instances: int, say: Callable[[str], None], name: str) -> str:
    """The URL of a database with that many instances of five steps whose first job is ready."""
    url = server.fresh("five", name)
    fill_queue(url, instances, say)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum (analyze) mutirao.instance, mutirao.job, mutirao.trace")
    return url


def fill_queue(url: str, instances: int, say: Callable[[str], None]) -> None:
    """Starts that many instances of five steps in one transaction: no worker sees any before all are there."""
    with psycopg.connect(url) as connection:
        for first in range(0, instances, _CHUNK):
            last = min(first + _CHUNK, instances)
            connection.execute(
                "select count(*) from mutirao.start_many('five_steps', array(select jsonb_build_object('inst', i) from generate_series(%s::int, %s) i))",
                [first, last - 1],
            )
            say(f"filling the queue: {last:,} of {instances:,}")


async def _apply(url: str, definition: Definition) -> None:
    async with Engine(url) as engine:
        await engine.apply(definition)


def _fill(url: str, file: str, flow: str, instances: int, say: Callable[[str], None]) -> None:
    rows = files("benchmarks").joinpath(file).read_text("utf-8")
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        for first in range(1, instances + 1, _CHUNK):
            last = min(first + _CHUNK - 1, instances)
            connection.execute(rows.encode(), {"first": first, "last": last, "flow": flow})
            say(f"making instances of flow {flow}: {last:,} of {instances:,}")
        # Numbers go on behind those of the past.
        for name, each in (("instance_id", 1), ("trace_id", 7), ("job_id", 6), ("attempt_number", 6)):
            connection.execute("select setval(%s, %s)", (f"mutirao.{name}", (instances + 1) * each))
        connection.execute("vacuum (analyze) mutirao.instance, mutirao.job, mutirao.closed, mutirao.trace")

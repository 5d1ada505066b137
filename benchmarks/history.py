"""A long past: finished instances by the million, made by set-based SQL in a minute instead of worked off in an hour."""

from collections.abc import Callable
from importlib.resources import files

import psycopg

from benchmarks.server import BenchServer

_CHUNK = 20_000


def make_history(server: BenchServer, instances: int, say: Callable[[str], None]) -> str:
    """The URL of a database with that many finished instances of five steps; `say` hears how far it is."""
    url = server.fresh("five", "history")
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

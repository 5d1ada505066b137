"""A long past: finished instances by the million, made by set-based SQL in a minute instead of worked off in an hour."""

from collections.abc import Callable
from importlib.resources import files

import psycopg

from benchmarks.server import BenchServer

_CHUNK = 20_000


def make_history(server: BenchServer, instances: int, say: Callable[[str], None]) -> str:
    """The URL of a database with that many finished instances of five steps; `say` hears how far it is."""
    url = server.fresh("five", "history")
    _fill(url, "history.sql", instances, lambda done: say(f"making finished instances: {done:,} of {instances:,}"))
    return url


def make_sleepers(server: BenchServer, instances: int, say: Callable[[str], None]) -> str:
    """The URL of a database with that many instances that wait for a time."""
    url = server.fresh("beside_sleepers", "sleepers")
    _fill(url, "sleeper.sql", instances, lambda done: say(f"making sleeping instances: {done:,} of {instances:,}"))
    return url


def _fill(url: str, file: str, instances: int, say: Callable[[int], None]) -> None:
    rows = files("benchmarks").joinpath(file).read_text("utf-8")
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        for first in range(1, instances + 1, _CHUNK):
            last = min(first + _CHUNK - 1, instances)
            connection.execute(rows.encode(), {"first": first, "last": last})
            say(last)
        # Numbers go on behind those of the past.
        for name, each in (("instance_id", 1), ("trace_id", 7), ("job_id", 6), ("attempt_number", 6)):
            connection.execute("select setval(%s, %s)", (f"mutirao.{name}", (instances + 1) * each))
        connection.execute("vacuum (analyze) mutirao.instance, mutirao.job, mutirao.closed, mutirao.trace")

"""Old instances are dropped while others are worked off."""

from dataclasses import replace

import psycopg

from benchmarks.measure import BrokenRunError, Run, engine_rate
from benchmarks.server import BenchServer

_PERIOD = "12 hours"  # those of the past closed a day ago


def rate_while_dropping(server: BenchServer, instances: int, workers: int, url: str) -> Run:
    """As `engine_rate` in a database with a past, which the workers' clocks drop meanwhile."""
    _keep(url, _PERIOD)
    before = _old(url)
    run = engine_rate(server, "five", instances, workers, url=url)
    _keep(url, None)
    dropped = before - _old(url)
    if not 0 < dropped < before:
        raise BrokenRunError(f"of {before} old instances {dropped} were dropped: there must be some, and some left")
    return replace(run, details={**run.details, "dropped_a_second": dropped / run.details["seconds"]})


def _keep(url: str, period: str | None) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select mutirao.keep('five_steps', %s::interval)", [period])


def _old(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select count(*) from mutirao.closed where closed_at < now() - %s::interval", [_PERIOD]
        ).fetchone()
        return int(row[0]) if row else 0

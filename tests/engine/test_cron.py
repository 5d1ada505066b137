"""Cron patterns in SQL, beside an oracle that walks through time minute by minute."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import psycopg
import pytest
from cron_oracle import firings, transitions
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mutirao.testing.database import TestServer

ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # set forward at midnight, until 2018
    "America/St_Johns",  # set at one minute past midnight, until 2011
    "Australia/Lord_Howe",  # by half an hour
    "Antarctica/Troll",  # by two hours
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Pacific/Apia",  # had no 30 December 2011
    "UTC",
]


def field(low: int, high: int, *names: str) -> st.SearchStrategy[str]:
    values = st.integers(low, high)
    spans = st.tuples(values, values).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.integers(1, high)
    stepped = st.builds("{}/{}".format, st.one_of(st.just("*"), spans), steps)
    one = st.one_of(values.map(str), spans, stepped, *([st.sampled_from(names)] if names else []))
    return st.one_of(st.just("*"), one, st.lists(one, min_size=2, max_size=3).map(",".join))


CRONS = st.tuples(
    st.one_of(st.just("0"), st.just("*/15"), st.just("30"), field(0, 59)),
    st.one_of(st.just("*"), st.sampled_from(["0", "1", "2", "3", "23", "*/2"]), field(0, 23)),
    st.one_of(st.just("*"), st.just("*"), st.just("L"), field(1, 31)),
    st.one_of(st.just("*"), st.just("*"), field(1, 12, "jan", "mar", "oct")),
    st.one_of(st.just("*"), st.just("*"), field(0, 7, "sun", "mon", "sat")),
).map(" ".join)


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone, and a time near a change of its clocks where it has any that year."""
    zone = draw(st.sampled_from(ZONES))
    year = 2011 if zone == "Pacific/Apia" else draw(st.integers(2005, 2023))
    near = [*transitions(zone, year), datetime(year, 2, 27, tzinfo=UTC)]
    return zone, draw(st.sampled_from(near)) + timedelta(minutes=draw(st.integers(-2500, 300)))


@pytest.fixture(scope="module")
def ask(servers: dict[str, TestServer]) -> Iterator[Any]:
    """The times that SQL finds; on one server, in one session, for hundreds of patterns."""
    clone = servers["pg18"].clone()
    loop = asyncio.new_event_loop()
    url = loop.run_until_complete(clone.__aenter__())
    with psycopg.connect(url, autocommit=True) as session:

        def times(cron: str, zone: str, after: datetime, until: datetime) -> list[datetime]:
            query = "select x from mutirao.cron_times(%s, %s, %s, 60) x where x <= %s"
            try:
                return [at for (at,) in session.execute(query, [cron, zone, after, until]).fetchall()]
            except psycopg.Error as error:
                if "never fires" not in str(error):
                    raise
                return []

        yield times
    loop.run_until_complete(clone.__aexit__(None, None, None))
    loop.close()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CRONS, moments())
def test_sql_agrees_with_walking_minute_by_minute(ask: Any, cron: str, moment: tuple[str, datetime]) -> None:
    zone, after = moment
    until = after + timedelta(days=5)
    assert ask(cron, zone, after, until) == list(islice(firings(cron, zone, after, until), 60))


@pytest.mark.parametrize(
    ("cron", "zone", "after", "walls"),
    [
        # Half past two does not exist on 29 March, and occurs twice on 25 October.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28 12:00+00", ["03-29 03:00", "03-30 02:30"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00+00", ["10-25 02:30", "10-26 02:30"]),
        ("0,30 2 * * *", "Europe/Berlin", "2026-03-28 12:00+00", ["03-29 03:00", "03-30 02:00"]),
        ("30 * * * *", "Europe/Berlin", "2026-03-29 00:00+00", ["03-29 01:30", "03-29 03:30"]),
        ("30 * * * *", "Europe/Berlin", "2026-10-25 00:00+00", ["10-25 02:30", "10-25 02:30", "10-25 03:30"]),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00+00", ["11-04 01:00", "11-05 00:00"]),
        ("0 9 * * *", "Pacific/Apia", "2011-12-29 12:00+00", ["12-29 09:00", "12-31 00:00", "12-31 09:00"]),
        ("0 0 29 2 *", "UTC", "2096-03-01 00:00+00", ["02-29 00:00"]),
        ("0 6 13 * fri", "UTC", "2026-02-01 00:00+00", ["02-06 06:00", "02-13 06:00", "02-20 06:00"]),
        ("0 6 */2 * fri", "UTC", "2026-02-01 00:00+00", ["02-13 06:00", "02-27 06:00"]),
        ("0 6 L * *", "UTC", "2027-12-31 06:00+00", ["01-31 06:00", "02-29 06:00"]),
        ("0 6 * jul,dec sat-sun", "UTC", "2026-07-05 06:00+00", ["07-11 06:00", "07-12 06:00"]),
        ("  @WEEKLY ", "UTC", "2026-07-05 00:00+00", ["07-12 00:00"]),
    ],
)
async def test_times_one_might_argue_about(engine: Engine, cron: str, zone: str, after: str, walls: list[str]) -> None:
    found = await engine.rows(
        "select to_char(x at time zone %s, 'MM-DD HH24:MI') from mutirao.cron_times(%s, %s, %s, %s) x",
        zone, cron, zone, after, len(walls),
    )  # fmt: skip
    assert [wall for (wall,) in found] == walls


async def test_the_last_time_before_a_moment_is_found_among_a_month_of_minutes(engine: Engine) -> None:
    query = """select mutirao.cron_last(mutirao.cron_parse(%s), 'UTC', '2026-01-01 00:00+00', %s)::text"""
    assert await engine.one(query, "* * * * *", "2026-02-07 11:30:30+00") == "2026-02-07 11:30:00+00"
    assert await engine.one(query, "0 0 1 * *", "2026-02-07 11:30:30+00") == "2026-02-01 00:00:00+00"
    assert await engine.one(query, "0 0 1 1 *", "2026-02-07 11:30:30+00") == "2026-01-01 00:00:00+00"
    assert await engine.one(query, "0 0 1 * *", "2026-02-01 00:00:00+00") == "2026-02-01 00:00:00+00"


@pytest.mark.parametrize(
    ("cron", "zone", "code", "says"),
    [
        ("0 0 30 2 *", "UTC", "wrong_cron", 'cron "0 0 30 2 *" never fires'),
        ("0 0 31 4,6 *", "UTC", "wrong_cron", "never fires"),
        ("61 * * * *", "UTC", "wrong_cron", 'field 1 (minute): "61" cannot be; it takes 0 to 59'),
        ("0 24 * * *", "UTC", "wrong_cron", "field 2 (hour)"),
        ("0 0 0 * *", "UTC", "wrong_cron", "field 3 (day of the month)"),
        ("0 0 * 1,jam *", "UTC", "wrong_cron", 'field 4 (month): "jam" cannot be'),
        ("0 0 * * mun", "UTC", "wrong_cron", "mon to sun"),
        ("5/15 * * * *", "UTC", "wrong_cron", "write 5-59/15"),
        ("*/0 * * * *", "UTC", "wrong_cron", "a step goes from 1 to 59"),
        ("20-10 * * * *", "UTC", "wrong_cron", "20 comes after 10"),
        ("1,,2 * * * *", "UTC", "wrong_cron", '"" cannot be'),
        ("* * * *", "UTC", "wrong_cron", "has 4 fields; it needs five"),
        ("@reboot", "UTC", "wrong_cron", "@hourly, @daily"),
        ("@daily", "Europe/Berlim", "unknown_zone", "did you mean Europe/Berlin?"),
        ("@daily", "Sao Paulo", "unknown_zone", "did you mean America/Sao_Paulo?"),
        ("@daily", "UTC+3", "unknown_zone", "zones are written as"),
        ("@daily", None, "unknown_zone", "zones are written as"),
    ],
)
async def test_what_cannot_be_read_is_refused_with_what_would_be_right(
    engine: Engine, cron: str, zone: str | None, code: str, says: str
) -> None:
    async with engine.refused(code, says):
        await engine.rows("select mutirao.cron_next(%s, %s)", cron, zone)

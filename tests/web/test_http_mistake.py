"""What nobody foresaw: 500, always the same words, and the rest in the log by the number of the request."""

import logging

import psycopg
import pytest
from site_kit import Site, newest_site, serving  # noqa: F401 gives the fixture

from mutirao.database.connection import refusals
from mutirao.errors import RequestError


@pytest.mark.parametrize(
    "broken",
    [
        "alter function mutirao.roles(int, text, int) rename to gone",
        "create or replace function mutirao.actor(person int) returns mutirao.person language plpgsql as 'begin perform 1 / (person - person); return null; end'",
    ],
)
async def test_an_error_of_the_database_is_told_to_the_log_alone(
    database_url: str, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    async with serving(database_url) as site:
        http = await site.http("boss")
        assert (await http.get("/api/roles")).status_code == 200
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await connection.execute(broken)
        with caplog.at_level(logging.ERROR):
            answer = await http.get("/api/roles")
    told = answer.json()
    assert (answer.status_code, told["code"], told["family"]) == (500, "internal_error", "operator")
    assert told["request"] == answer.headers["x-request-id"]
    assert told["detail"] == f"something went wrong here; the server's log tells what, by {told['request']}"
    [line] = [each for each in caplog.records if getattr(each, "request", None) == told["request"]]
    assert "database_error" in line.getMessage()


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("select 'x'::int", "wrong_call"),
        ("select 99999999999::int", "wrong_call"),
        ("select '2026-02-30'::date", "wrong_call"),
        ("select '{'::jsonb", "wrong_call"),
        ("select E'\\\\u0000'::jsonb || ('{\"a\": \"\\\\u0000\"}'::jsonb)", "wrong_call"),
        ("select repeat('[', 1000000)::jsonb", "too_large"),
        ("select 1 / 0", "database_error"),
        ("select from nowhere", "database_error"),
    ],
)
async def test_a_value_that_cannot_be_taken_is_the_callers_matter(database_url: str, statement: str, code: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        with pytest.raises(RequestError) as caught, refusals():
            await connection.execute(statement.encode())
    assert caught.value.code == code


async def test_every_request_has_a_number(site18: Site) -> None:
    http = await site18.http("clerk_1")
    numbers = {(await http.get(path)).headers["x-request-id"] for path in ("/api/session", "/api/nowhere", "/health")}
    assert len(numbers) == 3
